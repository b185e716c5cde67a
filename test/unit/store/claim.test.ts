import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { transition } from '../../../src/store/rules/messages.ts';
import { openDatabase } from '../../../src/store/sqlite/database.ts';
import { createEngine } from '../../../src/store/sqlite/thread.ts';
import { temporaryFolder } from '../../rig/folder.ts';
import { NO_LIMITS, newMessage } from '../../rig/messages.ts';

const LEASE = { owner: 'node-a', until: Date.now() + 600_000 };

test('mail of locked accounts costs a claim nothing, however much of it there is', () => {
  /** The shortest time of a claim, in ms, while a locked account has so many mail requests queued. */
  const claimMs = (locked: number): number => {
    const database = openDatabase(join(temporaryFolder(), 'postrider.db'));
    onTestFinished(() => database.close());
    const { operations: store, run } = createEngine(database);
    store.createAccount('locked', NO_LIMITS, 1);
    store.createAccount('other', NO_LIMITS, 1);
    const batch = Array.from({ length: locked }, () => newMessage({ message: 'x' }));
    run([{ number: 1, name: 'accept', args: [batch] }]);
    store.lockAccount('locked', 'abuse', 1);
    const mail = newMessage({ accountId: 2 });
    store.accept([mail]);
    const times = Array.from({ length: 20 }, () => {
      const began = performance.now();
      const { mails, more } = store.claim({ mails: 512, bytes: 1_000_000 }, LEASE, Date.now());
      const tookMs = performance.now() - began;
      expect([mails.map(({ id }) => id), more]).toEqual([[mail.id], false]);
      store.release([{ id: mail.id, owner: LEASE.owner, attempts: 1 }], Date.now());
      return tookMs;
    });
    return Math.min(...times);
  };
  // Following the rows, the second would take a few hundred times as long as the first.
  expect(claimMs(30_000)).toBeLessThan(20 * claimMs(10));
});

test('a writer cannot make a change of state that the table does not have', () => {
  expect(transition('queued', 'sending', 'queue')).toBe('sending');
  expect(() => transition('sending', 'cancelled', 'operator')).toThrow('from sending to cancelled (operator)');
  expect(() => transition(null, 'delivered', 'accept')).toThrow('from nothing to delivered (accept)');
});

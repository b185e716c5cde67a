import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { requireTransition } from '../../../src/store/rules/messages.ts';
import { openDatabase } from '../../../src/store/sqlite/database.ts';
import { createEngine } from '../../../src/store/sqlite/thread.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';
import { createMessage, NO_LIMITS } from '../../rig/messages.ts';

const LEASE = { owner: 'node-a', until: Date.now() + 600_000 };

test('the duration of a claim does not depend on the number of queued messages of locked accounts', () => {
  /** Returns the shortest duration of a claim, in ms, while a locked account has `lockedCount` queued messages. */
  const measureClaim = (lockedCount: number): number => {
    const database = openDatabase(join(createTemporaryFolder(), 'postrider.db'));
    onTestFinished(() => database.close());
    const { operations: store, run } = createEngine(database);
    store.createAccount('locked', NO_LIMITS, 1);
    store.createAccount('other', NO_LIMITS, 1);
    const batch = Array.from({ length: lockedCount }, () => createMessage({ message: 'x' }));
    run([{ number: 1, name: 'accept', args: [batch] }]);
    store.lockAccount('locked', 'abuse', 1);
    const message = createMessage({ accountId: 2 });
    store.accept([message]);
    const durationsMs = Array.from({ length: 20 }, () => {
      const startedAt = performance.now();
      const { messages, hasMore: more } = store.claim({ maxMessages: 512, maxBytes: 1_000_000 }, LEASE, Date.now());
      const tookMs = performance.now() - startedAt;
      expect([messages.map(({ id }) => id), more]).toEqual([[message.id], false]);
      store.release([{ id: message.id, owner: LEASE.owner, attempts: 1 }], Date.now());
      return tookMs;
    });
    return Math.min(...durationsMs);
  };
  // If a claim scanned the rows, it would be a few hundred times slower with 30,000 messages than with 10.
  expect(measureClaim(30_000)).toBeLessThan(20 * measureClaim(10));
});

test('a transition that is not in the table is rejected', () => {
  expect(requireTransition('queued', 'sending', 'queue')).toBe('sending');
  expect(() => requireTransition('sending', 'cancelled', 'operator')).toThrow('from sending to cancelled (operator)');
  expect(() => requireTransition(null, 'delivered', 'accept')).toThrow('from none to delivered (accept)');
});

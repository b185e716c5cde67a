import { describe, expect, test } from 'vitest';
import type { AcceptAnswer, Lease, LeasedMail, NewMail } from '../../../src/model/message.ts';
import { createIntake } from '../../../src/queue/intake.ts';
import { StoreError } from '../../../src/store/error.ts';
import { newMail } from '../../rig/mail.ts';

const LEASE: Lease = { owner: 'node-a', until: 1_000 };
const LIMITS = { rate: null };
/** Running time, far from what the clock shows. */
const OVER_AT = 5_000_000_000;

/** An intake over a store that gives `answer` and a dispatcher that gives `lease`; tells what was done. */
function intakeRig(answer: AcceptAnswer | Error, lease: Lease | null) {
  const told: string[] = [];
  const offered: LeasedMail[] = [];
  const committed: NewMail[] = [];
  const parts = {
    ages: { datedBefore: (ageMs: number) => OVER_AT - ageMs },
    commit: async (mail: NewMail) => {
      committed.push(mail);
      if (answer instanceof Error) throw answer;
      return answer;
    },
    suppressed: (recipient: string) => recipient.startsWith('suppressed@'),
  };
  const dispatcher = {
    leaseForNew: () => lease,
    returnLease: () => void told.push('returned'),
    offer: (mail: LeasedMail) => {
      told.push('offered');
      offered.push(mail);
    },
    wake: () => void told.push('woken'),
  };
  return {
    submit: createIntake({ ...parts, dispatcher }),
    alone: createIntake({ ...parts, dispatcher: null }),
    told,
    offered,
    committed,
  };
}

const accepted = (state: 'queued' | 'sending' | 'suppressed'): AcceptAnswer => ({
  kind: 'accepted',
  state,
  limits: LIMITS,
});

test('a mail request accepted under a lease goes to delivery from memory, as its first attempt', async () => {
  const { submit, told, offered, committed } = intakeRig(accepted('sending'), LEASE);
  const mail = newMail();
  expect(await submit(mail)).toEqual(accepted('sending'));
  expect(told).toEqual(['offered']);
  expect(committed[0]).toEqual({ ...mail, lease: LEASE, suppressed: false });
  const { id, accountId, to, from, subject, message, acceptedAt } = mail;
  expect(offered).toEqual([{ id, accountId, to, from, subject, message, acceptedAt, attempts: 1, lease: LEASE }]);
});

test('one accepted without a lease wakes delivery', async () => {
  const { submit, told } = intakeRig(accepted('queued'), null);
  await submit(newMail());
  expect(told).toEqual(['woken']);
});

describe('a lease that is not used is returned, once', () => {
  const unused: readonly (readonly [string, AcceptAnswer])[] = [
    ['suppressed', accepted('suppressed')],
    ['replayed', { kind: 'replayed', id: newMail().id }],
    ['in conflict', { kind: 'idempotency-conflict' }],
    ['locked', { kind: 'locked' }],
    ['over its volume', { kind: 'refused', reason: 'volume-exhausted', limits: LIMITS }],
    ['past its volume date', { kind: 'refused', reason: 'volume-expired', limits: LIMITS }],
    ['over its rate', { kind: 'refused', reason: 'rate-limit-exceeded', limits: LIMITS }],
  ];
  test.each(unused)('where the request is %s', async (_what, answer) => {
    const held = intakeRig(answer, LEASE);
    expect(await held.submit(newMail())).toEqual(answer);
    expect(held.told).toEqual(['returned']);
    const without = intakeRig(answer, null);
    await without.submit(newMail());
    expect(without.told).toEqual([]);
  });

  test('where the store cannot commit, and the caller is told', async () => {
    const { submit, told } = intakeRig(new StoreError('the disk is full'), LEASE);
    await expect(submit(newMail())).rejects.toThrow('the disk is full');
    expect(told).toEqual(['returned']);
  });
});

test('the simulator’s suppressed address is marked for the store', async () => {
  const { submit, committed } = intakeRig(accepted('suppressed'), LEASE);
  await submit(newMail({ to: 'suppressed@x.example' }));
  expect(committed[0]?.suppressed).toBe(true);
});

test('a node that does not deliver leaves everything in the queue', async () => {
  const { alone, told, committed } = intakeRig(accepted('queued'), LEASE);
  await alone(newMail());
  expect([told, committed[0]?.lease]).toEqual([[], null]);
});

test('an idempotency key is held for 24 hours of running time, whatever the clock shows', async () => {
  const { submit, committed } = intakeRig(accepted('queued'), null);
  const idempotency = { key: 'k', fingerprint: 'aa' };
  await submit(newMail({ idempotency }));
  expect(committed[0]?.idempotency).toEqual({ ...idempotency, overAt: OVER_AT - 24 * 3_600_000 });
});

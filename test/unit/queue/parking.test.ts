import { expect, onTestFinished, test } from 'vitest';
import type { Hold } from '../../../src/model/hold.ts';
import type { MailboxProvider } from '../../../src/model/mailbox-provider.ts';
import type { ParkedMessage } from '../../../src/model/message.ts';
import { createHoldChecks, startParkingScanner } from '../../../src/queue/parking.ts';
import { createVirtualClock } from '../../rig/clock.ts';

const START = Date.UTC(2030, 0, 1);
const MESSAGE = { accountId: 1, from: 'shop@example.org', to: 'rita@example.com' };

const createHold = (members: Partial<Hold> = {}): Hold => ({
  ...{ id: 1, accountId: null, from: null, to: null, mailboxProvider: null, reason: 'incident' },
  ...{ until: null, createdAt: START, by: 'cli:ada', releasedAt: null },
  ...members,
});

function createRig() {
  const clock = createVirtualClock(START);
  let provider: MailboxProvider | null = null;
  const holds = createHoldChecks({
    clock,
    findMailboxProvider: () => provider,
    isNotification: ({ from }) => from.startsWith('notify@'),
  });
  const parked = new Map<string, ParkedMessage>();
  const errors: unknown[] = [];
  const roomListeners: (() => void)[] = [];
  let unparkedCount = 0;
  const stop = startParkingScanner({
    clock,
    get nextEndAt() {
      return holds.nextEndAt;
    },
    onChange: holds.onChange,
    onRoom: (listener) => void roomListeners.push(listener),
    store: {
      listParked: async (afterId, limit) =>
        [...parked.values()].filter(({ id }) => id > (afterId ?? '')).slice(0, limit),
      async unpark(ids) {
        for (const id of ids) parked.delete(id);
        return ids.length;
      },
    },
    isStillParked: holds.mayBeHeld,
    onUnparked() {
      unparkedCount += 1;
    },
    onError: (error) => void errors.push(error),
  });
  onTestFinished(stop);
  return {
    ...{ clock, holds, parked, errors },
    getUnparkedCount: () => unparkedCount,
    setProvider(found: MailboxProvider) {
      provider = found;
    },
    park(count: number, members: Partial<ParkedMessage> = {}) {
      for (let n = 0; n < count; n += 1) {
        const id = String(parked.size).padStart(9, '0');
        parked.set(id, { ...MESSAGE, id, parked: { reason: 'hold', at: START }, ...members });
      }
    },
  };
}

test('notifications pass holds', () => {
  const { holds } = createRig();
  holds.replace([createHold()]);
  expect([holds.isHeld(MESSAGE), holds.isHeld({ ...MESSAGE, from: 'notify@example.org' })]).toEqual([true, false]);
});

test('before an attempt a hold of a mailbox provider waits for its lookup, and stops the message if there is no answer in time', async () => {
  const { holds, clock, setProvider } = createRig();
  holds.replace([createHold({ mailboxProvider: 'google' })]);
  expect([holds.isHeldWhenAccepted(MESSAGE), holds.mayBeHeld(MESSAGE)]).toEqual([false, true]);
  const unanswered = holds.isHeld(MESSAGE);
  await clock.advance(3_000);
  expect(await unanswered).toBe(true);
  for (const [provider, isHeld] of [
    ['google', true],
    ['yahoo', false],
  ] as const) {
    const { holds, clock, setProvider } = createRig();
    holds.replace([createHold({ mailboxProvider: 'google' })]);
    const answer = holds.isHeld(MESSAGE);
    setProvider(provider);
    await clock.advance(200);
    expect(await answer).toBe(isHeld);
  }
  setProvider('google');
  expect([holds.isHeldWhenAccepted(MESSAGE), holds.isHeld(MESSAGE)]).toEqual([true, true]);
});

test('after a release all pages are unparked at once, except what another hold stops', async () => {
  const { holds, clock, park, parked, getUnparkedCount } = createRig();
  holds.replace([createHold(), createHold({ id: 2, accountId: 2 })]);
  park(500);
  park(1, { accountId: 2 });
  park(500);
  await clock.advance(30_000);
  expect(parked.size).toBe(1_001);
  holds.replace([createHold({ id: 2, accountId: 2 })]);
  await clock.advance(1_000);
  expect([...parked.values()].map(({ accountId }) => accountId)).toEqual([2]);
  expect(getUnparkedCount()).toBeGreaterThan(0);
});

test('a hold ends by itself, and its messages are then unparked', async () => {
  const { holds, clock, park, parked } = createRig();
  holds.replace([createHold({ until: START + 7_000 })]);
  park(1);
  await clock.advance(6_990);
  expect([parked.size, holds.hasActiveHolds]).toEqual([1, true]);
  await clock.advance(20);
  expect([parked.size, holds.hasActiveHolds]).toEqual([0, false]);
});

test('a message that a node parks after the release is unparked within ten seconds', async () => {
  const { clock, park, parked } = createRig();
  await clock.advance(60_000);
  park(1);
  await clock.advance(10_000);
  expect(parked.size).toBe(0);
});

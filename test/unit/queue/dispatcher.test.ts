import { describe, expect, test } from 'vitest';
import type { AcceptResult, Lease, LeasedMessage, NewMessage } from '../../../src/model/message.ts';
import type { Attempt } from '../../../src/model/outcome.ts';
import { LEASE_MS } from '../../../src/queue/attempt.ts';
import { createIntake } from '../../../src/queue/dispatcher.ts';
import { createRouteHealth, MAX_ATTEMPT_MS } from '../../../src/queue/route-health.ts';
import { StoreError } from '../../../src/store/error.ts';
import { packSettlements } from '../../../src/store/rules/messages.ts';
import { createAttempt, createMessage, createSettlement } from '../../rig/messages.ts';
import { CLOSED_BREAKER, createQueueRig, START } from '../../rig/queue.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const COMPLAINT = { kind: 'complaint', by: 'simulator', detail: 'spam' } as const;

const createDeferral = (scope: 'message' | 'route' = 'message'): Attempt['outcome'] => ({
  kind: 'deferred',
  reply: { stage: 'rcpt', code: 451, enhanced: '4.7.1', text: 'try again later' },
  reason: 'greylisted',
  scope,
});
const unansweredOutcome: Attempt['outcome'] = {
  kind: 'unanswered',
  reply: { stage: 'content', code: null, enhanced: null, text: 'connection lost' },
};

test('a temporarily refused message is retried after about 1, 5, 15, 30, 60 and 120 minutes, and expires at its maximum age', async () => {
  const maxAgeMs = 4 * HOUR_MS;
  const { readState, clock, store, dispatcher, attempts } = createQueueRig({
    parts: { policy: { maxAgeMs, onUncertain: 'resend' } },
    respond: () => createAttempt(createDeferral()),
  });
  const message = createMessage({ acceptedAt: START });
  store.accept([message]);
  dispatcher.start();
  await clock.advanceUntil(() => readState(message) === 'expired', 5 * HOUR_MS);
  const waitsMinutes = attempts
    .slice(1)
    .map(({ at }, index) => Math.round((at - (attempts[index]?.at ?? 0)) / MINUTE_MS));
  expect(waitsMinutes).toEqual([1, 5, 15, 30, 60, 120]);
  expect(clock.now() - START).toBeGreaterThanOrEqual(maxAgeMs);
  expect(clock.now() - START).toBeLessThan(maxAgeMs + 10_000);
  expect((await store.findMessage(message.id))?.events.filter(({ verb }) => verb === 'deferred')).toHaveLength(
    attempts.length,
  );
});

test('a message with a maximum age of its own is attempted a last time at that age, and then expires', async () => {
  const { readState, clock, store, dispatcher, attempts } = createQueueRig({
    respond: () => createAttempt(createDeferral()),
  });
  const message = createMessage({ acceptedAt: START });
  await store.setAccount('default', { maxAgeMs: 10 * MINUTE_MS }, START);
  store.accept([message]);
  dispatcher.start();
  await clock.advanceUntil(() => readState(message) === 'expired', HOUR_MS);
  expect(attempts.map(({ at }) => Math.round((at - START) / MINUTE_MS))).toEqual([0, 1, 6]);
  expect(Math.round((clock.now() - START) / MINUTE_MS)).toBe(10);
});

test('a new message that is accepted under a lease is attempted from memory', async () => {
  const { clock, store, dispatcher, attempts } = createQueueRig();
  dispatcher.start();
  await clock.advance(1);
  const lease = dispatcher.leaseForNewMessage(clock.now(), 100);
  if (lease === null) throw new Error('no lease');
  const message = createMessage({ acceptedAt: clock.now(), lease });
  store.accept([message]);
  dispatcher.offerMessage({ ...message, attempts: 1, lease });
  await clock.advance(1);
  expect([attempts.length, (await store.findMessage(message.id))?.state]).toEqual([1, 'delivered']);
});

test('an outcome that cannot be recorded is recorded later, and until then no attempt starts and no message is sent again', async () => {
  let isBroken = true;
  const rig = createQueueRig({
    parts: {
      settle: async (settlement) => {
        if (isBroken) throw rig.storeError;
        return (await rig.store.settle(packSettlements([settlement])))[0] ?? 'lost';
      },
    },
  });
  const message = await rig.runMessage(LEASE_MS / 2);
  expect([rig.readState(message), rig.dispatcher.inFlightCount]).toEqual(['sending', 1]);
  const laterMessage = createMessage({ acceptedAt: rig.clock.now() });
  rig.store.accept([laterMessage]);
  await rig.clock.advance(10_000);
  expect(rig.attempts.map(({ id }) => id)).toEqual([message.id]);
  isBroken = false;
  await rig.clock.advance(10_000);
  expect([rig.readState(message), rig.readState(laterMessage)]).toEqual(['delivered', 'delivered']);
  expect([rig.attempts.map(({ id }) => id), rig.dispatcher.inFlightCount]).toEqual([[message.id, laterMessage.id], 0]);
});

test('a failed claim is reported and repeated', async () => {
  let isBroken = true;
  const rig = createQueueRig({
    parts: {
      claim: async (limits, lease, now) => {
        if (isBroken) throw rig.storeError;
        return rig.store.claim(limits, lease, now);
      },
    },
  });
  await rig.runMessage(3_000);
  expect(rig.failures).toContain('claim: the disk is full');
  isBroken = false;
  await rig.clock.advance(3_000);
  expect(rig.attempts).toHaveLength(1);
});

test('after a failed claim, a wake-up that came during the claim causes the next claim without the poll', async () => {
  const firstClaim = Promise.withResolvers<never>();
  let claimCount = 0;
  const rig = createQueueRig({
    parts: {
      claim: async (limits, lease, now) => {
        claimCount += 1;
        return claimCount === 1 ? firstClaim.promise : rig.store.claim(limits, lease, now);
      },
    },
  });
  rig.dispatcher.start();
  const message = createMessage({ acceptedAt: START });
  rig.store.accept([message]);
  rig.dispatcher.wake();
  firstClaim.reject(rig.storeError);
  await rig.clock.advance(10);
  expect([rig.readState(message), rig.failures]).toEqual(['delivered', ['claim: the disk is full']]);
});

test('an unanswered message is sent again with POSTRIDER_ON_UNCERTAIN=resend, and waits for the operator with hold', async () => {
  for (const [onUncertain, state, attemptCount] of [
    ['resend', 'delivered', 2],
    ['hold', 'uncertain', 1],
  ] as const) {
    let answerCount = 0;
    const rig = createQueueRig({
      parts: { policy: { maxAgeMs: 24 * HOUR_MS, onUncertain } },
      respond: () => createAttempt(answerCount++ === 0 ? unansweredOutcome : undefined),
    });
    const message = await rig.runMessage(HOUR_MS);
    expect([rig.readState(message), rig.attempts.length]).toEqual([state, attemptCount]);
  }
});

test('with POSTRIDER_ON_UNCERTAIN=hold, the lease is marked in the store before the transport completes the message, and a message whose lease was lost is not completed', async () => {
  const markedIds: string[] = [];
  const rig = createQueueRig({
    parts: { policy: { maxAgeMs: 24 * HOUR_MS, onUncertain: 'hold' } },
    respond: async ({ id }, beforeCompletion) => {
      if (markedIds.length === 1) await rig.endLeases('hold');
      try {
        await beforeCompletion?.();
        markedIds.push('marked');
      } catch {
        markedIds.push('refused');
        return createAttempt(createDeferral());
      }
      await rig.endLeases('hold');
      markedIds.push((await rig.store.findMessage(id))?.state ?? 'none');
      return createAttempt();
    },
  });
  const message = await rig.runMessage(1_000);
  expect(markedIds).toEqual(['marked', 'uncertain']);
  expect(rig.lostLeases).toEqual([message.id]);
});

test('an error of the transport or of the preparation defers the message, and no message is lost', async () => {
  const rig = createQueueRig({
    respond: () => {
      throw new Error('bug');
    },
  });
  const message = await rig.runMessage(2_000);
  expect(await rig.store.findMessage(message.id)).toMatchObject({ state: 'queued', attempts: 1 });
  expect(rig.failures).toEqual(['attempt: bug']);
});

test('when the circuit breaker opens, leased messages are released to the store without counting an attempt, and an operator can cancel them', async () => {
  let retryAt: number | null = null;
  const rig = createQueueRig({
    concurrency: 1,
    health: {
      ...CLOSED_BREAKER,
      allowsAttempt: () => retryAt === null,
      getRetryAt: () => retryAt,
      recordOutcome: () => {
        retryAt = START + 90_000;
      },
    },
    respond: () => createAttempt(createDeferral('route')),
  });
  const messages = await rig.runMessages(5, 5_000);
  const storedMessages = await Promise.all(messages.map(({ id }) => rig.store.findMessage(id)));
  expect(storedMessages.map((message) => message?.state)).toEqual(Array(5).fill('queued'));
  expect(storedMessages.map((message) => message?.attempts).sort()).toEqual([0, 0, 0, 0, 1]);
  expect(await rig.store.cancelMessage(messages[4]?.id ?? '', START)).toEqual({ kind: 'done' });
});

test('a drain waits for running attempts and releases the other leases without counting an attempt', async () => {
  const pendingAnswers: ((attempt: Attempt) => void)[] = [];
  const rig = createQueueRig({ concurrency: 1, respond: () => new Promise((resolve) => pendingAnswers.push(resolve)) });
  const messages = await rig.runMessages(3, 1_500);
  const drain = rig.dispatcher.drain(60_000);
  await rig.clock.advance(1_000);
  pendingAnswers[0]?.(createAttempt());
  await rig.clock.advance(1_000);
  await drain;
  const storedMessages = await Promise.all(messages.map(({ id }) => rig.store.findMessage(id)));
  expect(storedMessages.map((message) => message?.state).sort()).toEqual(['delivered', 'queued', 'queued']);
  expect(storedMessages.filter((message) => message?.state === 'queued').map((message) => message?.attempts)).toEqual([
    0, 0,
  ]);
});

test('the complaint that a local answer contains is recorded after the delivery, in the same transaction', async () => {
  const rig = createQueueRig({ localAnswer: COMPLAINT });
  const message = await rig.runMessage(2_000);
  const storedMessage = await rig.store.findMessage(message.id);
  expect([storedMessage?.state, storedMessage?.events.map(({ verb }) => verb)]).toEqual([
    'complained',
    ['accepted', 'delivered', 'complained'],
  ]);
});

test('a prepared message is not sent after its account is locked or its recipient is suppressed', async () => {
  let [isLocked, isSuppressed] = [false, false];
  const pendingAnswers: ((attempt: Attempt) => void)[] = [];
  const rig = createQueueRig({
    concurrency: 1,
    parts: { mustNotAttempt: () => isLocked, mayReceive: async () => !isSuppressed },
    respond: () => new Promise((resolve) => pendingAnswers.push(resolve)),
  });
  const messages = await rig.runMessages(6, 100);
  expect(rig.attempts).toHaveLength(1);
  isLocked = true;
  pendingAnswers[0]?.(createAttempt());
  await rig.clock.advance(100);
  expect(rig.attempts).toHaveLength(1);
  [isLocked, isSuppressed] = [false, true];
  await rig.clock.advance(1_100);
  expect(rig.attempts).toHaveLength(1);
  isSuppressed = false;
  const drain = rig.dispatcher.drain(1_000);
  await rig.clock.advance(1_000);
  await drain;
  const storedMessages = await Promise.all(messages.map(({ id }) => rig.store.findMessage(id)));
  expect(storedMessages.map((message) => [message?.state, message?.attempts]).sort()).toEqual([
    ['delivered', 1],
    ...Array(5).fill(['queued', 0]),
  ]);
});

test('a settlement after the lease was recovered changes nothing, and the lost lease is published', async () => {
  const rig = createQueueRig({
    respond: async ({ id }) => {
      await rig.endLeases('resend');
      const { messages } = await rig.store.claim(
        { maxMessages: 1, maxBytes: 1_000 },
        { owner: 'node-b', until: rig.clock.now() + LEASE_MS },
        rig.clock.now(),
      );
      const [claimedMessage] = messages;
      if (claimedMessage !== undefined) await rig.store.settle(packSettlements([createSettlement(claimedMessage)]));
      expect(claimedMessage?.id).toBe(id);
      return createAttempt({
        kind: 'bounced',
        reply: { stage: 'rcpt', code: 550, enhanced: '5.1.1', text: 'no' },
        reason: 'recipient-unknown',
        suppress: true,
      });
    },
  });
  const message = await rig.runMessage(2_000);
  expect([rig.readState(message), rig.lostLeases]).toEqual(['delivered', [message.id]]);
});

test('a drain waits for a running claim and releases the leases of the claim', async () => {
  let answer: (() => void) | null = null;
  const rig = createQueueRig({
    parts: {
      claim: async (limits, lease, now) => {
        const claimResult = await rig.store.claim(limits, lease, now);
        await new Promise<void>((resolve) => {
          answer = resolve;
        });
        return claimResult;
      },
    },
  });
  const message = createMessage({ acceptedAt: START });
  rig.store.accept([message]);
  rig.dispatcher.start();
  let hasEnded = false;
  const drainPromise = rig.dispatcher.drain(60_000).then(() => {
    hasEnded = true;
  });
  await rig.clock.advance(10);
  expect([hasEnded, rig.readState(message)]).toEqual([false, 'sending']);
  (answer as (() => void) | null)?.();
  await rig.clock.advance(0);
  await drainPromise;
  expect(await rig.store.findMessage(message.id)).toMatchObject({ state: 'queued', attempts: 0 });
  expect(rig.attempts).toEqual([]);
});

test('while the circuit breaker is not closed, each probe leases one message, and the other messages get no history entry', async () => {
  const breaker = createRouteHealth({ route: 'default', random: () => 0, publish: () => undefined });
  let leasedCount = 0;
  const rig = createQueueRig({
    health: breaker,
    prepare: async ({ id, from, to, message }: LeasedMessage) => {
      // Another task runs between the claim and the check of the circuit breaker.
      await Promise.resolve();
      return { id, envelope: { from, to, smtputf8: false }, data: Buffer.from(message) };
    },
    parts: {
      claim: async (limits, lease, now) => {
        const claimResult = await rig.store.claim(limits, lease, now);
        leasedCount += claimResult.messages.length;
        return claimResult;
      },
    },
    respond: () => createAttempt(createDeferral('route')),
  });
  const messages = await rig.runMessages(50, 100);
  const [leasedBefore, attemptsBefore] = [leasedCount, rig.attempts.length];
  await rig.clock.advance(20 * MINUTE_MS);
  expect(rig.attempts.length - attemptsBefore).toBeGreaterThan(5);
  expect(leasedCount - leasedBefore).toBe(rig.attempts.length - attemptsBefore);
  const events = (await Promise.all(messages.map(({ id }) => rig.store.findMessage(id)))).map(
    (message) => (message?.events.length ?? 0) - 1,
  );
  expect(events.reduce((sum, n) => sum + n, 0)).toBe(rig.attempts.length);
});

test('an attempt that never ends is aborted and recorded, and the next probe begins', async () => {
  for (const [onUncertain, marksFirstAttempt, state] of [
    ['resend', false, 'delivered'],
    ['hold', false, 'delivered'],
    ['hold', true, 'uncertain'],
  ] as const) {
    const breaker = createRouteHealth({ route: 'default', random: () => 0, publish: () => undefined });
    for (let n = 0; n < 3; n += 1) breaker.recordOutcome(createDeferral('route'), START);
    let answerCount = 0;
    const rig = createQueueRig({
      health: breaker,
      parts: { policy: { maxAgeMs: 24 * HOUR_MS, onUncertain } },
      respond: async (_message, beforeCompletion) => {
        answerCount += 1;
        if (marksFirstAttempt || answerCount > 1) await beforeCompletion?.();
        return answerCount === 1 ? new Promise(() => undefined) : createAttempt();
      },
    });
    const [hangingMessage, laterMessage] = [
      createMessage({ acceptedAt: START }),
      createMessage({ acceptedAt: START + 1 }),
    ];
    rig.store.accept([hangingMessage, laterMessage]);
    rig.dispatcher.start();
    await rig.clock.advance(MAX_ATTEMPT_MS);
    expect([rig.attempts.length, rig.dispatcher.inFlightCount]).toEqual([1, 1]);
    await rig.clock.advance(30 * MINUTE_MS);
    expect([rig.readState(hangingMessage), rig.readState(laterMessage)]).toEqual([state, 'delivered']);
    expect(rig.failures).toEqual(['attempt: the attempt did not end within 10 minutes and was aborted']);
  }
});

test('if the store does not confirm that the lease is marked, the attempt ends before the transport completes the message', async () => {
  let isCompleted = false;
  const rig = createQueueRig({
    parts: {
      policy: { maxAgeMs: 24 * HOUR_MS, onUncertain: 'hold' },
      markTransmitting: () => new Promise(() => undefined),
    },
    respond: async (_message, markTransmitting) => {
      try {
        await markTransmitting?.();
        isCompleted = true;
        return createAttempt();
      } catch {
        return createAttempt(createDeferral());
      }
    },
  });
  const message = await rig.runMessage(40_000);
  expect([isCompleted, rig.readState(message)]).toEqual([false, 'queued']);
});

test('an outcome is published after its commit, even if the store is slow', async () => {
  const commit = Promise.withResolvers<'settled'>();
  const rig = createQueueRig({ parts: { settle: () => commit.promise } });
  await rig.runMessage(2_000);
  expect(rig.publishedEvents.map(({ type }) => type)).toEqual(['attempt.ended']);
  commit.resolve('settled');
  await rig.clock.advance(1);
  expect(rig.publishedEvents.map(({ type }) => type)).toEqual(['attempt.ended', 'message.delivered']);
});

test('a drain ends within its time limit even if an attempt never ends', async () => {
  const rig = createQueueRig({ respond: () => new Promise(() => undefined) });
  const message = await rig.runMessage(1_500);
  let hasEnded = false;
  void rig.dispatcher.drain(5_000).then(() => {
    hasEnded = true;
  });
  await rig.clock.advance(5_001);
  expect([hasEnded, rig.readState(message)]).toEqual([true, 'sending']);
});

test('only an answer of the next hop, and no local answer, changes the reputation of the account', async () => {
  const bouncedOutcome = {
    kind: 'bounced',
    reply: { stage: 'rcpt', code: 550, enhanced: '5.1.1', text: 'no' },
    reason: 'recipient-unknown',
    suppress: true,
  } as const;
  for (const isSimulated of [true, false]) {
    const rig = createQueueRig({
      ...(isSimulated ? { localAnswer: { kind: 'outcome', by: 'simulator' } } : {}),
      respond: () => createAttempt(bouncedOutcome),
    });
    await rig.runMessage(2_000);
    const counts = { emails: isSimulated ? 0 : 1, bounces: isSimulated ? 0 : 1, complaints: 0 };
    expect(await rig.store.readReputation('default', rig.clock.now())).toMatchObject({ kind: 'done', value: counts });
  }
});

test('a step of the clock does not abort a running attempt', async () => {
  const answer = Promise.withResolvers<Attempt>();
  const rig = createQueueRig({ respond: () => answer.promise });
  const message = createMessage({ acceptedAt: START });
  rig.store.accept([message]);
  rig.dispatcher.start();
  await rig.clock.advanceUntil(() => rig.attempts.length === 1, 5_000);
  rig.clock.setForward(2 * LEASE_MS);
  await rig.clock.advance(10_000);
  expect([rig.failures, rig.dispatcher.inFlightCount]).toEqual([[], 1]);
  answer.resolve(createAttempt());
  await rig.clock.advance(1_000);
  expect([rig.readState(message), rig.attempts.length, rig.lostLeases]).toEqual(['delivered', 1, []]);
});

const LEASE: Lease = { owner: 'node-a', until: 1_000 };
const NO_LIMITS = { rate: null };
const RUNNING_TIME_NOW = 5_000_000_000;

function createIntakeRig(answer: AcceptResult | Error, lease: Lease | null, isHeld = false) {
  const calls: string[] = [];
  const offeredMessages: LeasedMessage[] = [];
  const committedMessages: NewMessage[] = [];
  const parts = {
    ages: { getCutoff: (ageMs: number) => RUNNING_TIME_NOW - ageMs },
    commit: async (message: NewMessage) => {
      committedMessages.push(message);
      if (answer instanceof Error) throw answer;
      return answer;
    },
    holds: { isHeldWhenAccepted: () => isHeld },
    transport: {
      answerLocally: (recipient: string) =>
        recipient.startsWith('suppressed@')
          ? { kind: 'suppression' as const, by: 'simulator', detail: 'simulated' }
          : null,
    },
  };
  const dispatcher = {
    leaseForNewMessage: () => lease,
    returnLease: () => void calls.push('returned'),
    offerMessage: (message: LeasedMessage) => {
      calls.push('offered');
      offeredMessages.push(message);
    },
    wake: () => void calls.push('woken'),
  };
  return {
    submit: createIntake({ ...parts, dispatcher }),
    submitWithoutDispatcher: createIntake({ ...parts, dispatcher: null }),
    calls,
    offeredMessages,
    committedMessages,
  };
}

const createAccepted = (state: 'queued' | 'sending' | 'suppressed'): AcceptResult => ({
  kind: 'accepted',
  state,
  limits: NO_LIMITS,
});

test('a message accepted under a lease is offered to the dispatcher from memory, as its first attempt', async () => {
  const { submit, calls, offeredMessages, committedMessages } = createIntakeRig(createAccepted('sending'), LEASE);
  const submittedMessage = createMessage();
  expect(await submit(submittedMessage)).toEqual(createAccepted('sending'));
  expect(calls).toEqual(['offered']);
  expect(committedMessages[0]).toEqual({ ...submittedMessage, lease: LEASE, suppressedBy: null, isHeld: false });
  const { id, accountId, to, from, subject, message, acceptedAt } = submittedMessage;
  expect(offeredMessages).toEqual([
    { id, accountId, to, from, subject, message, acceptedAt, heldMs: 0, attempts: 1, lease: LEASE },
  ]);
});

describe('an unused lease is returned exactly once', () => {
  const unusedCases: readonly (readonly [string, AcceptResult])[] = [
    ['is suppressed', createAccepted('suppressed')],
    ['is replayed', { kind: 'replayed', id: createMessage().id }],
    ['conflicts with an earlier request', { kind: 'idempotency-conflict' }],
    ['belongs to a locked account', { kind: 'locked' }],
    ['exceeds the volume', { kind: 'refused', reason: 'volume-exhausted', limits: NO_LIMITS }],
    ['arrives after the expiry of the volume', { kind: 'refused', reason: 'volume-expired', limits: NO_LIMITS }],
    ['exceeds the rate limit', { kind: 'refused', reason: 'rate-limit-exceeded', limits: NO_LIMITS }],
  ];
  test.each(unusedCases)('if the request %s', async (_label, answer) => {
    const withLease = createIntakeRig(answer, LEASE);
    expect(await withLease.submit(createMessage())).toEqual(answer);
    expect(withLease.calls).toEqual(['returned']);
    const withoutLease = createIntakeRig(answer, null);
    await withoutLease.submit(createMessage());
    expect(withoutLease.calls).toEqual([]);
  });

  test('if the store cannot commit, and the call rejects', async () => {
    const { submit, calls } = createIntakeRig(new StoreError('the disk is full'), LEASE);
    await expect(submit(createMessage())).rejects.toThrow('the disk is full');
    expect(calls).toEqual(['returned']);
  });
});

test('a node without the role deliver stores every message without a lease', async () => {
  const { submitWithoutDispatcher, calls, committedMessages } = createIntakeRig(createAccepted('queued'), LEASE);
  await submitWithoutDispatcher(createMessage());
  expect([calls, committedMessages[0]?.lease]).toEqual([[], null]);
});

test('an idempotency key is valid for 24 hours of running time, even if the clock is set', async () => {
  const { submit, committedMessages } = createIntakeRig(createAccepted('queued'), null);
  const idempotency = { key: 'k', fingerprint: 'aa' };
  await submit(createMessage({ idempotency }));
  expect(committedMessages[0]?.idempotency).toEqual({
    ...idempotency,
    expiredBefore: RUNNING_TIME_NOW - 24 * 3_600_000,
  });
});

test.each([
  [false, ['attempt.alarm_raised']],
  [true, []],
])('the refusal of a message that is a notification (%s) raises the alarms %s', async (isNotification, alarms) => {
  const reply = { stage: 'rcpt', code: 550, enhanced: '5.7.1', text: 'blocked' } as const;
  const { runMessage, publishedEvents } = createQueueRig({
    parts: { isNotification: () => isNotification },
    respond: () => createAttempt({ kind: 'deferred', reply, reason: 'reputation', scope: 'message' }),
  });
  await runMessage(10);
  const types = publishedEvents.map(({ type }) => type);
  expect(types).toContain('attempt.ended');
  expect(types.filter((type) => type === 'attempt.alarm_raised')).toEqual(alarms);
});

test('a new message that a hold stops is accepted without a lease and wakes no dispatcher', async () => {
  const { submit, calls, committedMessages } = createIntakeRig(createAccepted('queued'), LEASE, true);
  await submit(createMessage());
  expect([committedMessages[0]?.lease, committedMessages[0]?.isHeld, calls]).toEqual([null, true, []]);
});

test('a queued message that a hold stops is parked instead of attempted or expired, and is attempted after the release', async () => {
  let isHeld = true;
  const rig = createQueueRig({
    parts: { isHeld: async () => isHeld, policy: { maxAgeMs: MINUTE_MS, onUncertain: 'resend' } },
  });
  const message = createMessage({ acceptedAt: START - HOUR_MS });
  rig.store.accept([message]);
  rig.dispatcher.start();
  await rig.clock.advance(10_000);
  expect([rig.readState(message), rig.attempts]).toEqual(['queued', []]);
  expect(await rig.store.listParked(null, 5)).toMatchObject([{ id: message.id, parked: { reason: 'hold' } }]);
  isHeld = false;
  await rig.store.unpark([message.id], rig.clock.now());
  await rig.clock.advance(2_000);
  expect([rig.readState(message), rig.attempts.length]).toEqual(['delivered', 1]);
});

test('a hold that begins while the message waits for a slot stops it', async () => {
  let isHeld = false;
  const slot = Promise.withResolvers<Attempt>();
  const rig = createQueueRig({ parts: { isHeld: () => isHeld }, concurrency: 1, respond: () => slot.promise });
  const messages = [createMessage({ acceptedAt: START - 2 }), createMessage({ acceptedAt: START - 1 })] as const;
  rig.store.accept(messages);
  rig.dispatcher.start();
  await rig.clock.advance(10);
  isHeld = true;
  slot.resolve(createAttempt());
  await rig.clock.advance(10);
  expect(messages.map(rig.readState)).toEqual(['delivered', 'queued']);
  expect((await rig.store.listParked(null, 5)).map(({ id }) => id)).toEqual([messages[1].id]);
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { LeasedMessage, StateChange } from '../../../src/model/message.ts';
import type { Outcome } from '../../../src/model/outcome.ts';
import { createCircuitBreaker, createSuppressionCheck, LEASE_MS } from '../../../src/queue/attempt.ts';
import { createVirtualClock } from '../../rig/clock.ts';
import { createMessage } from '../../rig/messages.ts';
import { START } from '../../rig/queue.ts';

const createChange = (suppress: StateChange['suppress']): StateChange => ({
  to: 'bounced',
  dueAt: null,
  event: { at: START, verb: 'bounced', by: 'n', detail: null, failure: null, attempt: null },
  suppress,
});

function createCheckRig(answer: boolean) {
  const clock = createVirtualClock(START);
  const queriedIds: string[] = [];
  const check = createSuppressionCheck(clock, async ({ id }) => {
    queriedIds.push(id);
    return answer;
  });
  const createLeasedMessage = (to = 'rita@example.com', accountId = 1): LeasedMessage => ({
    ...createMessage({ to, accountId }),
    attempts: 1,
    lease: { owner: 'n', until: clock.now() + LEASE_MS },
  });
  return { clock, queriedIds, check, createLeasedMessage };
}

test('no message is sent to a recipient that this node has just suppressed, regardless of the letter case of the address', () => {
  const { check, createLeasedMessage } = createCheckRig(true);
  expect(check.mayReceive(createLeasedMessage())).toBe(true);
  check.recordChange(createLeasedMessage('Rita@example.com'), createChange('bounce'));
  expect(check.mayReceive(createLeasedMessage())).toBe(false);
  expect(check.mayReceive(createLeasedMessage('max@example.com'))).toBe(true);
  expect(check.mayReceive(createLeasedMessage('rita@example.com', 2))).toBe(true);
});

test('for a lease older than one second, the node also queries the store, which contains the suppressions of other nodes', async () => {
  for (const answer of [true, false]) {
    const { clock, queriedIds, check, createLeasedMessage } = createCheckRig(answer);
    const message = createLeasedMessage();
    expect(check.mayReceive(message)).toBe(true);
    await clock.advance(1_000);
    expect(await check.mayReceive(message)).toBe(answer);
    expect(queriedIds).toEqual([message.id]);
  }
});

test('five seconds after a suppression, only the store determines the result, so that a removed suppression does not prevent a message', async () => {
  const { clock, check, createLeasedMessage } = createCheckRig(true);
  check.recordChange(createLeasedMessage(), createChange('bounce'));
  await clock.advance(5_000);
  expect(check.mayReceive(createLeasedMessage())).toBe(true);
});

// These tests check that the circuit breaker probes a failing next hop with one attempt at a time, at increasing
// intervals, and closes after the first success.

const reply = { stage: 'connect', code: null, enhanced: null, text: '' } as const;
const UNREACHABLE_OUTCOME: Outcome = { kind: 'deferred', reply, reason: 'connection', scope: 'route' };
const GREYLISTED_OUTCOME: Outcome = { kind: 'deferred', reply, reason: 'greylisted', scope: 'message' };
const DELIVERED_OUTCOME: Outcome = { kind: 'delivered', reply };
const BOUNCED_OUTCOME: Outcome = { kind: 'bounced', reply, reason: 'size', suppress: false };

function createOpenBreaker(jitter = 0) {
  const breaker = createCircuitBreaker({ random: () => jitter, publish: () => undefined });
  for (let n = 0; n < 3; n += 1) breaker.recordOutcome(UNREACHABLE_OUTCOME, 1_000);
  return breaker;
}

describe('the circuit breaker', () => {
  test('opens after exactly three consecutive failures, and a success between failures restarts the count', () => {
    const breaker = createCircuitBreaker({ random: () => 0, publish: () => undefined });
    for (const answer of [DELIVERED_OUTCOME, BOUNCED_OUTCOME, GREYLISTED_OUTCOME]) {
      breaker.recordOutcome(UNREACHABLE_OUTCOME, 0);
      breaker.recordOutcome(UNREACHABLE_OUTCOME, 0);
      expect(breaker.state).toBe('closed');
      breaker.recordOutcome(answer, 0);
    }
    breaker.recordOutcome(UNREACHABLE_OUTCOME, 0);
    breaker.recordOutcome(UNREACHABLE_OUTCOME, 0);
    breaker.recordOutcome({ kind: 'unanswered', reply }, 0);
    expect(breaker.state).toBe('open');
  });

  test('allows no attempt while open, and exactly one probe while half-open', () => {
    const breaker = createOpenBreaker();
    expect(breaker.getRetryAt(1_000)).toBe(3_000);
    expect(breaker.allowsAttempt(2_999)).toBe(false);
    expect(breaker.allowsAttempt(3_000)).toBe(true);
    expect(breaker.state).toBe('half-open');
    expect(breaker.allowsAttempt(3_000)).toBe(false);
    expect(breaker.allowsAttempt(60_000)).toBe(false);
  });

  test.each([
    ['is delivered', DELIVERED_OUTCOME],
    ['is bounced', BOUNCED_OUTCOME],
    ['is deferred for a reason that concerns only this message', GREYLISTED_OUTCOME],
  ])('closes when the probe %s', (_label, outcome) => {
    const breaker = createOpenBreaker();
    breaker.allowsAttempt(3_000);
    breaker.recordOutcome(outcome, 3_100);
    expect(breaker.state).toBe('closed');
    expect(breaker.getRetryAt(3_100)).toBeNull();
    expect([breaker.allowsAttempt(3_100), breaker.allowsAttempt(3_100)]).toEqual([true, true]);
  });

  test('doubles the wait after each failed probe, up to five minutes, and resets it when it closes', () => {
    const breaker = createOpenBreaker();
    const waitsMs: number[] = [];
    let now = 1_000;
    for (let n = 0; n < 10; n += 1) {
      const dueAt = breaker.getRetryAt(now) ?? 0;
      now = dueAt;
      expect(breaker.allowsAttempt(dueAt)).toBe(true);
      breaker.recordOutcome(UNREACHABLE_OUTCOME, dueAt);
      waitsMs.push((breaker.getRetryAt(dueAt) ?? 0) - dueAt);
    }
    expect(waitsMs).toEqual([4, 8, 16, 32, 64, 128, 256, 300, 300, 300].map((seconds) => seconds * 1_000));
    breaker.recordOutcome(DELIVERED_OUTCOME, 9_999_999);
    for (let n = 0; n < 3; n += 1) breaker.recordOutcome(UNREACHABLE_OUTCOME, 9_999_999);
    expect(breaker.getRetryAt(9_999_999)).toBe(10_001_999);
  });

  test('allows another probe if a probe is released or its outcome is never recorded', () => {
    const breaker = createOpenBreaker();
    expect(breaker.allowsAttempt(3_000)).toBe(true);
    breaker.releaseProbe(3_100);
    expect(breaker.allowsAttempt(3_100)).toBe(true);
    expect(breaker.allowsAttempt(3_101)).toBe(false);
    expect(breaker.allowsAttempt(3_100 + 600_000)).toBe(true);
  });

  test('never has two probes at the same time or a wait above five minutes, for any sequence of calls', () => {
    const step = fc.record({ ms: fc.nat(400_000), fails: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const breaker = createCircuitBreaker({ random: () => 0.5, publish: () => undefined });
        let now = 0;
        for (const { ms, fails } of steps) {
          now += ms;
          if (breaker.state === 'open')
            expect((breaker.getRetryAt(now - ms) ?? 0) - (now - ms)).toBeLessThanOrEqual(300_000);
          if (!breaker.allowsAttempt(now)) continue;
          if (breaker.state === 'half-open') expect(breaker.allowsAttempt(now)).toBe(false);
          breaker.recordOutcome(fails ? UNREACHABLE_OUTCOME : DELIVERED_OUTCOME, now);
        }
      }),
    );
  });
});

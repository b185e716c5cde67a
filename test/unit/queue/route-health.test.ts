import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Outcome } from '../../../src/model/outcome.ts';
import { createRouteHealth } from '../../../src/queue/route-health.ts';

// These tests check that the circuit breaker probes a failing next hop with one attempt at a time, at increasing
// intervals, and closes after the first success.

const reply = { stage: 'connect', code: null, enhanced: null, text: '' } as const;
const UNREACHABLE_OUTCOME: Outcome = { kind: 'deferred', reply, reason: 'connection', scope: 'route' };
const GREYLISTED_OUTCOME: Outcome = { kind: 'deferred', reply, reason: 'greylisted', scope: 'message' };
const DELIVERED_OUTCOME: Outcome = { kind: 'delivered', reply };
const BOUNCED_OUTCOME: Outcome = { kind: 'bounced', reply, reason: 'size', suppress: false };

function createOpenBreaker(jitter = 0) {
  const breaker = createRouteHealth({ route: 'default', random: () => jitter, publish: () => undefined });
  for (let n = 0; n < 3; n += 1) breaker.recordOutcome(UNREACHABLE_OUTCOME, 1_000);
  return breaker;
}

describe('the circuit breaker', () => {
  test('opens after exactly three consecutive failures, and a success between failures restarts the count', () => {
    const breaker = createRouteHealth({ route: 'default', random: () => 0, publish: () => undefined });
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
    expect(breaker.getRetryAt(1_000)).toBe(11_000);
    expect(breaker.allowsAttempt(10_999)).toBe(false);
    expect(breaker.allowsAttempt(11_000)).toBe(true);
    expect(breaker.state).toBe('half-open');
    expect(breaker.allowsAttempt(11_000)).toBe(false);
    expect(breaker.allowsAttempt(60_000)).toBe(false);
  });

  test.each([
    ['is delivered', DELIVERED_OUTCOME],
    ['is bounced', BOUNCED_OUTCOME],
    ['is deferred for a reason that concerns only this message', GREYLISTED_OUTCOME],
  ])('closes when the probe %s', (_label, outcome) => {
    const breaker = createOpenBreaker();
    breaker.allowsAttempt(11_000);
    breaker.recordOutcome(outcome, 11_100);
    expect(breaker.state).toBe('closed');
    expect(breaker.getRetryAt(11_100)).toBeNull();
    expect([breaker.allowsAttempt(11_100), breaker.allowsAttempt(11_100)]).toEqual([true, true]);
  });

  test('doubles the wait after each failed probe, up to two minutes, and starts anew after ten minutes without a failure', () => {
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
    expect(waitsMs).toEqual([20, 40, 80, 120, 120, 120, 120, 120, 120, 120].map((seconds) => seconds * 1_000));
    breaker.recordOutcome(DELIVERED_OUTCOME, 9_000_000);
    for (let n = 0; n < 3; n += 1) breaker.recordOutcome(UNREACHABLE_OUTCOME, 9_999_999);
    expect(breaker.getRetryAt(9_999_999)).toBe(10_009_999);
  });

  test('allows another probe if a probe is released or its outcome is never recorded', () => {
    const breaker = createOpenBreaker();
    expect(breaker.allowsAttempt(11_000)).toBe(true);
    breaker.releaseProbe(11_100);
    expect(breaker.allowsAttempt(11_100)).toBe(true);
    expect(breaker.allowsAttempt(11_101)).toBe(false);
    expect(breaker.allowsAttempt(11_100 + 600_000)).toBe(true);
  });

  test('never has two probes at the same time or a wait above six minutes, for any sequence of calls', () => {
    const step = fc.record({ ms: fc.nat(400_000), fails: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const breaker = createRouteHealth({ route: 'default', random: () => 0.5, publish: () => undefined });
        let now = 0;
        for (const { ms, fails } of steps) {
          now += ms;
          if (breaker.state === 'open')
            expect((breaker.getRetryAt(now - ms) ?? 0) - (now - ms)).toBeLessThanOrEqual(320_000);
          if (!breaker.allowsAttempt(now)) continue;
          if (breaker.state === 'half-open') expect(breaker.allowsAttempt(now)).toBe(false);
          breaker.recordOutcome(fails ? UNREACHABLE_OUTCOME : DELIVERED_OUTCOME, now);
        }
      }),
    );
  });
});

const THROTTLED_OUTCOME: Outcome = { kind: 'deferred', reply, reason: 'throttled', scope: 'route' };

test('after a return one failure opens it again, and each return that does not last doubles the first wait', () => {
  const health = createOpenBreaker();
  const waitsMs: number[] = [];
  let now = 1_000;
  for (let n = 0; n < 7; n += 1) {
    now = health.getRetryAt(now) ?? 0;
    health.allowsAttempt(now);
    health.recordOutcome(DELIVERED_OUTCOME, now);
    now += 5_000;
    health.recordOutcome(UNREACHABLE_OUTCOME, now);
    waitsMs.push((health.getRetryAt(now) ?? 0) - now);
  }
  expect(waitsMs).toEqual([20, 40, 80, 160, 320, 320, 320].map((seconds) => seconds * 1_000));
});

test('the traffic returns within a minute', () => {
  const health = createOpenBreaker();
  health.allowsAttempt(11_000);
  health.recordOutcome(DELIVERED_OUTCOME, 11_000);
  expect(health.failingSince).toBeNull();
  expect([11_000, 41_000, 71_000].map((at) => Math.round(health.getShare(at) * 100))).toEqual([5, 55, 100]);
});

test('throttling halves the attempts at the same time and pauses them; a minute without a success counts as a failure', () => {
  const health = createRouteHealth({ route: 'a', random: () => 0, publish: () => undefined });
  expect(health.getConcurrency(20, 0)).toBe(20);
  health.recordOutcome(THROTTLED_OUTCOME, 0);
  expect([health.state, health.isThrottled]).toEqual(['closed', true]);
  expect([health.getConcurrency(20, 999), health.getConcurrency(20, 1_000)]).toEqual([0, 10]);
  health.recordOutcome(DELIVERED_OUTCOME, 1_500);
  expect([health.isThrottled, health.getConcurrency(20, 1_500)]).toEqual([false, 11]);
  for (let now = 2_000; now < 62_000; now += 5_000) health.recordOutcome(THROTTLED_OUTCOME, now);
  expect(health.state).toBe('closed');
  health.recordOutcome(THROTTLED_OUTCOME, 62_000);
  expect([health.state, health.failingSince]).toEqual(['open', 62_000]);
});

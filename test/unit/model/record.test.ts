import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { computeRetryDelayMs, decideAttemptChange, isAllowedTransition } from '../../../src/model/message.ts';
import type { Outcome, Reason, Stage } from '../../../src/model/outcome.ts';
import { createAttempt } from '../../rig/messages.ts';

const MINUTE_MS = 60_000;
const stage = fc.constantFrom<Stage>(
  'connect',
  'greeting',
  'ehlo',
  'starttls',
  'auth',
  'mail',
  'rcpt',
  'data',
  'content',
);
const reason = fc.constantFrom<Reason>(
  'recipient-unknown',
  'content',
  'policy',
  'reputation',
  'configuration',
  'unknown',
);
const reply = fc.record({
  stage,
  code: fc.option(fc.integer({ min: 200, max: 599 })),
  enhanced: fc.option(fc.constant('4.2.2')),
  text: fc.string(),
});
const outcome: fc.Arbitrary<Outcome> = fc.oneof(
  fc.record({ kind: fc.constant('delivered' as const), reply }),
  fc.record({ kind: fc.constant('bounced' as const), reply, reason, suppress: fc.boolean() }),
  fc.record({
    kind: fc.constant('deferred' as const),
    reply,
    reason,
    scope: fc.constantFrom('message' as const, 'route' as const),
  }),
  fc.record({ kind: fc.constant('unanswered' as const), reply }),
);
const message = fc.record({ acceptedAt: fc.integer({ min: 0, max: 1e9 }), attempts: fc.integer({ min: 1, max: 60 }) });
const policy = fc.record({
  maxAgeMs: fc.integer({ min: 1, max: 10 * 86_400_000 }),
  onUncertain: fc.constantFrom('resend' as const, 'hold' as const),
});
const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

test('every change is an allowed transition, only a queued message has a due time, and only the outcomes bounced and delivered end a message as such', () => {
  fc.assert(
    fc.property(
      outcome,
      message,
      policy,
      fc.nat(1e9),
      random,
      (outcomeCase, messageCase, policyCase, ageMs, jitter) => {
        const now = messageCase.acceptedAt + ageMs;
        const change = decideAttemptChange(messageCase, createAttempt(outcomeCase), null, policyCase, 'n', now, jitter);
        expect(isAllowedTransition('sending', change.to, 'queue')).toBe(true);
        expect(change.to === 'bounced').toBe(outcomeCase.kind === 'bounced');
        expect(change.to === 'delivered').toBe(outcomeCase.kind === 'delivered');
        expect(change.suppress === 'bounce').toBe(outcomeCase.kind === 'bounced' && outcomeCase.suppress);
        expect(change.dueAt !== null).toBe(change.to === 'queued');
        if (change.dueAt !== null) {
          expect(change.dueAt).toBeGreaterThanOrEqual(now);
          expect(change.dueAt).toBeLessThanOrEqual(messageCase.acceptedAt + policyCase.maxAgeMs);
        }
      },
    ),
  );
});

describe('the retry schedule', () => {
  test.each([
    [1, 1],
    [2, 5],
    [3, 15],
    [4, 30],
    [5, 60],
    [6, 120],
    [7, 120],
    [100, 120],
  ])('after attempt %i, has a delay of about %i minutes', (attempts, minutes) => {
    expect(computeRetryDelayMs(attempts, 0.5)).toBe(minutes * MINUTE_MS);
    expect(computeRetryDelayMs(attempts, 0)).toBe(minutes * MINUTE_MS * 0.85);
    expect(computeRetryDelayMs(attempts, 0.999999)).toBeLessThan(minutes * MINUTE_MS * 1.15 + 1);
  });
});

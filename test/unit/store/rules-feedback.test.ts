/** Tests the rules for reports and reputation. */
import { describe, expect, test } from 'vitest';
import { evaluateReputation } from '../../../src/store/rules/reputation.ts';

describe('reputation', () => {
  const FEW_BOUNCES = { emails: 1_000, bounces: 1, complaints: 0 };
  const THRESHOLDS = { bounceRate: 0.1, complaintRate: 0.0015 };
  test.each([
    ['good', { emails: 1_000, bounces: 1, complaints: 0 }, 'none', 'warn'],
    ['half of a threshold', { emails: 1_000, bounces: 50, complaints: 0 }, 'warn', 'none'],
    ['a threshold', { emails: 1_000, bounces: 100, complaints: 0 }, 'lock', 'lock'],
    ['five complaints about few messages', { emails: 9, bounces: 0, complaints: 5 }, 'lock', 'lock'],
  ] as const)('%s is evaluated, and the first warning stays unchanged until it ends', (_, counts, unwarned, warned) => {
    const window = { ...counts, provenBounces: counts.bounces, provenComplaints: counts.complaints };
    expect([
      evaluateReputation(window, THRESHOLDS, 'lock', false).kind,
      evaluateReputation(window, THRESHOLDS, 'lock', true).kind,
    ]).toEqual([unwarned, warned]);
  });

  test('a warning is removed when the counts of the window no longer exceed a threshold', () => {
    expect(
      evaluateReputation({ ...FEW_BOUNCES, provenBounces: 1, provenComplaints: 0 }, THRESHOLDS, 'lock', true),
    ).toEqual({
      kind: 'warn',
      warning: null,
    });
  });
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type TokenBucket, takeTokens } from '../../../src/store/rules/token-bucket.ts';

const NOW = Date.UTC(2031, 0, 1);
const request = fc.record({
  perSecond: fc.constantFrom(0.25, 1, 2.5, 10),
  burst: fc.integer({ min: 1, max: 20 }),
  requested: fc.nat(10),
  passedMs: fc.integer({ min: -1_000, max: 5_000 }),
});

test('a token bucket never grants more tokens than requested, or than its burst and the elapsed time allow', () => {
  fc.assert(
    fc.property(fc.array(request, { minLength: 1, maxLength: 30 }), fc.nat(9), (requests, fixed) => {
      const { perSecond, burst } = requests[fixed % requests.length] ?? { perSecond: 1, burst: 1 };
      let bucket: TokenBucket | null = null;
      let now = NOW;
      let grantedCount = 0;
      let totalPassedMs = 0;
      for (const { requested, passedMs } of requests) {
        now += passedMs;
        totalPassedMs += Math.max(0, passedMs);
        const result = takeTokens(bucket, { accountId: 1, perSecond, burst, requested }, now);
        bucket = result.bucket;
        grantedCount += result.answer.granted;
        expect(result.answer.granted).toBeLessThanOrEqual(requested);
        expect(result.answer.remaining).toBeGreaterThanOrEqual(0);
        expect(result.answer.remaining).toBeLessThanOrEqual(burst);
        expect(grantedCount).toBeLessThanOrEqual(burst + (totalPassedMs * perSecond) / 1_000 + 1e-6);
      }
    }),
    { seed: 13 },
  );
});

test('an empty bucket reports when the next token is available, and grants it then', () => {
  const take = (bucket: TokenBucket | null, at: number) =>
    takeTokens(bucket, { accountId: 1, perSecond: 2, burst: 1, requested: 1 }, at);
  const emptied = take(null, NOW);
  expect(emptied.answer).toEqual({ granted: 1, remaining: 0, nextTokenMs: 500 });
  expect(take(emptied.bucket, NOW + 500).answer.granted).toBe(1);
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { batchTokenRequests, SharedThrottle, Throttle, type ThrottleResult } from '../../../src/http/throttle.ts';
import type { TokenRequest } from '../../../src/model/node.ts';

test('the throttle admits the burst, then one request per interval, and reports the exact time of the next token', () => {
  const throttle = new Throttle();
  const limit = { perSecond: 4, burst: 3 };
  expect([0, 0, 0].map((now) => throttle.takeToken(1, limit, now).ok)).toEqual([true, true, true]);
  expect(throttle.takeToken(1, limit, 0)).toEqual({ ok: false, retryAfterMs: 250, resetMs: 750 });
  expect(throttle.takeToken(1, limit, 249)).toMatchObject({ ok: false, retryAfterMs: 1 });
  expect(throttle.takeToken(1, limit, 250)).toEqual({ ok: true, remaining: 0, resetMs: 750 });
});

test('the throttle never admits more requests than burst + rate × time, and admits a client that waits for retryAfterMs', () => {
  const limits = fc.record({
    perSecond: fc.double({ min: 0.05, max: 5000, noNaN: true }),
    burst: fc.integer({ min: 1, max: 500 }),
  });
  fc.assert(
    fc.property(limits, fc.array(fc.nat(400), { maxLength: 300 }), (limit, delaysMs) => {
      const throttle = new Throttle();
      let now = 0;
      let passedCount = 0;
      let allowedAt = 0;
      for (const delayMs of delaysMs) {
        now += delayMs;
        const result = throttle.takeToken(7, limit, now);
        if (!result.ok) {
          allowedAt = now + result.retryAfterMs;
          continue;
        }
        passedCount += 1;
        expect(now).toBeGreaterThanOrEqual(allowedAt);
        expect(result.remaining).toBeLessThan(limit.burst);
        expect(passedCount).toBeLessThanOrEqual(limit.burst + (now * limit.perSecond) / 1000 + 1e-3);
      }
      const lastResult = throttle.takeToken(7, limit, now);
      if (!lastResult.ok) expect(throttle.takeToken(7, limit, now + lastResult.retryAfterMs).ok).toBe(true);
    }),
  );
});

test('a changed limit applies from the next request, and each account has its own bucket', () => {
  const throttle = new Throttle();
  expect(throttle.takeToken(1, { perSecond: 1, burst: 1 }, 0).ok).toBe(true);
  expect(throttle.takeToken(1, { perSecond: 1, burst: 1 }, 0).ok).toBe(false);
  expect(throttle.takeToken(2, { perSecond: 1, burst: 1 }, 0).ok).toBe(true);
  expect(throttle.takeToken(1, { perSecond: 1000, burst: 5 }, 0).ok).toBe(false);
  expect(throttle.takeToken(1, { perSecond: 1000, burst: 5 }, 5)).toMatchObject({ ok: true, remaining: 4 });
  expect(throttle.takeToken(1, { perSecond: 1, burst: 2 }, 5)).toMatchObject({ ok: true, remaining: 1 });
});

test('a clock that is set back by one hour does not block an account', () => {
  const throttle = new Throttle();
  const limit = { perSecond: 1, burst: 1 };
  throttle.takeToken(1, limit, 3_600_000);
  expect(throttle.takeToken(1, limit, 0)).toMatchObject({ ok: false, retryAfterMs: 1000 });
  expect(throttle.takeToken(1, limit, 1000).ok).toBe(true);
});

test('full buckets are removed', () => {
  const throttle = new Throttle();
  for (let account = 0; account < 50_000; account += 1)
    throttle.takeToken(account, { perSecond: 10, burst: 1 }, account);
  expect(throttle.size).toBeLessThan(3000);
});

/** Creates a shared bucket like that of the store. The test sets the time of the bucket. */
function createSharedBucket() {
  const time = { now: 0 };
  const counters = { queries: 0 };
  let tokens: number | null = null;
  let refilledAt = 0;
  const requestTokens = async ({ perSecond, burst, requested }: TokenRequest) => {
    counters.queries += 1;
    tokens = Math.min(burst, (tokens ?? burst) + ((time.now - refilledAt) * perSecond) / 1000);
    refilledAt = time.now;
    const grantedCount = Math.min(Math.floor(tokens), requested);
    tokens -= grantedCount;
    return {
      granted: grantedCount,
      remaining: Math.floor(tokens),
      nextTokenMs: tokens >= 1 ? 0 : Math.ceil(((1 - tokens) * 1000) / perSecond),
    };
  };
  return { time, counters, requestTokens };
}

const failOnError = (error: unknown) => {
  throw error;
};

async function countPassedRequests(
  throttle: SharedThrottle,
  count: number,
  limit: { perSecond: number; burst: number },
  now: number,
) {
  let passedCount = 0;
  for (let n = 0; n < count; n += 1) if ((await throttle.takeToken(1, limit, now)).ok) passedCount += 1;
  return passedCount;
}

test('three nodes together allow exactly as many requests as the burst', async () => {
  const sharedBucket = createSharedBucket();
  const limit = { perSecond: 10, burst: 20 };
  const nodes = [1, 2, 3].map(() => new SharedThrottle(sharedBucket.requestTokens, failOnError));
  const passedCounts = await Promise.all(nodes.map((node) => countPassedRequests(node, 30, limit, 0)));
  expect(passedCounts.reduce((sum, count) => sum + count, 0)).toBe(20);
});

test('a throttle with a high rate needs less than one query of the store per five admitted requests, and never exceeds the limit', async () => {
  const sharedBucket = createSharedBucket();
  const limit = { perSecond: 1_000, burst: 1_000 };
  const nodes = [1, 2].map(() => new SharedThrottle(sharedBucket.requestTokens, failOnError));
  let passedCount = 0;
  for (; sharedBucket.time.now < 1_000; sharedBucket.time.now += 10) {
    for (const node of nodes) passedCount += await countPassedRequests(node, 30, limit, sharedBucket.time.now);
  }
  expect(passedCount).toBeLessThanOrEqual(2_000 + 100);
  expect(passedCount).toBeGreaterThan(1_800);
  expect(sharedBucket.counters.queries).toBeLessThan(passedCount / 5);
});

test('requests of an account above its limit are refused without a query until the next token is available', async () => {
  const sharedBucket = createSharedBucket();
  const limit = { perSecond: 2, burst: 1 };
  const throttle = new SharedThrottle(sharedBucket.requestTokens, failOnError);
  expect(await countPassedRequests(throttle, 1, limit, 0)).toBe(1);
  await countPassedRequests(throttle, 1, limit, 0);
  const { queries } = sharedBucket.counters;
  expect(await countPassedRequests(throttle, 100, limit, 0)).toBe(0);
  expect(sharedBucket.counters.queries).toBe(queries);
  const refusal = (await throttle.takeToken(1, limit, 0)) as Extract<ThrottleResult, { ok: false }>;
  expect(refusal.retryAfterMs).toBe(500);
  sharedBucket.time.now = 500;
  expect(await countPassedRequests(throttle, 1, limit, 500)).toBe(1);
});

test('tokens that a node takes in advance expire after a tenth of a second', async () => {
  const sharedBucket = createSharedBucket();
  const limit = { perSecond: 100, burst: 100 };
  const throttle = new SharedThrottle(sharedBucket.requestTokens, failOnError);
  await throttle.takeToken(1, limit, 0);
  const { queries } = sharedBucket.counters;
  await throttle.takeToken(1, limit, 1_000);
  expect(sharedBucket.counters.queries).toBe(queries + 1);
});

test('if the store does not respond, requests are admitted and the error is reported', async () => {
  const errors: unknown[] = [];
  const throttle = new SharedThrottle(
    () => Promise.reject(new Error('the store does not respond')),
    (error) => errors.push(error),
  );
  expect((await throttle.takeToken(1, { perSecond: 1, burst: 1 }, 0)).ok).toBe(true);
  expect(errors).toHaveLength(1);
});

test('token requests of one iteration of the event loop are sent in one batch, and each gets its own result', async () => {
  const batches: number[] = [];
  const requestTokens = batchTokenRequests(
    async (batch) => {
      batches.push(batch.length);
      return batch.map(({ requested }) => ({ granted: requested, remaining: 0, nextTokenMs: 0 }));
    },
    () => 0,
  );
  const request = (accountId: number, requested: number) => ({ accountId, perSecond: 1, burst: 9, requested });
  const grants = await Promise.all([requestTokens(request(1, 1)), requestTokens(request(2, 5))]);
  expect([batches, grants.map(({ granted }) => granted)]).toEqual([[2], [1, 5]]);
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Throttle } from '../../../src/http/throttle.ts';

test('lets the burst through, then one for each interval, and says exactly when the next may come', () => {
  const throttle = new Throttle();
  const limit = { perSecond: 4, burst: 3 };
  expect([0, 0, 0].map((now) => throttle.take(1, limit, now).ok)).toEqual([true, true, true]);
  expect(throttle.take(1, limit, 0)).toEqual({ ok: false, retryAfterMs: 250, resetMs: 750 });
  expect(throttle.take(1, limit, 249)).toMatchObject({ ok: false, retryAfterMs: 1 });
  expect(throttle.take(1, limit, 250)).toEqual({ ok: true, left: 0, resetMs: 750 });
});

test('never passes more than burst + rate × time, never refuses a client that keeps to its answers', () => {
  const limits = fc.record({
    perSecond: fc.double({ min: 0.05, max: 5000, noNaN: true }),
    burst: fc.integer({ min: 1, max: 500 }),
  });
  fc.assert(
    fc.property(limits, fc.array(fc.nat(400), { maxLength: 300 }), (limit, pauses) => {
      const throttle = new Throttle();
      let now = 0;
      let passed = 0;
      let allowedAt = 0;
      for (const pause of pauses) {
        now += pause;
        const answer = throttle.take(7, limit, now);
        if (!answer.ok) {
          allowedAt = now + answer.retryAfterMs;
          continue;
        }
        passed += 1;
        expect(now).toBeGreaterThanOrEqual(allowedAt);
        expect(answer.left).toBeLessThan(limit.burst);
        expect(passed).toBeLessThanOrEqual(limit.burst + (now * limit.perSecond) / 1000 + 1e-3);
      }
      const last = throttle.take(7, limit, now);
      if (!last.ok) expect(throttle.take(7, limit, now + last.retryAfterMs).ok).toBe(true);
    }),
  );
});

test('a changed limit counts from the next request; accounts do not share', () => {
  const throttle = new Throttle();
  expect(throttle.take(1, { perSecond: 1, burst: 1 }, 0).ok).toBe(true);
  expect(throttle.take(1, { perSecond: 1, burst: 1 }, 0).ok).toBe(false);
  expect(throttle.take(2, { perSecond: 1, burst: 1 }, 0).ok).toBe(true);
  expect(throttle.take(1, { perSecond: 1000, burst: 5 }, 0).ok).toBe(false);
  expect(throttle.take(1, { perSecond: 1000, burst: 5 }, 5)).toMatchObject({ ok: true, left: 4 - 0 });
  expect(throttle.take(1, { perSecond: 1, burst: 2 }, 5)).toMatchObject({ ok: true, left: 1 });
});

test('a clock that goes back an hour locks nobody out', () => {
  const throttle = new Throttle();
  const limit = { perSecond: 1, burst: 1 };
  throttle.take(1, limit, 3_600_000);
  expect(throttle.take(1, limit, 0)).toMatchObject({ ok: false, retryAfterMs: 1000 });
  expect(throttle.take(1, limit, 1000).ok).toBe(true);
});

test('full buckets are forgotten', () => {
  const throttle = new Throttle();
  for (let account = 0; account < 50_000; account += 1) throttle.take(account, { perSecond: 10, burst: 1 }, account);
  expect(throttle.size).toBeLessThan(3000);
});

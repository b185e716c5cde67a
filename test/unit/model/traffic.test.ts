import fc from 'fast-check';
import { expect, test } from 'vitest';
import { addCounts, computePercentile, getLatencyBucket, MAX_LATENCY_BUCKET } from '../../../src/model/traffic.ts';

function countLatencies(latencies: readonly number[]): Map<number, number> {
  const sums = new Map<number, number>();
  for (const latency of latencies) addCounts(sums, new Map([[getLatencyBucket(latency), 1]]));
  return sums;
}

test('a percentile of latencies from one millisecond to 24 days differs from the exact value by at most 10 %', () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: 0, max: 31, noNaN: true }), { minLength: 1, maxLength: 200 }),
      fc.constantFrom(0.5, 0.9, 0.99),
      (powers, share) => {
        const latencies = powers.map((power) => 2 ** power).sort((a, b) => a - b);
        const exactLatency = latencies[Math.ceil(share * latencies.length) - 1] ?? 0;
        const estimate = computePercentile(countLatencies(latencies), share) ?? Number.NaN;
        expect(estimate).toBeGreaterThanOrEqual(exactLatency / 1.1 - 0.5);
        expect(estimate).toBeLessThanOrEqual(exactLatency * 1.1 + 0.5);
      },
    ),
  );
});

test('a percentile of no values is null, and every latency has a bucket', () => {
  expect(computePercentile(new Map(), 0.5)).toBeNull();
  expect(computePercentile(new Map([[3, 0]]), 0.5)).toBeNull();
  expect([-5, 0, 1].map(getLatencyBucket)).toEqual([0, 0, 0]);
  expect([1e12, Number.MAX_SAFE_INTEGER].map(getLatencyBucket)).toEqual([MAX_LATENCY_BUCKET, MAX_LATENCY_BUCKET]);
  expect(computePercentile(countLatencies([1]), 0.99)).toBe(1);
});

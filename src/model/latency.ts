/**
 * The time from accepted to delivered, counted on a scale of equal ratios: eight buckets for each doubling, from a millisecond to
 * a month. So a percentile read out of the counts is at most a tenth off (2^(1/8) is 1.09), whatever its size, and half a millisecond
 * by rounding. Times between 10 ms and 10 s are 80 buckets, about half a kilobyte of a row. Pure.
 */

/** Counts by bucket, sparse. */
export type Latencies = ReadonlyMap<number, number>;

const PER_DOUBLING = 8;
/** The last one holds everything longer than about 50 days. */
export const LAST_BUCKET = 256;

/** The bucket of a time in ms; what a clock set back makes negative is in the first. */
export function latencyBucket(ms: number): number {
  return ms <= 1 ? 0 : Math.min(LAST_BUCKET, Math.ceil(Math.log2(ms) * PER_DOUBLING));
}

/** The longest time of a bucket, in ms. */
function upperMs(bucket: number): number {
  return 2 ** (bucket / PER_DOUBLING);
}

/** Adds `more` to `sums`. */
export function addLatencies(sums: Map<number, number>, more: Latencies): void {
  for (const [bucket, count] of more) sums.set(bucket, (sums.get(bucket) ?? 0) + count);
}

/** The time, in whole ms, within which the part `share` (0 to 1) of all were delivered, interpolated; null where there are none. */
export function percentile(latencies: Latencies, share: number): number | null {
  const buckets = [...latencies].filter(([, count]) => count > 0).sort(([a], [b]) => a - b);
  const total = buckets.reduce((sum, [, count]) => sum + count, 0);
  if (total === 0) return null;
  const wanted = share * total;
  let before = 0;
  for (const [bucket, count] of buckets) {
    if (before + count >= wanted) {
      const lower = bucket === 0 ? 0 : upperMs(bucket - 1);
      return Math.round(lower + ((upperMs(bucket) - lower) * (wanted - before)) / count);
    }
    before += count;
  }
  return Math.round(upperMs(buckets.at(-1)?.[0] ?? 0));
}

/**
 * Counts of accepted, delivered and failed messages, per minute and per hour. Each node writes complete rows under its
 * own name, so no node waits for another, and a repeated write changes nothing.
 */

import { FAILURE_CATEGORIES, FAILURE_CLASSES, type Failure } from './failure.ts';

export const TRAFFIC_COUNTS = [
  'accepted',
  'delivered',
  'deferred',
  'bounced',
  'complained',
  'suppressed',
  'expired',
  'ended',
  'alarmed',
  'confirmed',
] as const;

/**
 * `ended`: became terminal, except through a later report or a command of another process. `alarmed`: refusals that
 * concern this service itself, and messages that could not be signed. `confirmed`: the provider reported the delivery.
 */
export type TrafficCount = (typeof TRAFFIC_COUNTS)[number];
type TrafficCounts = Readonly<Record<TrafficCount, number>>;

export interface Traffic extends TrafficCounts {
  readonly latencies: Latencies;
  readonly confirmations: Latencies;
  readonly bounces: FailureCounts;
}

export const MINUTE_MS = 60_000;
export const HOUR_MS = 3_600_000;

/** Of one node. */
export interface TrafficRow extends Traffic {
  readonly spanMs: typeof MINUTE_MS | typeof HOUR_MS;
  /** A multiple of `spanMs`. */
  readonly at: number;
}

export interface TrafficStep extends Traffic {
  readonly at: number;
}

/** `bucket:count` pairs, separated by spaces. Such texts joined with spaces represent the sums of their counts. */
export function formatLatencies(latencies: Latencies): string {
  return [...latencies].map(([bucket, count]) => `${bucket}:${count}`).join(' ');
}

export function parseLatencies(text: string): Latencies {
  const sums = new Map<number, number>();
  for (const pair of text.split(' ')) {
    const colonIndex = pair.indexOf(':');
    if (colonIndex <= 0) continue;
    const bucket = Number(pair.slice(0, colonIndex));
    sums.set(bucket, (sums.get(bucket) ?? 0) + Number(pair.slice(colonIndex + 1)));
  }
  return sums;
}

/** The keys are those of `getFailureKey`. */
export type FailureCounts = ReadonlyMap<string, number>;

/** Such as `hard/mailbox-unknown`. There are 39 different keys. */
export function getFailureKey({ class: failureClass, category }: Failure): string {
  return `${failureClass}/${category}`;
}

export function formatFailureCounts(counts: FailureCounts): string {
  return [...counts].map(([key, count]) => `${key}:${count}`).join(' ');
}

export function parseFailureCounts(text: string): FailureCounts {
  const sums = new Map<string, number>();
  for (const pair of text.split(' ')) {
    const colonIndex = pair.indexOf(':');
    if (colonIndex <= 0) continue;
    const key = pair.slice(0, colonIndex);
    sums.set(key, (sums.get(key) ?? 0) + Number(pair.slice(colonIndex + 1)));
  }
  return sums;
}

export function listFailureCounts(counts: FailureCounts): readonly (Failure & { readonly count: number })[] {
  return FAILURE_CLASSES.flatMap((failureClass) =>
    FAILURE_CATEGORIES.map((category) => {
      const failure = { class: failureClass, category };
      return { ...failure, count: counts.get(getFailureKey(failure)) ?? 0 };
    }),
  )
    .filter(({ count }) => count > 0)
    .sort((a, b) => b.count - a.count);
}

export function getRowSpanMs(stepMs: number): TrafficRow['spanMs'] {
  return stepMs % HOUR_MS === 0 ? HOUR_MS : MINUTE_MS;
}

export function readTrafficCounts(readColumn: (column: string) => number): TrafficCounts {
  return Object.fromEntries(TRAFFIC_COUNTS.map((name) => [name, readColumn(name)])) as Record<TrafficCount, number>;
}

// Delivery times are counted in buckets, eight per doubling, from 1 ms to about 50 days. The error of a percentile is
// at most 10 % (2^(1/8) is 1.09). Times between 10 ms and 10 s need 80 buckets, about half a kilobyte in a row.

/** By bucket. */
export type Latencies = ReadonlyMap<number, number>;

const BUCKETS_PER_DOUBLING = 8;
/** All times longer than 45.6 days. */
export const MAX_LATENCY_BUCKET = 256;

/** The first bucket also contains negative times, which occur if the clock was set back. */
export function getLatencyBucket(ms: number): number {
  return ms <= 1 ? 0 : Math.min(MAX_LATENCY_BUCKET, Math.ceil(Math.log2(ms) * BUCKETS_PER_DOUBLING));
}

function getMaxBucketMs(bucket: number): number {
  return 2 ** (bucket / BUCKETS_PER_DOUBLING);
}

export function addCounts<Key>(sums: Map<Key, number>, added: ReadonlyMap<Key, number>): void {
  for (const [key, count] of added) sums.set(key, (sums.get(key) ?? 0) + count);
}

/** In whole ms, interpolated within a bucket. `fraction` is from 0 to 1. Null without deliveries. */
export function computePercentile(latencies: Latencies, fraction: number): number | null {
  const buckets = [...latencies].filter(([, count]) => count > 0).sort(([a], [b]) => a - b);
  const total = buckets.reduce((sum, [, count]) => sum + count, 0);
  if (total === 0) return null;
  const targetCount = fraction * total;
  let countBefore = 0;
  for (const [bucket, count] of buckets) {
    if (countBefore + count >= targetCount) {
      const lowerBoundMs = bucket === 0 ? 0 : getMaxBucketMs(bucket - 1);
      return Math.round(lowerBoundMs + ((getMaxBucketMs(bucket) - lowerBoundMs) * (targetCount - countBefore)) / count);
    }
    countBefore += count;
  }
  return Math.round(getMaxBucketMs(buckets.at(-1)?.[0] ?? 0));
}

/**
 * The types and functions of the traffic time series: counts of accepted, delivered and failed messages, per minute and
 * per hour. Each node writes complete rows under its own name. Therefore no node waits for another, and a repeated
 * write does not change the counts.
 */

import { FAILURE_CATEGORIES, FAILURE_CLASSES, type Failure } from './failure.ts';

/** The names of the counts, in the order of the columns. */
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
 * `ended`: messages that reached a terminal state. A report that changes the state of such a message does not increase
 * this count. Messages that a command in another process cancelled are not counted. `alarmed`: refusals that concern
 * this service itself, and attempts that failed because the message could not be signed. `confirmed`: messages whose
 * delivery the provider reported.
 */
export type TrafficCount = (typeof TRAFFIC_COUNTS)[number];
type TrafficCounts = Readonly<Record<TrafficCount, number>>;

export interface Traffic extends TrafficCounts {
  /** The times from acceptance to delivery. */
  readonly latencies: Latencies;
  /** The times from acceptance to the confirmation by the provider. */
  readonly confirmations: Latencies;
  /** The bounced messages by failure. */
  readonly bounces: FailureCounts;
}

export const MINUTE_MS = 60_000;
export const HOUR_MS = 3_600_000;

/** The counts of one node in one minute or one hour. */
export interface TrafficRow extends Traffic {
  readonly spanMs: typeof MINUTE_MS | typeof HOUR_MS;
  /** The start of the span, a multiple of `spanMs`. */
  readonly at: number;
}

/** The counts of one step of a time series. */
export interface TrafficStep extends Traffic {
  readonly at: number;
}

/**
 * Formats latencies for a column as `bucket:count` pairs separated by spaces. If several of these texts are joined with
 * spaces, the resulting text represents the sums of their counts.
 */
export function formatLatencies(latencies: Latencies): string {
  return [...latencies].map(([bucket, count]) => `${bucket}:${count}`).join(' ');
}

/** Parses the text of `formatLatencies`, or several of these texts joined with spaces. */
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

/** The number of messages by failure. The keys are those of `getFailureKey`. */
export type FailureCounts = ReadonlyMap<string, number>;

/** Returns the key of a failure, such as `hard/mailbox-unknown`. There are 39 different keys. */
export function getFailureKey({ class: failureClass, category }: Failure): string {
  return `${failureClass}/${category}`;
}

/** Formats the counts for a column as `class/category:count` pairs separated by spaces. */
export function formatFailureCounts(counts: FailureCounts): string {
  return [...counts].map(([key, count]) => `${key}:${count}`).join(' ');
}

/**
 * Parses the text of `formatFailureCounts`, or several of these texts joined with spaces. Returns the sum of all counts
 * of each key.
 */
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

/** Returns the failures whose count is greater than 0, the most frequent first. */
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

/** Returns the span of the rows from which a step of `stepMs` is computed. */
export function getRowSpanMs(stepMs: number): TrafficRow['spanMs'] {
  return stepMs % HOUR_MS === 0 ? HOUR_MS : MINUTE_MS;
}

/** Reads the counts of a row. The columns have the names of the counts. */
export function readTrafficCounts(readColumn: (column: string) => number): TrafficCounts {
  return Object.fromEntries(TRAFFIC_COUNTS.map((name) => [name, readColumn(name)])) as Record<TrafficCount, number>;
}

// Delivery times are counted in a histogram with a logarithmic scale: eight buckets per doubling, from 1 ms to about 50
// days. The error of a percentile is at most 10 % (2^(1/8) is 1.09), plus half a millisecond because of rounding. Times
// between 10 ms and 10 s need 80 buckets, which take about half a kilobyte in a row.

/** The number of messages by bucket. Buckets without messages are absent. */
export type Latencies = ReadonlyMap<number, number>;

const BUCKETS_PER_DOUBLING = 8;
/** The last bucket, which contains all times longer than 45.6 days. */
export const MAX_LATENCY_BUCKET = 256;

/**
 * Returns the bucket of a time in ms. The first bucket also contains negative times, which occur if the clock was set
 * back.
 */
export function getLatencyBucket(ms: number): number {
  return ms <= 1 ? 0 : Math.min(MAX_LATENCY_BUCKET, Math.ceil(Math.log2(ms) * BUCKETS_PER_DOUBLING));
}

/** Returns the longest time of a bucket, in ms. */
function getMaxBucketMs(bucket: number): number {
  return 2 ** (bucket / BUCKETS_PER_DOUBLING);
}

/** Adds the counts of `added` to `sums`: latencies by bucket, or counts by failure. */
export function addCounts<Key>(sums: Map<Key, number>, added: ReadonlyMap<Key, number>): void {
  for (const [key, count] of added) sums.set(key, (sums.get(key) ?? 0) + count);
}

/**
 * Returns a percentile of the delivery times in whole ms, interpolated within a bucket. `fraction` is from 0 to 1.
 * Returns null if there were no deliveries.
 */
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

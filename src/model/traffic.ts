/**
 * Figures over time: how many mail requests were accepted, delivered, refused, in each minute and in each hour. Each node
 * writes rows of its own, whole each time, so that no node waits for another and a write that is done twice counts once.
 */

/** What is counted, in the order of the columns. */
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
] as const;

/**
 * `ended`: those that left the queue for good, whatever came of them, notices of later aside; what a command beside the service
 * cancels is not among them. `alarmed`: refusals that are about this service itself, and attempts that ended because the message
 * could not be signed.
 */
export type TrafficCount = (typeof TRAFFIC_COUNTS)[number];
type TrafficCounts = Readonly<Record<TrafficCount, number>>;

export interface Traffic extends TrafficCounts {
  /** From accepted to delivered. */
  readonly latencies: Latencies;
}

export const MINUTE_MS = 60_000;
export const HOUR_MS = 3_600_000;

/** All that one node has counted in one minute or hour so far. */
export interface TrafficRow extends Traffic {
  readonly spanMs: typeof MINUTE_MS | typeof HOUR_MS;
  /** When the span begins; a multiple of it. */
  readonly at: number;
}

/** The sums of one step. */
export interface TrafficStep extends Traffic {
  readonly at: number;
}

/** Latencies as a column holds them: `bucket:count` pairs with blanks between. Sums are such texts one after another. */
export function formatLatencies(latencies: Latencies): string {
  return [...latencies].map(([bucket, count]) => `${bucket}:${count}`).join(' ');
}

/** Reads one such text, or several joined by blanks. */
export function parseLatencies(text: string): Latencies {
  const sums = new Map<number, number>();
  for (const pair of text.split(' ')) {
    const colon = pair.indexOf(':');
    if (colon <= 0) continue;
    const bucket = Number(pair.slice(0, colon));
    sums.set(bucket, (sums.get(bucket) ?? 0) + Number(pair.slice(colon + 1)));
  }
  return sums;
}

/** The span whose rows a step is read from. */
export function rowSpanOf(stepMs: number): TrafficRow['spanMs'] {
  return stepMs % HOUR_MS === 0 ? HOUR_MS : MINUTE_MS;
}

/** The counts of a row, its columns named as they are. */
export function trafficCountsOf(int: (column: string) => number): TrafficCounts {
  return Object.fromEntries(TRAFFIC_COUNTS.map((name) => [name, int(name)])) as Record<TrafficCount, number>;
}

// The time from accepted to delivered, counted on a scale of equal ratios: eight buckets for each doubling, from a millisecond to
// a month. So a percentile read out of the counts is at most a tenth off (2^(1/8) is 1.09), whatever its size, and half a millisecond
// by rounding. Times between 10 ms and 10 s are 80 buckets, about half a kilobyte of a row.

/** Counts by bucket, sparse. */
export type Latencies = ReadonlyMap<number, number>;

const PER_DOUBLING = 8;
/** The last one holds everything longer than about 50 days. */
export const MAX_LATENCY_BUCKET = 256;

/** The bucket of a time in ms; what a clock set back makes negative is in the first. */
export function latencyBucket(ms: number): number {
  return ms <= 1 ? 0 : Math.min(MAX_LATENCY_BUCKET, Math.ceil(Math.log2(ms) * PER_DOUBLING));
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

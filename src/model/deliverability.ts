/**
 * The types and functions of the deliverability series: counts of messages by mailbox provider, recipient domain,
 * account and sending domain. Each row of a series contains the counts of the most frequent keys and the sum of the
 * counts of all other keys, so the total of the row is exact. Pure.
 */
import { FAILURE_CLASSES } from './failure.ts';
import { addCounts, formatLatencies, HOUR_MS, type Latencies, parseLatencies } from './traffic.ts';

/**
 * The series. The name of a series lists the parts of its keys. The parts of a key are separated by `/`. The part
 * `account` is the number of the account.
 */
export const SERIES = [
  'provider',
  'recipient-domain',
  'account',
  'sending-domain',
  'account/provider',
  'account/recipient-domain',
  'sending-domain/provider',
] as const;
export type Series = (typeof SERIES)[number];

/** The spans of the rows: five minutes, one hour, six hours and one day. */
export const SPANS_MS = [300_000, 3_600_000, 21_600_000, 86_400_000] as const;
export type SpanMs = (typeof SPANS_MS)[number];

/**
 * The retention of the rows by their span. A time range of the dashboard has 12 rows of five minutes, 24 of one hour,
 * 28 of six hours or 30 of one day. The retention covers the range and the period of the same length before it.
 */
export const SPAN_RETENTIONS: readonly { readonly spanMs: SpanMs; readonly retentionMs: number }[] = [
  { spanMs: 300_000, retentionMs: 6 * HOUR_MS },
  { spanMs: 3_600_000, retentionMs: 4 * 24 * HOUR_MS },
  { spanMs: 21_600_000, retentionMs: 16 * 24 * HOUR_MS },
  { spanMs: 86_400_000, retentionMs: 400 * 24 * HOUR_MS },
];

/**
 * `deferred`: attempts that were deferred. `ended`: messages that became `delivered`, and messages that became
 * `bounced` because of an attempt. `bounced` also includes messages that became `bounced` because of a later report.
 * `hard`, `soft` and `block`: the bounced messages by the class of the failure.
 */
export const DELIVERABILITY_COUNTS = [
  'accepted',
  'delivered',
  'confirmed',
  'deferred',
  'ended',
  'bounced',
  ...FAILURE_CLASSES,
  'complained',
] as const;
export type DeliverabilityCount = (typeof DELIVERABILITY_COUNTS)[number];

/** The counts of one key. */
export interface KeyCounts extends Readonly<Record<DeliverabilityCount, number>> {
  /** The times from acceptance to delivery. */
  readonly latencies: Latencies;
  /** The times from acceptance to the confirmation by the provider. */
  readonly confirmations: Latencies;
}

/** Counts that the caller can change. */
export interface MutableKeyCounts extends Record<DeliverabilityCount, number> {
  readonly latencies: Map<number, number>;
  readonly confirmations: Map<number, number>;
}

/** The counts of one series of one node in one span. */
export interface DeliverabilityRow {
  readonly spanMs: SpanMs;
  /** The start of the span, a multiple of `spanMs`. */
  readonly at: number;
  readonly series: Series;
  /** The JSON text that `formatKeyCounts` returned. */
  readonly counts: string;
}

/** A stored row of any node. */
export type StoredDeliverabilityRow = Pick<DeliverabilityRow, 'at' | 'counts'>;

/**
 * The key under which a row contains the sums of the counts of all keys that it does not list. Only this key is empty.
 */
export const REMAINDER_KEY = '';

export function createKeyCounts(): MutableKeyCounts {
  return {
    accepted: 0,
    delivered: 0,
    confirmed: 0,
    deferred: 0,
    ended: 0,
    bounced: 0,
    hard: 0,
    soft: 0,
    block: 0,
    complained: 0,
    latencies: new Map(),
    confirmations: new Map(),
  };
}

/** Adds `added` to `sums`. */
export function addKeyCounts(sums: MutableKeyCounts, added: KeyCounts): void {
  for (const name of DELIVERABILITY_COUNTS) sums[name] += added[name];
  addCounts(sums.latencies, added.latencies);
  addCounts(sums.confirmations, added.confirmations);
}

/** Subtracts `subtracted` from `sums`. No count becomes negative. */
export function subtractKeyCounts(sums: MutableKeyCounts, subtracted: KeyCounts): void {
  for (const name of DELIVERABILITY_COUNTS) sums[name] = Math.max(0, sums[name] - subtracted[name]);
  for (const [target, histogram] of [
    [sums.latencies, subtracted.latencies],
    [sums.confirmations, subtracted.confirmations],
  ] as const)
    for (const [bucket, count] of histogram) target.set(bucket, Math.max(0, (target.get(bucket) ?? 0) - count));
}

/**
 * One entry of the JSON text: the key, the counts in the order of `DELIVERABILITY_COUNTS`, and the histograms of
 * `latencies` and `confirmations`.
 */
type PackedCounts = readonly [key: string, counts: readonly number[], latencies: string, confirmations: string];

/** Formats the counts of a row as JSON for a table column. */
export function formatKeyCounts(entries: Iterable<readonly [key: string, counts: KeyCounts]>): string {
  return JSON.stringify(
    Array.from(entries, ([key, counts]): PackedCounts => {
      const values = DELIVERABILITY_COUNTS.map((name) => counts[name]);
      return [key, values, formatLatencies(counts.latencies), formatLatencies(counts.confirmations)];
    }),
  );
}

/** Parses the JSON text that `formatKeyCounts` returned. */
export function parseKeyCounts(text: string): readonly (readonly [key: string, counts: KeyCounts])[] {
  return (JSON.parse(text) as readonly PackedCounts[]).map(([key, values, latencies, confirmations]) => {
    const counts = createKeyCounts();
    for (const [index, name] of DELIVERABILITY_COUNTS.entries()) counts[name] = values[index] ?? 0;
    return [key, { ...counts, latencies: parseLatencies(latencies), confirmations: parseLatencies(confirmations) }];
  });
}

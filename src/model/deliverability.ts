/**
 * Counts of messages by mailbox provider, recipient domain, account and sending domain. A row names the most frequent
 * keys and sums the others, so its total is exact. Pure.
 */
import { FAILURE_CLASSES } from './failure.ts';
import { addCounts, formatLatencies, HOUR_MS, type Latencies, parseLatencies } from './traffic.ts';

/**
 * The name of a series lists the parts of its keys, which `/` separates. `account` is its number. `route`: without
 * `accepted` and `confirmed`, and `latencies` are the durations of attempts.
 */
export const SERIES = [
  'provider',
  'recipient-domain',
  'account',
  'sending-domain',
  'account/provider',
  'account/recipient-domain',
  'sending-domain/provider',
  'route',
] as const;
export type Series = (typeof SERIES)[number];

export const SPANS_MS = [300_000, 3_600_000, 21_600_000, 86_400_000] as const;
export type SpanMs = (typeof SPANS_MS)[number];

/** Covers the time range of a page (12, 24, 28 or 30 rows) and the period of the same length before it. */
export const SPAN_RETENTIONS: readonly { readonly spanMs: SpanMs; readonly retentionMs: number }[] = [
  { spanMs: 300_000, retentionMs: 6 * HOUR_MS },
  { spanMs: 3_600_000, retentionMs: 4 * 24 * HOUR_MS },
  { spanMs: 21_600_000, retentionMs: 16 * 24 * HOUR_MS },
  { spanMs: 86_400_000, retentionMs: 400 * 24 * HOUR_MS },
];

/** `deferred`: attempts. `ended`: delivered, or bounced by an attempt. `bounced`: also by a later report. */
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

export interface KeyCounts extends Readonly<Record<DeliverabilityCount, number>> {
  readonly latencies: Latencies;
  readonly confirmations: Latencies;
}

export interface MutableKeyCounts extends Record<DeliverabilityCount, number> {
  readonly latencies: Map<number, number>;
  readonly confirmations: Map<number, number>;
}

export interface DeliverabilityRow {
  readonly spanMs: SpanMs;
  readonly at: number;
  readonly series: Series;
  readonly counts: string;
}

export type StoredDeliverabilityRow = Pick<DeliverabilityRow, 'at' | 'counts'>;

/** The sums of all keys that a row does not list. Only this key is empty. */
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

export function addKeyCounts(sums: MutableKeyCounts, added: KeyCounts): void {
  for (const name of DELIVERABILITY_COUNTS) sums[name] += added[name];
  addCounts(sums.latencies, added.latencies);
  addCounts(sums.confirmations, added.confirmations);
}

/** No count becomes negative. */
export function subtractKeyCounts(sums: MutableKeyCounts, subtracted: KeyCounts): void {
  for (const name of DELIVERABILITY_COUNTS) sums[name] = Math.max(0, sums[name] - subtracted[name]);
  for (const [target, histogram] of [
    [sums.latencies, subtracted.latencies],
    [sums.confirmations, subtracted.confirmations],
  ] as const)
    for (const [bucket, count] of histogram) target.set(bucket, Math.max(0, (target.get(bucket) ?? 0) - count));
}

/** The counts are in the order of `DELIVERABILITY_COUNTS`. */
type PackedCounts = readonly [key: string, counts: readonly number[], latencies: string, confirmations: string];

export function formatKeyCounts(entries: Iterable<readonly [key: string, counts: KeyCounts]>): string {
  return JSON.stringify(
    Array.from(entries, ([key, counts]): PackedCounts => {
      const values = DELIVERABILITY_COUNTS.map((name) => counts[name]);
      return [key, values, formatLatencies(counts.latencies), formatLatencies(counts.confirmations)];
    }),
  );
}

export function parseKeyCounts(text: string): readonly (readonly [key: string, counts: KeyCounts])[] {
  return (JSON.parse(text) as readonly PackedCounts[]).map(([key, values, latencies, confirmations]) => {
    const counts = createKeyCounts();
    for (const [index, name] of DELIVERABILITY_COUNTS.entries()) counts[name] = values[index] ?? 0;
    return [key, { ...counts, latencies: parseLatencies(latencies), confirmations: parseLatencies(confirmations) }];
  });
}

// Counts events by key with bounded memory (Space-Saving of Metwally, Agrawal and El Abbadi, 2005, with eviction in
// batches). For n events and a capacity of c: the sum is exact, a key with more than n / c events is present after an
// eviction, and the remainder has at most n / c of its events.

interface Entry {
  readonly key: string;
  readonly counts: MutableKeyCounts;
  /** An upper bound that includes the highest evicted rank, so that new keys do not evict a frequent key. */
  rank: number;
}

export interface FrequentKeys {
  /** `added`: the counts of `events` events. */
  add(key: string, added: KeyCounts, events: number): void;
  summarize(maxKeys: number): {
    readonly keys: readonly (readonly [string, KeyCounts])[];
    readonly remainder: KeyCounts;
  };
}

/** Stores at most `2 * capacity` keys. An eviction keeps `capacity`. */
export function createFrequentKeys(capacity: number): FrequentKeys {
  let entries = new Map<string, Entry>();
  const remainder = createKeyCounts();
  let maxEvictedRank = 0;

  const listByRank = () => [...entries.values()].sort((a, b) => b.rank - a.rank);

  function evictKeys(): void {
    const rankedEntries = listByRank();
    for (const { counts, rank } of rankedEntries.slice(capacity)) {
      addKeyCounts(remainder, counts);
      maxEvictedRank = Math.max(maxEvictedRank, rank);
    }
    entries = new Map(rankedEntries.slice(0, capacity).map((entry) => [entry.key, entry]));
  }

  return {
    add(key, added, events) {
      let entry = entries.get(key);
      if (entry === undefined) {
        if (entries.size >= 2 * capacity) evictKeys();
        entry = { key, counts: createKeyCounts(), rank: maxEvictedRank };
        entries.set(key, entry);
      }
      addKeyCounts(entry.counts, added);
      entry.rank += events;
    },
    summarize(maxKeys) {
      const rankedEntries = entries.size <= maxKeys ? [...entries.values()] : listByRank();
      const remainingCounts = createKeyCounts();
      addKeyCounts(remainingCounts, remainder);
      for (const { counts } of rankedEntries.slice(maxKeys)) addKeyCounts(remainingCounts, counts);
      return {
        keys: rankedEntries.slice(0, maxKeys).map(({ key, counts }) => [key, counts] as const),
        remainder: remainingCounts,
      };
    },
  };
}

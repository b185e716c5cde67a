/**
 * Counts events by key with bounded memory (Space-Saving of Metwally, Agrawal and El Abbadi, 2005, with eviction in
 * batches). For n events and a capacity of c: the sum is exact, a key with more than n / c events is present after an
 * eviction, and the remainder has at most n / c of its events. Pure.
 */
import { addKeyCounts, createKeyCounts, type KeyCounts, type MutableKeyCounts } from './deliverability.ts';

interface Entry {
  readonly key: string;
  readonly counts: MutableKeyCounts;
  /**
   * An upper bound: the events since the key was added, plus the highest evicted rank. From 0, a stream of new keys
   * would evict a frequent key each time that it is added.
   */
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

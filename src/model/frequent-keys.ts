/**
 * Counts events by key with bounded memory, even if the number of different keys is unlimited (the Space-Saving
 * algorithm of Metwally, Agrawal and El Abbadi, 2005, with eviction in batches). Pure.
 *
 * Guarantees, for n events and a capacity of c keys: the sum over all keys and the remainder is exact. A key that
 * occurred in more than n / c events is present after each eviction. The remainder contains at most n / c events of a
 * key that is present.
 */
import { addKeyCounts, createKeyCounts, type KeyCounts, type MutableKeyCounts } from './deliverability.ts';

interface Entry {
  readonly key: string;
  readonly counts: MutableKeyCounts;
  /**
   * An upper bound of the number of events of the key: the number of its events since the key was added, plus the
   * highest rank of all keys that were evicted before. The rank of a new key starts at this highest rank. If it started
   * at 0, a stream of new keys would evict a frequent key each time that the key is added.
   */
  rank: number;
}

export interface FrequentKeys {
  /** Adds `added`, the counts of `events` events, to the counts of a key. */
  add(key: string, added: KeyCounts, events: number): void;
  /** Returns the `maxKeys` keys of the highest rank with their counts, and the sum of the counts of all other keys. */
  summarize(maxKeys: number): {
    readonly keys: readonly (readonly [string, KeyCounts])[];
    readonly remainder: KeyCounts;
  };
}

/**
 * Creates a counter that stores at most `2 * capacity` keys. An eviction keeps the `capacity` keys of the highest rank.
 */
export function createFrequentKeys(capacity: number): FrequentKeys {
  let entries = new Map<string, Entry>();
  const remainder = createKeyCounts();
  /** The highest rank of all evicted keys. */
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

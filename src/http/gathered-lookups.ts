/**
 * Lookups of credentials that are not known here: API keys that the directory lacks, operators' tokens. A key works from the moment
 * that the command or request which made it has returned, on every node; so the store is asked before one is refused.
 *
 * Guarantees: a lookup is answered by a query that began after it. Lookups are gathered: one query runs at a time, at most one
 * begins in 10 ms, and it has at most 1,000 digests, whatever is guessed. Excess lookups wait. Each query takes one lookup of
 * each peer in turn, so a peer that guesses delays its own lookups, and a new key of another peer is in the next query. That
 * a key is absent is not cached: a client may try its key before an operator imports it.
 * What waits is bounded: `MAX_WAITING` lookups, and of one peer as many as there is room left for others. The public listener
 * has fewer connections than that, so only a client that sends many requests at once on one connection exceeds it.
 *
 * Fails: a store that does not answer rejects those who wait; an unknown key is never made out of that.
 */
import type { Clock } from '../clock.ts';

/** Digests of one query at most. */
export const MAX_DIGESTS = 1_000;
/** Lookups that wait at most. */
export const MAX_WAITING = 32_768;
/** A query begins at most so often. */
export const QUERY_INTERVAL_MS = 10;

export interface LookupOptions<Found> {
  /** The store's lookup, by SHA-256 in hexadecimal. */
  readonly find: (hashes: readonly string[]) => Promise<Found>;
  readonly clock: Clock;
}

interface Lookup<Found> {
  readonly hash: string;
  readonly resolve: (found: Found) => void;
  readonly reject: (error: unknown) => void;
  next: Lookup<Found> | null;
}

/** The lookups of one peer, in the order of their arrival. */
interface Queue<Found> {
  first: Lookup<Found>;
  last: Lookup<Found>;
  length: number;
}

export class GatheredLookups<Found> {
  readonly #options: LookupOptions<Found>;
  /** In the order of their turns. */
  readonly #peers = new Map<string, Queue<Found>>();
  #waiting = 0;
  #asking = false;
  #pausing = false;

  constructor(options: LookupOptions<Found>) {
    this.#options = options;
  }

  /**
   * Asks the store for this digest, in one query with other digests. Resolves to the result of that query. Rejects with the
   * store's error. Returns null if too many lookups wait. `peer` is the value of `peerOf`.
   */
  ask(hash: string, peer: string): Promise<Found> | null {
    const queue = this.#peers.get(peer);
    if ((queue?.length ?? 0) >= MAX_WAITING - this.#waiting) return null;
    return new Promise((resolve, reject) => {
      const lookup: Lookup<Found> = { hash, resolve, reject, next: null };
      if (queue === undefined) {
        this.#peers.set(peer, { first: lookup, last: lookup, length: 1 });
      } else {
        queue.last.next = lookup;
        queue.last = lookup;
        queue.length += 1;
      }
      this.#waiting += 1;
      this.#begin();
    });
  }

  #begin(): void {
    if (this.#asking || this.#pausing || this.#waiting === 0) return;
    const { find, clock } = this.#options;
    this.#asking = true;
    this.#pausing = true;
    clock.after(QUERY_INTERVAL_MS, () => {
      this.#pausing = false;
      this.#begin();
    });
    const batch = this.#take();
    find([...new Set(batch.map(({ hash }) => hash))])
      .then(
        (found) => {
          for (const { resolve } of batch) resolve(found);
        },
        (error: unknown) => {
          for (const { reject } of batch) reject(error);
        },
      )
      .finally(() => {
        this.#asking = false;
        this.#begin();
      });
  }

  /** The next query's lookups: one of each peer in turn. */
  #take(): readonly Lookup<Found>[] {
    const batch: Lookup<Found>[] = [];
    // A peer put back comes last, and comes again in this loop: the map is a ring.
    for (const [peer, queue] of this.#peers) {
      if (batch.length >= MAX_DIGESTS) break;
      this.#peers.delete(peer);
      const { first } = queue;
      batch.push(first);
      if (first.next === null) continue;
      queue.first = first.next;
      queue.length -= 1;
      this.#peers.set(peer, queue);
    }
    this.#waiting -= batch.length;
    return batch;
  }
}

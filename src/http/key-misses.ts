/**
 * Misses of the key directory. A key works from the moment that the command or request which made it has returned, on every
 * node; so a key that the directory does not know is looked up in the store before it is refused.
 *
 * Guarantees: a miss is answered by a query that began after it. Misses are gathered: one query runs at a time, at most one
 * begins in 10 ms, and it has at most 1,000 digests, whatever is guessed. Excess misses wait. Each query takes one miss of
 * each peer in turn, so a peer that guesses delays its own misses, and a new key of another peer is in the next query. That
 * a key is absent is not cached: a client may try its key before an operator imports it.
 * What waits is bounded: `MAX_WAITING` misses, and of one peer as many as there is room left for others. The public listener
 * has fewer connections than that, so only a client that sends many requests at once on one connection exceeds it.
 *
 * Fails: a store that does not answer rejects those who wait; an unknown key is never made out of that.
 */
import type { Clock } from '../clock.ts';
import type { FoundKeys } from '../model/account.ts';

/** Digests of one query at most. */
export const MAX_DIGESTS = 1_000;
/** Misses that wait at most. */
export const MAX_WAITING = 32_768;
const QUERY_INTERVAL_MS = 10;

export interface KeyMissesOptions {
  /** The store's lookup, by SHA-256 in hexadecimal. */
  readonly find: (hashes: readonly string[]) => Promise<FoundKeys>;
  /** Takes what was found into the directory. */
  readonly learn: (found: FoundKeys) => void;
  readonly clock: Clock;
  /** Told of each query that failed. */
  readonly failed: (error: unknown) => void;
}

interface Miss {
  readonly hash: string;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
  next: Miss | null;
}

/** The misses of one peer, in the order of their arrival. */
interface Queue {
  first: Miss;
  last: Miss;
  length: number;
}

export class KeyMisses {
  readonly #options: KeyMissesOptions;
  /** In the order of their turns. */
  readonly #peers = new Map<string, Queue>();
  #waiting = 0;
  #asking = false;
  #pausing = false;

  constructor(options: KeyMissesOptions) {
    this.#options = options;
  }

  /**
   * Resolves once the store was asked for the digest and what it has is learned; rejects with the store's fault. Null where
   * too many wait. `peer` as `peerOf` has it.
   */
  ask(hash: string, peer: string): Promise<void> | null {
    const queue = this.#peers.get(peer);
    if ((queue?.length ?? 0) >= MAX_WAITING - this.#waiting) return null;
    return new Promise((resolve, reject) => {
      const miss: Miss = { hash, resolve, reject, next: null };
      if (queue === undefined) {
        this.#peers.set(peer, { first: miss, last: miss, length: 1 });
      } else {
        queue.last.next = miss;
        queue.last = miss;
        queue.length += 1;
      }
      this.#waiting += 1;
      this.#begin();
    });
  }

  #begin(): void {
    if (this.#asking || this.#pausing || this.#waiting === 0) return;
    const { find, learn, clock, failed } = this.#options;
    this.#asking = true;
    this.#pausing = true;
    clock.after(QUERY_INTERVAL_MS, () => {
      this.#pausing = false;
      this.#begin();
    });
    const batch = this.#take();
    find([...new Set(batch.map(({ hash }) => hash))])
      .then(learn)
      .then(
        () => {
          for (const { resolve } of batch) resolve();
        },
        (error: unknown) => {
          failed(error);
          for (const { reject } of batch) reject(error);
        },
      )
      .finally(() => {
        this.#asking = false;
        this.#begin();
      });
  }

  /** The next query's misses: one of each peer in turn. */
  #take(): readonly Miss[] {
    const batch: Miss[] = [];
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

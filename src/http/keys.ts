/**
 * API keys: a cache of keys and accounts, so a request needs no query, and batched lookups of keys that are not in the cache. The
 * change feed of the store and the results of the lookups update the cache.
 *
 * Guarantees: a raw key is hashed once and never stored. The decisive comparison takes constant time. The newest revision applies from
 * the next lookup on, in whichever order the two sources arrive. The use of a key is reported at most once a minute.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../clock.ts';
import type { Account, ApiKey, FoundKeys } from '../model/account.ts';
import type { PublishOf } from '../model/events.ts';

export type KeyLookup =
  /** Absent, too long, revoked or expired. */
  | { readonly kind: 'invalid' }
  /** The key or its account is not in the cache and has to be looked up in the store. `hash` is the SHA-256 of the key, hexadecimal. */
  | { readonly kind: 'missing'; readonly hash: string }
  | { readonly kind: 'locked'; readonly key: ApiKey; readonly account: Account }
  | { readonly kind: 'valid'; readonly key: ApiKey; readonly account: Account };

interface KeyEntry {
  key: ApiKey;
  readonly digest: Buffer;
  /** Built when key or account change, so a lookup allocates no object. */
  lookup: KeyLookup;
  useReportedAt: number;
  /** The revision of this data. */
  revision: number;
}

interface AccountEntry {
  readonly account: Account;
  /** As of a slot. */
  readonly revision: number;
}

const INVALID: KeyLookup = { kind: 'invalid' };
const USE_REPORT_INTERVAL_MS = 60_000;
/** Longer than any valid key. Longer headers are not hashed. */
const MAX_KEY_LENGTH = 512;

export interface ApiKeyCacheParts {
  readonly clock: { now(): number };
  readonly publish: PublishOf<'account.changed' | 'account.locked' | 'account.warned'>;
}

export class ApiKeyCache {
  readonly #accounts = new Map<number, AccountEntry>();
  /** By the digest's 32 bytes, read as Latin-1. */
  readonly #byDigest = new Map<string, KeyEntry>();
  readonly #byId = new Map<number, KeyEntry>();
  readonly #byAccount = new Map<number, Set<KeyEntry>>();
  readonly #usedAt = new Map<number, number>();
  readonly #digestBuffer = Buffer.alloc(32);
  readonly #parts: ApiKeyCacheParts;

  constructor(parts: ApiKeyCacheParts) {
    this.#parts = parts;
  }

  /**
   * Applies new and changed accounts and keys. Others stay unchanged, and so do those with a later revision, so a delayed result of the
   * store does not overwrite newer data.
   */
  apply({ revision, accounts, keys }: FoundKeys): void {
    for (const account of accounts) {
      const existing = this.#accounts.get(account.id);
      if (existing !== undefined && existing.revision > revision) continue;
      if (existing !== undefined) this.#publishChange(existing.account, account);
      this.#accounts.set(account.id, { account, revision });
      for (const entry of this.#byAccount.get(account.id) ?? []) entry.lookup = this.#createLookup(entry.key);
    }
    for (const key of keys) this.#applyKey(key, revision);
    const { clock, publish } = this.#parts;
    if (accounts.length + keys.length > 0) publish({ type: 'account.changed', at: clock.now() });
  }

  /** Looks up the raw value of an Authorization header at `now` (milliseconds). */
  lookup(rawKey: string | undefined, now: number): KeyLookup {
    if (rawKey === undefined || rawKey === '' || rawKey.length > MAX_KEY_LENGTH) return INVALID;
    // A string digest takes 0.4 µs including the lookup; a new Buffer took 1.3 µs.
    const digest = hash('sha256', rawKey, 'binary');
    const entry = this.#byDigest.get(digest);
    if (entry === undefined) return { kind: 'missing', hash: Buffer.from(digest, 'latin1').toString('hex') };
    // The map's comparison does not take constant time; this comparison does, and it decides.
    this.#digestBuffer.write(digest, 'latin1');
    if (!timingSafeEqual(entry.digest, this.#digestBuffer) || !isActive(entry.key, now)) return INVALID;
    if (entry.lookup.kind === 'valid' && Math.abs(now - entry.useReportedAt) >= USE_REPORT_INTERVAL_MS) {
      entry.useReportedAt = now;
      this.#usedAt.set(entry.key.id, now);
    }
    return entry.lookup;
  }

  /** True if the key is known and valid at `now`. The call does not count as use of the key. */
  isValid(rawKey: string, now: number): boolean {
    const entry = this.#byDigest.get(hash('sha256', rawKey, 'binary'));
    return entry !== undefined && isActive(entry.key, now) && entry.lookup.kind === 'valid';
  }

  /** The cached account, or undefined. */
  account(id: number): Account | undefined {
    return this.#accounts.get(id)?.account;
  }

  /** True if the account is known to be locked. */
  isLocked(accountId: number): boolean {
    return this.account(accountId)?.locked != null;
  }

  /** Keys used since the last call and when, for the store's `updateKeysLastUsed`. */
  drainUsedKeys(): readonly { readonly id: number; readonly at: number }[] {
    const used = Array.from(this.#usedAt, ([id, at]) => ({ id, at }));
    this.#usedAt.clear();
    return used;
  }

  #applyKey(key: ApiKey, revision: number): void {
    const existing = this.#byId.get(key.id);
    if (existing !== undefined && existing.revision > revision) return;
    if (existing !== undefined && existing.key.hash === key.hash && existing.key.accountId === key.accountId) {
      existing.key = key;
      existing.revision = revision;
      existing.lookup = this.#createLookup(key);
      return;
    }
    if (existing !== undefined) {
      this.#byDigest.delete(existing.digest.toString('latin1'));
      this.#byAccount.get(existing.key.accountId)?.delete(existing);
    }
    const digest = Buffer.from(key.hash, 'hex');
    const entry: KeyEntry = {
      key,
      digest,
      lookup: this.#createLookup(key),
      useReportedAt: Number.NEGATIVE_INFINITY,
      revision,
    };
    this.#byDigest.set(digest.toString('latin1'), entry);
    this.#byId.set(key.id, entry);
    const entries = this.#byAccount.get(key.accountId);
    if (entries === undefined) this.#byAccount.set(key.accountId, new Set([entry]));
    else entries.add(entry);
  }

  #publishChange(before: Account, { id: accountId, locked, warning }: Account): void {
    const { clock, publish } = this.#parts;
    const at = clock.now();
    if (locked !== null && before.locked === null)
      publish({ type: 'account.locked', at, accountId, reason: locked.reason });
    else if (warning !== null && before.warning === null)
      publish({ type: 'account.warned', at, accountId, reason: warning });
  }

  #createLookup(key: ApiKey): KeyLookup {
    const account = this.account(key.accountId);
    if (account === undefined) return { kind: 'missing', hash: key.hash };
    return { kind: account.locked === null ? 'valid' : 'locked', key, account };
  }
}

/** True until the key is revoked or expires. */
function isActive({ revokedAt, expiresAt }: ApiKey, now: number): boolean {
  return (revokedAt === null || revokedAt > now) && (expiresAt === null || expiresAt > now);
}

// Lookups of credentials that are not cached: API keys and operators' tokens. A new key is valid on every node as soon as the command
// or request that created it has returned, so the store is queried before an unknown key is refused.
//
// Guarantees: the query of a lookup begins after the lookup. Lookups are batched: one query runs at a time, at most one begins in
// 10 ms, and it has at most 1,000 digests. Other lookups wait. Each query takes one lookup of each peer in turn, so a peer that guesses
// keys only delays its own lookups. Missing keys are not cached, because a client may use its key before an operator imports it. At most
// `MAX_WAITING_LOOKUPS` lookups wait, and of one peer at most as many as there is room left for others. The public listener has fewer
// connections than that, so only a client with many concurrent requests on one connection exceeds it.
//
// Fails: if a query fails, its lookups reject. A key is never treated as unknown because of a failed query.

/** The maximum number of digests in one query. */
export const MAX_DIGESTS_PER_QUERY = 1_000;
/** The maximum number of waiting lookups. */
export const MAX_WAITING_LOOKUPS = 32_768;
/** The minimum time between the starts of two queries. */
export const MIN_QUERY_INTERVAL_MS = 10;

interface LookupOptions<Found> {
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

export class BatchedLookups<Found> {
  readonly #options: LookupOptions<Found>;
  /** In the order of their turns. */
  readonly #peers = new Map<string, Queue<Found>>();
  #waitingCount = 0;
  #isQueryRunning = false;
  #isIntervalRunning = false;

  constructor(options: LookupOptions<Found>) {
    this.#options = options;
  }

  /**
   * Asks the store for this digest, in one query with other digests. Resolves to the result of that query. Rejects with the
   * store's error. Returns null if too many lookups wait. `peer` is the value of `peerNetworkOf`.
   */
  find(hash: string, peer: string): Promise<Found> | null {
    const queue = this.#peers.get(peer);
    if ((queue?.length ?? 0) >= MAX_WAITING_LOOKUPS - this.#waitingCount) return null;
    return new Promise((resolve, reject) => {
      const lookup: Lookup<Found> = { hash, resolve, reject, next: null };
      if (queue === undefined) {
        this.#peers.set(peer, { first: lookup, last: lookup, length: 1 });
      } else {
        queue.last.next = lookup;
        queue.last = lookup;
        queue.length += 1;
      }
      this.#waitingCount += 1;
      this.#startQuery();
    });
  }

  #startQuery(): void {
    if (this.#isQueryRunning || this.#isIntervalRunning || this.#waitingCount === 0) return;
    const { find, clock } = this.#options;
    this.#isQueryRunning = true;
    this.#isIntervalRunning = true;
    clock.after(MIN_QUERY_INTERVAL_MS, () => {
      this.#isIntervalRunning = false;
      this.#startQuery();
    });
    const batch = this.#nextBatch();
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
        this.#isQueryRunning = false;
        this.#startQuery();
      });
  }

  /** The next query's lookups: one of each peer in turn. */
  #nextBatch(): readonly Lookup<Found>[] {
    const batch: Lookup<Found>[] = [];
    // A peer that is inserted again is last, and this loop reaches it again.
    for (const [peer, queue] of this.#peers) {
      if (batch.length >= MAX_DIGESTS_PER_QUERY) break;
      this.#peers.delete(peer);
      const { first } = queue;
      batch.push(first);
      if (first.next === null) continue;
      queue.first = first.next;
      queue.length -= 1;
      this.#peers.set(peer, queue);
    }
    this.#waitingCount -= batch.length;
    return batch;
  }
}

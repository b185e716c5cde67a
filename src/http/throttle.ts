/**
 * The throttle: an exact token bucket per account, in memory. A request takes one token; the bucket refills with `perSecond` tokens per
 * second up to `burst`. For a single node; several nodes share buckets (`SharedThrottle`).
 *
 * Guarantees: at most `burst + perSecond × t` requests pass in any t seconds. A changed limit applies from the next request. A clock that
 * is set back blocks no account. Only accounts below their burst use memory permanently.
 */
import type { TokenRequest, TokensGranted } from '../model/node.ts';
import type { AcceptStore } from '../store/contract.ts';

export interface ThrottleLimit {
  readonly perSecond: number;
  readonly burst: number;
}

export type ThrottleResult =
  /** `left` more requests can pass now; the bucket is full after `resetMs`. */
  | { readonly ok: true; readonly left: number; readonly resetMs: number }
  /** The next token is available after `retryAfterMs`. */
  | { readonly ok: false; readonly retryAfterMs: number; readonly resetMs: number };

interface Bucket {
  /** Thousandths of a token, so that whole milliseconds at whole rates stay whole numbers. */
  level: number;
  at: number;
  perSecond: number;
  burst: number;
}

const TOKEN = 1000;
/** Tolerance for rates such as 10 per minute, which are not binary fractions; in thousandths of a token. */
const ROUNDING = 1e-6;
const SWEEP_FROM = 1024;

export class Throttle {
  readonly #buckets = new Map<number, Bucket>();
  #sweepAt = SWEEP_FROM;

  /** How many accounts hold a bucket now. */
  get size(): number {
    return this.#buckets.size;
  }

  /** Takes one token of the account, if there is one. `now` in milliseconds. */
  take(accountId: number, limit: ThrottleLimit, now: number): ThrottleResult {
    const bucket = this.#refilled(accountId, limit, now);
    if (bucket.level + ROUNDING >= TOKEN) {
      bucket.level = Math.max(0, bucket.level - TOKEN);
      return {
        ok: true,
        left: Math.floor((bucket.level + ROUNDING) / TOKEN),
        resetMs: Math.ceil((limit.burst * TOKEN - bucket.level) / limit.perSecond),
      };
    }
    return {
      ok: false,
      retryAfterMs: Math.max(1, Math.ceil((TOKEN - ROUNDING - bucket.level) / limit.perSecond)),
      resetMs: Math.ceil((limit.burst * TOKEN - bucket.level) / limit.perSecond),
    };
  }

  #refilled(accountId: number, limit: ThrottleLimit, now: number): Bucket {
    const bucket = this.#buckets.get(accountId);
    if (bucket === undefined) {
      if (this.#buckets.size >= this.#sweepAt) this.#sweep(now);
      const fresh = { level: limit.burst * TOKEN, at: now, perSecond: limit.perSecond, burst: limit.burst };
      this.#buckets.set(accountId, fresh);
      return fresh;
    }
    // The elapsed time counts at the rate that applied during it.
    if (now > bucket.at)
      bucket.level = Math.min(bucket.burst * TOKEN, bucket.level + (now - bucket.at) * bucket.perSecond);
    bucket.at = now;
    if (bucket.burst !== limit.burst || bucket.perSecond !== limit.perSecond) {
      // A full bucket stays full with a new limit; another keeps its tokens up to the new burst.
      bucket.level =
        bucket.level >= bucket.burst * TOKEN ? limit.burst * TOKEN : Math.min(bucket.level, limit.burst * TOKEN);
      bucket.perSecond = limit.perSecond;
      bucket.burst = limit.burst;
    }
    return bucket;
  }

  /** Removes full buckets, which equal new ones. Runs each time the number of buckets has doubled. */
  #sweep(now: number): void {
    for (const [accountId, bucket] of this.#buckets) {
      if (bucket.level + (now - bucket.at) * bucket.perSecond >= bucket.burst * TOKEN) this.#buckets.delete(accountId);
    }
    this.#sweepAt = Math.max(SWEEP_FROM, this.#buckets.size * 2);
  }
}

// The throttle of an installation with several nodes: one token bucket per account in the store. Each node takes a few tokens in
// advance, so most requests need no query.
//
// Guarantees: on all nodes together at most `burst + perSecond × (t + 0.1)` requests pass in any t seconds, because a token expires after
// a tenth of a second. Below 20 per second tokens are taken one by one, and the limit is exact. An account over its limit causes one
// query per token interval. If the store does not respond, the request passes to the commit, which fails as well.

/** The time for which tokens are taken in advance, and after which they expire. */
const AHEAD_MS = 100;
/** The minimum time between two queries of an empty bucket with a high rate. */
const EMPTY_MS = 20;

interface Lease {
  tokens: number;
  /** When the tokens expire. */
  until: number;
  /** The tokens in the shared bucket at the last query. */
  left: number;
  /** No token is available before this time. */
  emptyUntil: number;
  asking: boolean;
  readonly waiting: ((answer: ThrottleResult) => void)[];
}

export class SharedThrottle {
  readonly #leases = new Map<number, Lease>();
  readonly #ask: (request: TokenRequest) => Promise<TokensGranted>;
  readonly #failed: (error: unknown) => void;
  #sweepAt = SWEEP_FROM;

  /** `ask` takes tokens out of the shared bucket; calls of one turn of the event loop may travel together. */
  constructor(ask: (request: TokenRequest) => Promise<TokensGranted>, failed: (error: unknown) => void) {
    this.#ask = ask;
    this.#failed = failed;
  }

  /** Takes one token of the account, if there is one; a promise where the store has to be asked. `now` in ms. */
  take(accountId: number, limit: ThrottleLimit, now: number): ThrottleResult | Promise<ThrottleResult> {
    const lease = this.#leaseOf(accountId, now);
    // After the clock is set back, tokens with a time in the future expire too.
    if (now >= lease.until || lease.until - now > AHEAD_MS) lease.tokens = 0;
    if (lease.tokens > 0 && lease.waiting.length === 0) {
      lease.tokens -= 1;
      if (lease.tokens < ahead(limit) / 2 && now >= lease.emptyUntil) this.#refill(accountId, limit, lease, now);
      return passed(lease, limit);
    }
    if (!lease.asking && now < lease.emptyUntil && lease.emptyUntil - now <= EMPTY_MS + 1_000 / limit.perSecond)
      return refused(lease.emptyUntil - now, limit);
    return new Promise((resolve) => {
      lease.waiting.push(resolve);
      this.#refill(accountId, limit, lease, now);
    });
  }

  #leaseOf(accountId: number, now: number): Lease {
    const known = this.#leases.get(accountId);
    if (known !== undefined) return known;
    if (this.#leases.size >= this.#sweepAt) this.#sweep(now);
    const lease = { tokens: 0, until: 0, left: 0, emptyUntil: 0, asking: false, waiting: [] };
    this.#leases.set(accountId, lease);
    return lease;
  }

  #refill(accountId: number, limit: ThrottleLimit, lease: Lease, now: number): void {
    if (lease.asking) return;
    lease.asking = true;
    const waiting = lease.waiting.length;
    const wanted = Math.max(waiting, waiting + ahead(limit) - lease.tokens);
    const { perSecond, burst } = limit;
    this.#ask({ accountId, perSecond, burst, requested: wanted }).then(
      ({ granted, left, nextMs }) => {
        lease.asking = false;
        lease.tokens += granted;
        lease.until = now + AHEAD_MS;
        lease.left = left;
        lease.emptyUntil = granted < wanted ? now + Math.max(1, nextMs, ahead(limit) === 0 ? 0 : EMPTY_MS) : 0;
        for (const resolve of lease.waiting.splice(0, waiting)) {
          if (lease.tokens > 0) {
            lease.tokens -= 1;
            resolve(passed(lease, limit));
          } else {
            resolve(refused(Math.max(1, nextMs), limit));
          }
        }
        // Requests that arrived during the query.
        if (lease.waiting.length > 0) this.#refill(accountId, limit, lease, now);
      },
      (error: unknown) => {
        lease.asking = false;
        this.#failed(error);
        for (const resolve of lease.waiting.splice(0)) resolve(passed(lease, limit));
      },
    );
  }

  #sweep(now: number): void {
    for (const [accountId, lease] of this.#leases) {
      if (!lease.asking && now >= lease.until && now >= lease.emptyUntil) this.#leases.delete(accountId);
    }
    this.#sweepAt = Math.max(SWEEP_FROM, this.#leases.size * 2);
  }
}

/** The number of tokens to take in advance; 0 for low rates, at which each request takes its own token. */
function ahead({ perSecond }: ThrottleLimit): number {
  const tokens = Math.floor((perSecond * AHEAD_MS) / 1_000);
  return tokens < 2 ? 0 : tokens;
}

function passed({ tokens, left }: Lease, { perSecond, burst }: ThrottleLimit): ThrottleResult {
  const together = Math.min(tokens + left, burst);
  return { ok: true, left: together, resetMs: Math.ceil(((burst - together) * 1_000) / perSecond) };
}

function refused(retryAfterMs: number, { perSecond, burst }: ThrottleLimit): ThrottleResult {
  return { ok: false, retryAfterMs, resetMs: Math.ceil((burst * 1_000) / perSecond) };
}

/** Batches the token requests of one turn of the event loop into one call of the store. */
export function batchTokenRequests(
  takeTokens: AcceptStore['takeTokens'],
  now: () => number,
): (request: TokenRequest) => Promise<TokensGranted> {
  let batch: { request: TokenRequest; resolve: (granted: TokensGranted) => void; reject: (error: unknown) => void }[] =
    [];
  const send = () => {
    const sent = batch;
    batch = [];
    takeTokens(
      sent.map(({ request }) => request),
      now(),
    ).then(
      (answers) => {
        for (const [index, { resolve, reject }] of sent.entries()) {
          const answer = answers[index];
          if (answer === undefined) reject(new Error('the store gave no answer'));
          else resolve(answer);
        }
      },
      (error: unknown) => {
        for (const { reject } of sent) reject(error);
      },
    );
  };
  return (request) =>
    new Promise((resolve, reject) => {
      if (batch.length === 0) setImmediate(send);
      batch.push({ request, resolve, reject });
    });
}

/**
 * The throttle: a token bucket for each account, exact, in memory. A request costs one token; tokens come back at
 * `perSecond`, up to `burst`. For a service alone on its store; several nodes share buckets (`SharedThrottle`).
 *
 * Promises: no more than `burst + perSecond × t` requests pass in any t seconds; a changed limit counts from the next
 * request; a clock that goes back never locks anyone out; only accounts below their burst take memory for long.
 */
import type { TokenRequest, TokensGranted } from '../model/node.ts';
import type { AcceptStore } from '../store/contract.ts';

export interface ThrottleLimit {
  readonly perSecond: number;
  readonly burst: number;
}

export type ThrottleResult =
  /** `left` requests may follow at once; `resetMs` from now the bucket is full again. */
  | { readonly ok: true; readonly left: number; readonly resetMs: number }
  /** The next token is there in `retryAfterMs`. */
  | { readonly ok: false; readonly retryAfterMs: number; readonly resetMs: number };

interface Bucket {
  /** Thousandths of a token, so that whole milliseconds at whole rates stay whole numbers. */
  level: number;
  at: number;
  perSecond: number;
  burst: number;
}

const TOKEN = 1000;
/** Rates such as 10 a minute are no binary fraction; this much of a thousandth is forgiven. */
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
    // Time that has passed is paid at the rate that held then.
    if (now > bucket.at)
      bucket.level = Math.min(bucket.burst * TOKEN, bucket.level + (now - bucket.at) * bucket.perSecond);
    bucket.at = now;
    if (bucket.burst !== limit.burst || bucket.perSecond !== limit.perSecond) {
      // A full bucket stays full under a new limit; any other keeps its tokens, as far as they fit.
      bucket.level =
        bucket.level >= bucket.burst * TOKEN ? limit.burst * TOKEN : Math.min(bucket.level, limit.burst * TOKEN);
      bucket.perSecond = limit.perSecond;
      bucket.burst = limit.burst;
    }
    return bucket;
  }

  /** Forgets full buckets: a fresh one would be the same. Runs each time their number has doubled. */
  #sweep(now: number): void {
    for (const [accountId, bucket] of this.#buckets) {
      if (bucket.level + (now - bucket.at) * bucket.perSecond >= bucket.burst * TOKEN) this.#buckets.delete(accountId);
    }
    this.#sweepAt = Math.max(SWEEP_FROM, this.#buckets.size * 2);
  }
}

// The throttle of an installation of several nodes: one token bucket for each account in the store, out of which each
// node takes a few tokens ahead, so that most requests wait for nobody.
//
// Promises: on all nodes together no more than `burst + perSecond × (t + 0.1)` requests pass in any t seconds, since a
// token not used within a tenth of a second is void; below 20 a second tokens are taken one by one, and the limit is
// exact. An account over its limit costs the store one question for each token's time. Where the store does not answer,
// the request passes on to the commit, which will not be answered either.

/** Tokens are taken ahead for this long, and are void after it. */
const AHEAD_MS = 100;
/** An empty bucket of a fast throttle is asked again after this long, when it holds a handful of tokens. */
const EMPTY_MS = 20;

interface Lease {
  tokens: number;
  /** When the tokens are void. */
  until: number;
  /** What the shared bucket had left when last seen. */
  left: number;
  /** No token is to be had before. */
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
    // Also where the clock was set back: what looks as if it were leased in the future is void.
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
        // Those that came while the store was asked.
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

/** Tokens to hold ahead: none where a request can as well ask for its own. */
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

/** Asks for the tokens of many accounts in one call: those of one turn of the event loop together. */
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

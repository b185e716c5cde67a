/**
 * The throttle: a token bucket for each account, exact, in memory. A request costs one token; tokens come back at
 * `perSecond`, up to `burst`. For a service alone on its store; several nodes share buckets (`shared-throttle.ts`).
 *
 * Promises: no more than `burst + perSecond × t` requests pass in any t seconds; a changed limit counts from the next
 * request; a clock that goes back never locks anyone out; only accounts below their burst take memory for long.
 */

export interface ThrottleLimit {
  readonly perSecond: number;
  readonly burst: number;
}

export type ThrottleAnswer =
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
  take(accountId: number, limit: ThrottleLimit, now: number): ThrottleAnswer {
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

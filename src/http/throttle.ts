/**
 * Implements the throttle: an exact token bucket per account, in memory. Each request uses one token. The bucket
 * receives `perSecond` tokens per second, up to `burst`. `Throttle` is for a single node. Several nodes share the
 * buckets of the store (`SharedThrottle`).
 *
 * Guarantees: at most `burst + perSecond × t` requests pass in any t seconds. A changed limit applies from the next
 * request. A clock that is set back does not block an account. Full buckets are removed from memory.
 */
import type { TokenGrant, TokenRequest } from '../model/node.ts';
import type { AcceptStore } from '../store/contract.ts';

export interface ThrottleLimit {
  readonly perSecond: number;
  readonly burst: number;
}

export type ThrottleResult =
  /** The request passes the throttle. `remaining` further requests can pass now. The bucket is full after `resetMs`. */
  | { readonly ok: true; readonly remaining: number; readonly resetMs: number }
  /** The throttle refuses the request. The next token is available after `retryAfterMs`. */
  | { readonly ok: false; readonly retryAfterMs: number; readonly resetMs: number };

interface Bucket {
  /** The available tokens in thousandths of a token. The value is an integer for integer rates and times. */
  milliTokens: number;
  updatedAt: number;
  perSecond: number;
  burst: number;
}

const MILLITOKENS_PER_TOKEN = 1000;
/**
 * The tolerance for rates that are not integers, because the sums of such rates are rounded. The unit is a thousandth
 * of a token.
 */
const ROUNDING_TOLERANCE = 1e-6;
const MIN_SWEEP_SIZE = 1024;

export class Throttle {
  readonly #buckets = new Map<number, Bucket>();
  #sweepSize = MIN_SWEEP_SIZE;

  /** The number of accounts with a bucket in memory. */
  get size(): number {
    return this.#buckets.size;
  }

  /**
   * Takes one token from the bucket of the account if a token is available. `now` is in milliseconds since the epoch.
   */
  takeToken(accountId: number, limit: ThrottleLimit, now: number): ThrottleResult {
    const bucket = this.#getRefilledBucket(accountId, limit, now);
    if (bucket.milliTokens + ROUNDING_TOLERANCE >= MILLITOKENS_PER_TOKEN) {
      bucket.milliTokens = Math.max(0, bucket.milliTokens - MILLITOKENS_PER_TOKEN);
      return {
        ok: true,
        remaining: Math.floor((bucket.milliTokens + ROUNDING_TOLERANCE) / MILLITOKENS_PER_TOKEN),
        resetMs: Math.ceil((limit.burst * MILLITOKENS_PER_TOKEN - bucket.milliTokens) / limit.perSecond),
      };
    }
    return {
      ok: false,
      retryAfterMs: Math.max(
        1,
        Math.ceil((MILLITOKENS_PER_TOKEN - ROUNDING_TOLERANCE - bucket.milliTokens) / limit.perSecond),
      ),
      resetMs: Math.ceil((limit.burst * MILLITOKENS_PER_TOKEN - bucket.milliTokens) / limit.perSecond),
    };
  }

  /** Adds the tokens of the elapsed time to the bucket of the account, and returns the bucket. A new bucket is full. */
  #getRefilledBucket(accountId: number, limit: ThrottleLimit, now: number): Bucket {
    const bucket = this.#buckets.get(accountId);
    if (bucket === undefined) {
      if (this.#buckets.size >= this.#sweepSize) this.#removeFullBuckets(now);
      const newBucket = {
        milliTokens: limit.burst * MILLITOKENS_PER_TOKEN,
        updatedAt: now,
        perSecond: limit.perSecond,
        burst: limit.burst,
      };
      this.#buckets.set(accountId, newBucket);
      return newBucket;
    }
    // The tokens of the elapsed time are computed with the previous rate.
    if (now > bucket.updatedAt)
      bucket.milliTokens = Math.min(
        bucket.burst * MILLITOKENS_PER_TOKEN,
        bucket.milliTokens + (now - bucket.updatedAt) * bucket.perSecond,
      );
    bucket.updatedAt = now;
    if (bucket.burst !== limit.burst || bucket.perSecond !== limit.perSecond) {
      // A bucket that was full is also full with the new limit. Any other bucket keeps its tokens, up to the new burst.
      bucket.milliTokens =
        bucket.milliTokens >= bucket.burst * MILLITOKENS_PER_TOKEN
          ? limit.burst * MILLITOKENS_PER_TOKEN
          : Math.min(bucket.milliTokens, limit.burst * MILLITOKENS_PER_TOKEN);
      bucket.perSecond = limit.perSecond;
      bucket.burst = limit.burst;
    }
    return bucket;
  }

  /**
   * Removes full buckets. The removal loses no information, because a new bucket is full. This method is called when the
   * number of buckets has doubled since the previous call.
   */
  #removeFullBuckets(now: number): void {
    for (const [accountId, bucket] of this.#buckets) {
      if (bucket.milliTokens + (now - bucket.updatedAt) * bucket.perSecond >= bucket.burst * MILLITOKENS_PER_TOKEN)
        this.#buckets.delete(accountId);
    }
    this.#sweepSize = Math.max(MIN_SWEEP_SIZE, this.#buckets.size * 2);
  }
}

// Implements the throttle of an installation with several nodes: one token bucket per account in the store. Each node
// takes several tokens in advance, so that most requests need no query.
//
// Guarantees: at most `burst + perSecond × (t + 0.1)` requests pass on all nodes together in any t seconds, because a
// token that a node has taken in advance expires after 0.1 s. With a limit below 20 requests per second, no tokens are
// taken in advance, and the limit is exact. An account above its limit causes at most one query per node in the time
// between two tokens.
//
// Fails: if the query of the store fails, the error is published and the request passes the throttle. If the commit of
// the message then fails too, the request is refused.

/** The time for which tokens are taken in advance. After this time the tokens expire. */
const PREFETCH_MS = 100;
/** The minimum interval between two queries of an empty bucket with a high rate. */
const MIN_EMPTY_BUCKET_QUERY_INTERVAL_MS = 20;

interface TokenReserve {
  tokens: number;
  /** The time at which the tokens expire, in milliseconds since the epoch. */
  expiresAt: number;
  /** The number of tokens in the shared bucket at the last query. */
  sharedTokens: number;
  /** The time before which the shared bucket has no token, in milliseconds since the epoch. */
  emptyUntil: number;
  isQueryRunning: boolean;
  readonly waiters: ((result: ThrottleResult) => void)[];
}

export class SharedThrottle {
  readonly #reserves = new Map<number, TokenReserve>();
  readonly #requestTokens: (request: TokenRequest) => Promise<TokenGrant>;
  readonly #onError: (error: unknown) => void;
  #sweepSize = MIN_SWEEP_SIZE;

  /**
   * `requestTokens` takes tokens from the shared bucket. The function may combine the calls of one iteration of the
   * event loop.
   */
  constructor(requestTokens: (request: TokenRequest) => Promise<TokenGrant>, onError: (error: unknown) => void) {
    this.#requestTokens = requestTokens;
    this.#onError = onError;
  }

  /**
   * Takes one token from the bucket of the account if a token is available. Returns a promise if the store must be
   * queried. `now` is in milliseconds since the epoch.
   */
  takeToken(accountId: number, limit: ThrottleLimit, now: number): ThrottleResult | Promise<ThrottleResult> {
    const reserve = this.#getOrCreateReserve(accountId, now);
    // After the clock is set back, tokens whose expiry time is too far in the future expire too.
    if (now >= reserve.expiresAt || reserve.expiresAt - now > PREFETCH_MS) reserve.tokens = 0;
    if (reserve.tokens > 0 && reserve.waiters.length === 0) {
      reserve.tokens -= 1;
      if (reserve.tokens < getPrefetchCount(limit) / 2 && now >= reserve.emptyUntil)
        this.#refillReserve(accountId, limit, reserve, now);
      return createPassedResult(reserve, limit);
    }
    if (
      !reserve.isQueryRunning &&
      now < reserve.emptyUntil &&
      reserve.emptyUntil - now <= MIN_EMPTY_BUCKET_QUERY_INTERVAL_MS + 1_000 / limit.perSecond
    )
      return createRefusedResult(reserve.emptyUntil - now, limit);
    return new Promise((resolve) => {
      reserve.waiters.push(resolve);
      this.#refillReserve(accountId, limit, reserve, now);
    });
  }

  #getOrCreateReserve(accountId: number, now: number): TokenReserve {
    const existingReserve = this.#reserves.get(accountId);
    if (existingReserve !== undefined) return existingReserve;
    if (this.#reserves.size >= this.#sweepSize) this.#removeExpiredReserves(now);
    const reserve = { tokens: 0, expiresAt: 0, sharedTokens: 0, emptyUntil: 0, isQueryRunning: false, waiters: [] };
    this.#reserves.set(accountId, reserve);
    return reserve;
  }

  #refillReserve(accountId: number, limit: ThrottleLimit, reserve: TokenReserve, now: number): void {
    if (reserve.isQueryRunning) return;
    reserve.isQueryRunning = true;
    const waitingCount = reserve.waiters.length;
    const requestedTokens = Math.max(waitingCount, waitingCount + getPrefetchCount(limit) - reserve.tokens);
    const { perSecond, burst } = limit;
    this.#requestTokens({ accountId, perSecond, burst, requested: requestedTokens }).then(
      ({ granted, remaining: remainingTokens, nextTokenMs: nextTokenInMs }) => {
        reserve.isQueryRunning = false;
        reserve.tokens += granted;
        reserve.expiresAt = now + PREFETCH_MS;
        reserve.sharedTokens = remainingTokens;
        reserve.emptyUntil =
          granted < requestedTokens
            ? now + Math.max(1, nextTokenInMs, getPrefetchCount(limit) === 0 ? 0 : MIN_EMPTY_BUCKET_QUERY_INTERVAL_MS)
            : 0;
        for (const resolve of reserve.waiters.splice(0, waitingCount)) {
          if (reserve.tokens > 0) {
            reserve.tokens -= 1;
            resolve(createPassedResult(reserve, limit));
          } else {
            resolve(createRefusedResult(Math.max(1, nextTokenInMs), limit));
          }
        }
        // The remaining requests arrived during the query.
        if (reserve.waiters.length > 0) this.#refillReserve(accountId, limit, reserve, now);
      },
      (error: unknown) => {
        reserve.isQueryRunning = false;
        this.#onError(error);
        for (const resolve of reserve.waiters.splice(0)) resolve(createPassedResult(reserve, limit));
      },
    );
  }

  #removeExpiredReserves(now: number): void {
    for (const [accountId, reserve] of this.#reserves) {
      if (!reserve.isQueryRunning && now >= reserve.expiresAt && now >= reserve.emptyUntil)
        this.#reserves.delete(accountId);
    }
    this.#sweepSize = Math.max(MIN_SWEEP_SIZE, this.#reserves.size * 2);
  }
}

/**
 * Returns the number of tokens to take in advance. The number is 0 for low rates, at which each request takes one
 * token from the store.
 */
function getPrefetchCount({ perSecond }: ThrottleLimit): number {
  const tokens = Math.floor((perSecond * PREFETCH_MS) / 1_000);
  return tokens < 2 ? 0 : tokens;
}

function createPassedResult(
  { tokens, sharedTokens: remainingTokens }: TokenReserve,
  { perSecond, burst }: ThrottleLimit,
): ThrottleResult {
  const remaining = Math.min(tokens + remainingTokens, burst);
  return { ok: true, remaining, resetMs: Math.ceil(((burst - remaining) * 1_000) / perSecond) };
}

function createRefusedResult(retryAfterMs: number, { perSecond, burst }: ThrottleLimit): ThrottleResult {
  return { ok: false, retryAfterMs, resetMs: Math.ceil((burst * 1_000) / perSecond) };
}

/** Combines the token requests of one iteration of the event loop into one call of the store. */
export function batchTokenRequests(
  takeTokens: AcceptStore['takeTokens'],
  now: () => number,
): (request: TokenRequest) => Promise<TokenGrant> {
  let batch: { request: TokenRequest; resolve: (granted: TokenGrant) => void; reject: (error: unknown) => void }[] = [];
  const sendBatch = () => {
    const requests = batch;
    batch = [];
    takeTokens(
      requests.map(({ request }) => request),
      now(),
    ).then(
      (grants) => {
        for (const [index, { resolve, reject }] of requests.entries()) {
          const grant = grants[index];
          if (grant === undefined) reject(new Error('the store returned no result for a token request'));
          else resolve(grant);
        }
      },
      (error: unknown) => {
        for (const { reject } of requests) reject(error);
      },
    );
  };
  return (request) =>
    new Promise((resolve, reject) => {
      if (batch.length === 0) setImmediate(sendBatch);
      batch.push({ request, resolve, reject });
    });
}

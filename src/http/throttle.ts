/** At most `burst + perSecond × t` requests pass in any t seconds. A clock that is set back blocks no account. */
import type { TokenGrant, TokenRequest } from '../model/node.ts';
import type { AcceptStore } from '../store/contract.ts';

export interface ThrottleLimit {
  readonly perSecond: number;
  readonly burst: number;
}

export type ThrottleResult =
  | { readonly ok: true; readonly remaining: number; readonly resetMs: number }
  | { readonly ok: false; readonly retryAfterMs: number; readonly resetMs: number };

interface Bucket {
  milliTokens: number;
  updatedAt: number;
  perSecond: number;
  burst: number;
}

const MILLITOKENS_PER_TOKEN = 1000;
/** For rates that are not integers, whose sums are rounded, in thousandths of a token. */
const ROUNDING_TOLERANCE = 1e-6;
const MIN_SWEEP_SIZE = 1024;

export class Throttle {
  readonly #buckets = new Map<number, Bucket>();
  #sweepSize = MIN_SWEEP_SIZE;

  get size(): number {
    return this.#buckets.size;
  }

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

  /** A removed full bucket loses no information, because a new one is full. */
  #removeFullBuckets(now: number): void {
    for (const [accountId, bucket] of this.#buckets) {
      if (bucket.milliTokens + (now - bucket.updatedAt) * bucket.perSecond >= bucket.burst * MILLITOKENS_PER_TOKEN)
        this.#buckets.delete(accountId);
    }
    this.#sweepSize = Math.max(MIN_SWEEP_SIZE, this.#buckets.size * 2);
  }
}

// One bucket in the store, of which nodes take tokens in advance, from 20 per second: at most `burst + perSecond × (t +
// 0.1)` on all nodes. After a failed query the request passes, and its commit decides.

const PREFETCH_MS = 100;
const MIN_EMPTY_BUCKET_QUERY_INTERVAL_MS = 20;

interface TokenReserve {
  tokens: number;
  expiresAt: number;
  sharedTokens: number;
  emptyUntil: number;
  isQueryRunning: boolean;
  readonly waiters: ((result: ThrottleResult) => void)[];
}

export class SharedThrottle {
  readonly #reserves = new Map<number, TokenReserve>();
  readonly #requestTokens: (request: TokenRequest) => Promise<TokenGrant>;
  readonly #onError: (error: unknown) => void;
  #sweepSize = MIN_SWEEP_SIZE;

  constructor(requestTokens: (request: TokenRequest) => Promise<TokenGrant>, onError: (error: unknown) => void) {
    this.#requestTokens = requestTokens;
    this.#onError = onError;
  }

  takeToken(accountId: number, limit: ThrottleLimit, now: number): ThrottleResult | Promise<ThrottleResult> {
    const reserve = this.#getOrCreateReserve(accountId, now);
    // After the clock is set back, tokens with an expiry too far in the future expire too.
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

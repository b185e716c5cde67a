/**
 * Limits the rate of the SES transport to the send rate of the account, and to a lower rate after the provider has
 * throttled a request. Several nodes share the rate of an account. Each node lowers its share when the provider
 * throttles one of its requests, and then raises the share gradually.
 */
import type { Clock } from '../../clock.ts';

/** The factor by which a throttled request multiplies the share of the rate. */
const SLOW_DOWN_FACTOR = 0.7;
/** The amount by which the share grows in each second. */
const GROWTH_PER_SECOND = 0.05;
const MIN_SHARE = 0.05;
/** The rate in messages per second until the rate of the account is known. */
const DEFAULT_RATE = 14;
/**
 * The size of a burst, in seconds at the current rate. With a burst of one second, the transport could send twice the
 * rate in one second, and the provider would throttle requests.
 */
const BURST_SECONDS = 0.1;

export interface RateLimiter {
  /** Resolves to true when the next message may be sent, or to false once the limiter is closed. */
  acquire(): Promise<boolean>;
  /** Sets the account's send rate in messages per second. Null means that the rate is unknown. */
  setRate(perSecond: number | null): void;
  /** Lowers the rate after a throttled request. */
  slowDown(): void;
  /** The current rate in messages per second. */
  readonly currentRate: number;
  close(): void;
}

export function createRateLimiter(clock: Clock): RateLimiter {
  let rateLimit = DEFAULT_RATE;
  let rateShare = 1;
  let shareUpdatedAt = clock.now();
  let tokens = rateLimit * BURST_SECONDS;
  let tokensUpdatedAt = shareUpdatedAt;
  const waiters: ((acquired: boolean) => void)[] = [];
  let cancel: (() => void) | null = null;
  let isClosed = false;

  function updateRate(): number {
    const now = clock.now();
    const elapsedSeconds = Math.max(0, now - shareUpdatedAt) / 1000;
    rateShare = Math.min(1, rateShare + elapsedSeconds * GROWTH_PER_SECOND);
    shareUpdatedAt = now;
    return rateLimit * rateShare;
  }

  function refillTokens(): void {
    const now = clock.now();
    const rate = updateRate();
    tokens = Math.min(Math.max(1, rate * BURST_SECONDS), tokens + (Math.max(0, now - tokensUpdatedAt) / 1000) * rate);
    tokensUpdatedAt = now;
  }

  function serveWaiters(): void {
    refillTokens();
    while (waiters.length > 0 && tokens >= 1) {
      tokens -= 1;
      waiters.shift()?.(true);
    }
    if (waiters.length > 0 && cancel === null) {
      const waitMs = Math.max(1, Math.ceil(((1 - tokens) / updateRate()) * 1000));
      cancel = clock.after(waitMs, () => {
        cancel = null;
        serveWaiters();
      });
    }
  }

  return {
    acquire() {
      if (isClosed) return Promise.resolve(false);
      return new Promise((resolve) => {
        waiters.push(resolve);
        serveWaiters();
      });
    },
    setRate(perSecond) {
      refillTokens();
      rateLimit = perSecond === null || perSecond <= 0 ? DEFAULT_RATE : perSecond;
    },
    slowDown() {
      refillTokens();
      rateShare = Math.max(MIN_SHARE, rateShare * SLOW_DOWN_FACTOR);
      tokens = Math.min(tokens, 0);
    },
    get currentRate() {
      return updateRate();
    },
    close() {
      isClosed = true;
      cancel?.();
      for (const resolve of waiters.splice(0)) resolve(false);
    },
  };
}

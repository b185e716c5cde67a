/**
 * How fast messages are handed over: the account's own send rate, and less while the provider says that it is too fast.
 * Several nodes share an account's rate, so each finds its part by being throttled and growing again.
 */
import type { Clock } from '../../clock.ts';

/** After a throttled answer the rate is this part of what it was; it grows back by `GROW` each second without one. */
const SHRINK = 0.7;
const GROW = 0.05;
const LEAST = 0.05;
/** Where nothing is known of the account's rate. */
const UNKNOWN_RATE = 14;
/** A tenth of a second's worth may go at once: with a whole one, some second would see twice the rate, and be throttled. */
const BURST_S = 0.1;

export interface RateLimiter {
  /** Waits for the next place; resolves to false where it is closed. */
  acquire(): Promise<boolean>;
  /** The account's messages a second, or null where it does not say. */
  setRate(perSecond: number | null): void;
  slowDown(): void;
  /** Messages a second now. */
  readonly currentRate: number;
  close(): void;
}

export function createRateLimiter(clock: Clock): RateLimiter {
  let limit = UNKNOWN_RATE;
  let part = 1;
  let partAt = clock.now();
  let tokens = limit * BURST_S;
  let tokensAt = partAt;
  const waiting: ((go: boolean) => void)[] = [];
  let cancel: (() => void) | null = null;
  let closed = false;

  function rateNow(): number {
    const now = clock.now();
    const seconds = Math.max(0, now - partAt) / 1000;
    part = Math.min(1, part + seconds * GROW);
    partAt = now;
    return limit * part;
  }

  function refill(): void {
    const now = clock.now();
    const rate = rateNow();
    tokens = Math.min(Math.max(1, rate * BURST_S), tokens + (Math.max(0, now - tokensAt) / 1000) * rate);
    tokensAt = now;
  }

  function serve(): void {
    refill();
    while (waiting.length > 0 && tokens >= 1) {
      tokens -= 1;
      waiting.shift()?.(true);
    }
    if (waiting.length > 0 && cancel === null) {
      const waitMs = Math.max(1, Math.ceil(((1 - tokens) / rateNow()) * 1000));
      cancel = clock.after(waitMs, () => {
        cancel = null;
        serve();
      });
    }
  }

  return {
    acquire() {
      if (closed) return Promise.resolve(false);
      return new Promise((resolve) => {
        waiting.push(resolve);
        serve();
      });
    },
    setRate(perSecond) {
      refill();
      limit = perSecond === null || perSecond <= 0 ? UNKNOWN_RATE : perSecond;
    },
    slowDown() {
      refill();
      part = Math.max(LEAST, part * SHRINK);
      tokens = Math.min(tokens, 0);
    },
    get currentRate() {
      return rateNow();
    },
    close() {
      closed = true;
      cancel?.();
      for (const resolve of waiting.splice(0)) resolve(false);
    },
  };
}

/**
 * The clock that is injected into every part that waits or reads the time. Production uses `systemClock`; a test injects
 * its own clock and runs days of retries in milliseconds.
 */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /**
   * Calls `run` once after `delayMs`. The returned function cancels the call. The timer does not keep the process
   * alive.
   */
  after(delayMs: number, run: () => void): () => void;
}

/** A clock with a second reading, which measures durations. */
export interface MonotonicClock extends Clock {
  /**
   * Milliseconds since an arbitrary origin. No clock adjustment changes it. A duration is the difference of two
   * readings.
   */
  monotonic(): number;
}

/** The clock and the timers of this machine. */
export const systemClock: MonotonicClock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs, run) {
    const timer = setTimeout(run, delayMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** Calls `run` every `everyMs`. The returned function stops the calls. */
export function runEvery(clock: Clock, everyMs: number, run: () => void): () => void {
  let cancel = clock.after(everyMs, tick);
  function tick(): void {
    run();
    cancel = clock.after(everyMs, tick);
  }
  return () => cancel();
}

/** A clock that is synchronized to another clock, such as the clock of the database server, which all nodes share. */
export interface SynchronizedClock extends MonotonicClock {
  /**
   * Sets the offset from one reading of the other clock. `now` is the reading (ms since the epoch), taken between
   * `requestedAt` and `answeredAt` on the monotonic clock. The offset changes only if its error exceeds half of that
   * interval, so that the time does not jitter.
   */
  synchronize(now: number, requestedAt: number, answeredAt: number): void;
}

/**
 * Returns a clock that returns the time of the other clock and advances with `monotonic` between two readings. A change
 * of the system clock has no effect. Before the first reading, `now` returns the time of `base`.
 */
export function synchronizedClock(base: Clock, monotonic: () => number): SynchronizedClock {
  let offset = base.now() - monotonic();
  let synchronized = false;
  return {
    now: () => Math.floor(offset + monotonic()),
    monotonic,
    after: base.after,
    synchronize(now, requestedAt, answeredAt) {
      const uncertaintyMs = (answeredAt - requestedAt) / 2;
      const measuredOffset = now - requestedAt - uncertaintyMs;
      if (!synchronized || Math.abs(measuredOffset - offset) > uncertaintyMs + 1) offset = measuredOffset;
      synchronized = true;
    },
  };
}

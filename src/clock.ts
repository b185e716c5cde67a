/**
 * The clock that is injected into every module that waits or reads the time. Production uses `systemClock`; a test
 * injects its own clock and simulates days of retries in milliseconds.
 */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /**
   * Calls `run` once, `delayMs` milliseconds later. The returned function cancels the call. The timer does not keep the
   * process alive.
   */
  after(delayMs: number, run: () => void): () => void;
}

/** A clock that also measures durations. */
export interface MonotonicClock extends Clock {
  /**
   * Milliseconds since an arbitrary origin. Adjustments of the system clock have no effect. A duration is the
   * difference of two readings.
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

/** Calls `run` every `intervalMs` milliseconds. The returned function stops the calls. */
export function runEvery(clock: Clock, intervalMs: number, run: () => void): () => void {
  let cancel = clock.after(intervalMs, runAndReschedule);
  function runAndReschedule(): void {
    run();
    cancel = clock.after(intervalMs, runAndReschedule);
  }
  return () => cancel();
}

/** A clock that is synchronized to another clock, such as the clock of the database server, which all nodes share. */
export interface SynchronizedClock extends MonotonicClock {
  /**
   * Adjusts this clock to a reading of the other clock. `now` is the reading, in milliseconds since the Unix epoch. It
   * was taken between `requestedAt` and `answeredAt`, which are readings of `monotonic`. Half of the interval between
   * them is the uncertainty of the reading. A difference within the uncertainty does not adjust this clock,
   * so that its time does not jitter.
   */
  synchronize(now: number, requestedAt: number, answeredAt: number): void;
}

/**
 * Creates a clock that is synchronized by calls of `synchronize` and advances with `monotonic` between two calls. A
 * change of the system clock has no effect. Until the first call, `now` advances from the time that `base` had at the
 * creation of the clock.
 */
export function createSynchronizedClock(base: Clock, monotonic: () => number): SynchronizedClock {
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

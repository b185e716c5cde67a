/** The injected clock. Production uses `systemClock`; a test simulates days of retries in milliseconds. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Calls `run` once. The returned function cancels the call. The timer does not keep the process alive. */
  after(delayMs: number, run: () => void): () => void;
}

export interface MonotonicClock extends Clock {
  /** Milliseconds since an arbitrary origin, regardless of the system clock. */
  monotonic(): number;
}

export const systemClock: MonotonicClock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs, run) {
    const timer = setTimeout(run, delayMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

export function runEvery(clock: Clock, intervalMs: number, run: () => void): () => void {
  let cancel = clock.after(intervalMs, runAndReschedule);
  function runAndReschedule(): void {
    run();
    cancel = clock.after(intervalMs, runAndReschedule);
  }
  return () => cancel();
}

/** Follows another clock, such as that of the database server. A change of the system clock has no effect. */
export function createSynchronizedClock(base: Clock, monotonic: () => number) {
  let offset = base.now() - monotonic();
  let synchronized = false;
  return {
    now: () => Math.floor(offset + monotonic()),
    monotonic,
    after: base.after,
    /** A difference within half of the duration of the request adjusts nothing, so that the time does not jitter. */
    synchronize(now: number, requestedAt: number, answeredAt: number): void {
      const uncertaintyMs = (answeredAt - requestedAt) / 2;
      const measuredOffset = now - requestedAt - uncertaintyMs;
      if (!synchronized || Math.abs(measuredOffset - offset) > uncertaintyMs + 1) offset = measuredOffset;
      synchronized = true;
    },
  };
}

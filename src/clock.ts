/**
 * Time, as it is handed to every part that waits or reads it. Production gets `systemClock`; a test
 * hands in a clock of its own and runs days of retries in milliseconds.
 */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Calls `run` once after `delayMs`; the returned function cancels it. Never keeps the process alive. */
  after(delayMs: number, run: () => void): () => void;
}

/** A clock that measures durations too. */
export interface MonotonicClock extends Clock {
  /** Milliseconds from any origin. Nobody sets it: a duration is a difference of two readings. */
  monotonic(): number;
}

/** The machine's clock and timers. */
export const systemClock: MonotonicClock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs, run) {
    const timer = setTimeout(run, delayMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** Runs `run` each `everyMs` of the clock; the returned function ends it. */
export function every(clock: Clock, everyMs: number, run: () => void): () => void {
  let cancel = clock.after(everyMs, again);
  function again(): void {
    run();
    cancel = clock.after(everyMs, again);
  }
  return () => cancel();
}

/** A clock that follows another one, such as the database server's that all nodes share. */
export interface SynchronizedClock extends MonotonicClock {
  /**
   * The followed clock said `now` (ms since the epoch) somewhere between two times of `monotonic`. What is known to
   * be right within that doubt is kept, so that time does not tremble.
   */
  synchronize(now: number, askedAt: number, answeredAt: number): void;
}

/**
 * Time of the followed clock, carried on by `monotonic` between its answers: setting the machine's clock changes
 * nothing. Until the first answer it is `base`'s.
 */
export function synchronizedClock(base: Clock, monotonic: () => number): SynchronizedClock {
  let offset = base.now() - monotonic();
  let followed = false;
  return {
    now: () => Math.floor(offset + monotonic()),
    monotonic,
    after: base.after,
    synchronize(now, askedAt, answeredAt) {
      const doubt = (answeredAt - askedAt) / 2;
      const found = now - askedAt - doubt;
      if (!followed || Math.abs(found - offset) > doubt + 1) offset = found;
      followed = true;
    },
  };
}

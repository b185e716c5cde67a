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

/** The machine's clock and timers. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after(delayMs, run) {
    const timer = setTimeout(run, delayMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

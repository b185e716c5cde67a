/**
 * Load shedding: how many requests are in flight, how long they take, and whether one more may come in.
 *
 * Promises: never more than `max` between key check and answer; the advised wait is the mean time of a request, which
 * by Little's law is how long the requests in flight take to drain.
 */
import type { LoadSignal } from './ports.ts';

/** Weight of the newest request in the running mean. */
const NEWEST = 0.05;

export class InFlight {
  readonly #max: number;
  readonly #load: LoadSignal;
  #count = 0;
  #meanMs = 0;
  #onIdle: (() => void) | null = null;

  constructor(max: number, load: LoadSignal) {
    this.#max = max;
    this.#load = load;
  }

  get count(): number {
    return this.#count;
  }

  /** Milliseconds after which a shed client may try again, or null where the request may come in. */
  shedMs(): number | null {
    if (this.#count >= this.#max) return Math.max(1, this.#meanMs);
    const decision = this.#load();
    return decision.shed ? decision.retryAfterMs : null;
  }

  begin(): void {
    this.#count += 1;
  }

  /** One request was answered, or its client went away, after `tookMs`. */
  end(tookMs: number): void {
    this.#count -= 1;
    this.#meanMs += (tookMs - this.#meanMs) * NEWEST;
    if (this.#count === 0 && this.#onIdle !== null) {
      const run = this.#onIdle;
      this.#onIdle = null;
      run();
    }
  }

  /** Calls `run` once nothing is in flight; at once where that is so now. */
  whenIdle(run: () => void): void {
    if (this.#count === 0) run();
    else this.#onIdle = run;
  }
}

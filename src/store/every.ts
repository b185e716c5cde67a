/** Repetition on a clock that is handed in. */
import type { Clock } from '../clock.ts';

/** Runs `run` each `everyMs` of the clock; the returned function ends it. */
export function every(clock: Clock, everyMs: number, run: () => void): () => void {
  let cancel = clock.after(everyMs, again);
  function again(): void {
    run();
    cancel = clock.after(everyMs, again);
  }
  return () => cancel();
}

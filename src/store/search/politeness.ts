/** The thread that works on the index takes only what others leave of the processor. */
import { setPriority } from 'node:os';

const NICENESS = 10;

/** For the thread that calls it, on Linux, where threads have a niceness of their own; elsewhere nothing happens. Never throws. */
export function yieldThisThread(): void {
  if (process.platform !== 'linux') return;
  try {
    setPriority(0, NICENESS);
  } catch {
    // Not allowed here: the index is made the same, only less politely.
  }
}

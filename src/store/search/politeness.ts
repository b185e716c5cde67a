/** The thread that works on the index takes only what others leave of the processor, and little memory. */
import { setPriority } from 'node:os';

const NICENESS = 10;

/**
 * What it makes is soon done with. Without bounds its heap grows to 130 MB before V8 finds that worth a collection; with
 * them it takes 70 MB at most, most of it V8's and Node's own.
 */
export const INDEX_MEMORY = { maxYoungGenerationSizeMb: 8, maxOldGenerationSizeMb: 256 } as const;

/** For the thread that calls it, on Linux, where threads have a niceness of their own; elsewhere nothing happens. Never throws. */
export function yieldThisThread(): void {
  if (process.platform !== 'linux') return;
  try {
    setPriority(0, NICENESS);
  } catch {
    // Not allowed here: the index is made the same, only less politely.
  }
}

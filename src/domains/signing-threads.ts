/**
 * Signatures are made on the threads of libuv's pool and can fill every core. There they shall take only what is left:
 * accepting a request and committing it go first. Linux schedules threads by a niceness of their own, and raising it needs
 * no right; elsewhere nothing happens.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { setPriority } from 'node:os';

const POOL_THREAD = 'libuv-worker';
/**
 * With 10 every event finds the event loop asleep and is dealt with alone; with 5 several come together, and commits too,
 * which costs less of the processor (docs/decisions/dkim.md has the figures, and what accepting pays for it).
 */
const NICENESS = 5;

/** Lets the pool's threads that exist by now yield to all others of this process. Never throws. */
export function yieldSigningThreads(tasks = '/proc/self/task'): void {
  try {
    for (const id of readdirSync(tasks)) {
      const name = readFileSync(`${tasks}/${id}/comm`, 'utf8').trim();
      if (name === POOL_THREAD) setPriority(Number(id), NICENESS);
    }
  } catch {
    // No such folder (not Linux), or a thread that has just ended: signing works the same, only less politely.
  }
}

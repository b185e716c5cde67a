/**
 * Folders in memory, because syncs to a disk need a third of the processor time of a test run. `npm run test:long` uses
 * the disk.
 */
import { mkdtempSync, readFileSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { IS_LONG_RUN } from './sample.ts';

/** The in-memory file system of Linux. */
const MEMORY_FOLDER = '/dev/shm';
const MIN_FREE_BYTES = 6_000_000_000;

/** Creates an empty folder. The caller removes it. */
export function createDataFolder(prefix: string): string {
  return mkdtempSync(join(isMemorySufficient() ? MEMORY_FOLDER : tmpdir(), prefix));
}

function isMemorySufficient(): boolean {
  if (IS_LONG_RUN || process.platform !== 'linux' || process.availableMemory() < MIN_FREE_BYTES) return false;
  try {
    const mount = readFileSync('/proc/mounts', 'utf8')
      .split('\n')
      .find((line) => line.split(' ')[1] === MEMORY_FOLDER);
    // Some tests execute programs in their folders, which `noexec` prevents.
    if (mount?.includes('noexec') ?? true) return false;
    const { bavail, bsize } = statfsSync(MEMORY_FOLDER);
    return bavail * bsize >= MIN_FREE_BYTES;
  } catch {
    // The machine has no file system at `MEMORY_FOLDER`.
    return false;
  }
}

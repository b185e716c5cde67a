/** Watches files for changes by polling, because secrets and certificates are often replaced by a renamed file or symbolic link. */
import { statSync } from 'node:fs';
import type { Clock } from '../clock.ts';

/**
 * Checks the files every `intervalMs` and calls `onChange` after a change that lasted from one check to the next: a file that is
 * still being written is not reported. The returned function stops it.
 */
export function watchFile(
  paths: readonly string[],
  intervalMs: number,
  clock: Clock,
  onChange: () => void,
): () => void {
  let reported = versionOf(paths);
  let previous = reported;
  let cancel = clock.after(intervalMs, check);
  function check(): void {
    cancel = clock.after(intervalMs, check);
    const current = versionOf(paths);
    const isUnchanged = current === previous;
    previous = current;
    if (current === reported || !isUnchanged) return;
    reported = current;
    onChange();
  }
  return () => cancel();
}

/** A text that changes with each file. Symbolic links are followed. */
function versionOf(paths: readonly string[]): string {
  return paths.map(fileVersion).join(' ');
}

function fileVersion(path: string): string {
  try {
    const stat = statSync(path, { bigint: true });
    return `${stat.ino}:${stat.size}:${stat.mtimeNs}`;
  } catch (error) {
    // A missing file, a loop of links or a missing permission counts as a change; the reader then reports the error.
    return error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
  }
}

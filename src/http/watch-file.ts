/** Watches files for changes by polling, because secrets and certificates are often replaced by a renamed file or symbolic link. */
import { statSync } from 'node:fs';
import type { Clock } from '../clock.ts';

/**
 * Checks the files every `intervalMs` and calls `onChange` after a change if the next check finds no further change. A file
 * that is still being written is therefore not reported. The returned function stops the checks.
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

/** Returns a text that changes when one of the files changes. Symbolic links are followed. */
function versionOf(paths: readonly string[]): string {
  return paths.map(fileVersion).join(' ');
}

function fileVersion(path: string): string {
  try {
    const stat = statSync(path, { bigint: true });
    return `${stat.ino}:${stat.size}:${stat.mtimeNs}`;
  } catch (error) {
    // A missing file, a loop of links or a missing permission counts as a change. The reader then reports the error.
    return error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
  }
}

/**
 * Detects changes of files by polling, because secrets and certificates are often replaced by a renamed file or
 * symbolic link.
 */
import { statSync } from 'node:fs';
import type { Clock } from '../clock.ts';

/**
 * Checks the files every `intervalMs` milliseconds. After a change, calls `onChange` as soon as the next check finds no
 * further change, so that a file that is still being written is not reported. The returned function stops the checks.
 */
export function watchFiles(
  paths: readonly string[],
  intervalMs: number,
  clock: Clock,
  onChange: () => void,
): () => void {
  let reportedVersions = readVersions(paths);
  let previousVersions = reportedVersions;
  let cancel = clock.after(intervalMs, checkFiles);
  function checkFiles(): void {
    cancel = clock.after(intervalMs, checkFiles);
    const currentVersions = readVersions(paths);
    const isUnchanged = currentVersions === previousVersions;
    previousVersions = currentVersions;
    if (currentVersions === reportedVersions || !isUnchanged) return;
    reportedVersions = currentVersions;
    onChange();
  }
  return () => cancel();
}

/** Returns a text that changes when one of the files changes. Symbolic links are followed. */
function readVersions(paths: readonly string[]): string {
  return paths.map(readFileVersion).join(' ');
}

function readFileVersion(path: string): string {
  try {
    const fileStatus = statSync(path, { bigint: true });
    return `${fileStatus.ino}:${fileStatus.size}:${fileStatus.mtimeNs}`;
  } catch (error) {
    // A missing file, a loop of links or a missing permission counts as a separate version. The code that reads the
    // file then reports the error.
    return error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
  }
}

/** Queries the file system for the checks. A folder that a query creates is removed at once. */
import { constants, existsSync } from 'node:fs';
import { access, mkdtemp, rmdir, stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** Returns the free and total bytes of the file system on which `path` is or will be. Rejects when they cannot be read. */
export async function readDiskSpace(
  path: string,
): Promise<{ readonly freeBytes: number; readonly totalBytes: number }> {
  const { bavail, blocks, bsize } = await statfs(nearestExistingFolder(dirname(path)));
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
}

/**
 * Returns the modification time of a folder created now in `folder`, in ms since the epoch. Returns null when the folder cannot
 * be created.
 */
export async function readFileSystemTime(folder: string): Promise<number | null> {
  try {
    const created = await mkdtemp(join(folder, '.doctor-'));
    try {
      return (await stat(created)).mtimeMs;
    } finally {
      await rmdir(created);
    }
  } catch {
    return null;
  }
}

/**
 * Returns null when a file can be created in the Maildir `path`, or in the folder where it will be created. Otherwise returns
 * the error code.
 */
export async function checkMaildirWritable(path: string): Promise<string | null> {
  const folder = nearestExistingFolder(existsSync(join(path, 'tmp')) ? join(path, 'tmp') : path);
  try {
    await access(folder, constants.W_OK | constants.X_OK);
    await rmdir(await mkdtemp(join(folder, '.doctor-')));
    return null;
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : String(error);
  }
}

/** Returns the folder or its nearest existing parent. */
function nearestExistingFolder(path: string): string {
  let folder = path;
  while (!existsSync(folder) && dirname(folder) !== folder) folder = dirname(folder);
  return folder;
}

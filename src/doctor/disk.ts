/** Queries the file system for the checks of `postrider doctor`. A folder that a query creates is removed at once. */
import { constants, existsSync } from 'node:fs';
import { access, mkdtemp, rmdir, stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/**
 * Returns the free and total bytes of the file system that contains or will contain `path`. Rejects when the file
 * system cannot be queried.
 */
export async function readDiskSpace(
  path: string,
): Promise<{ readonly freeBytes: number; readonly totalBytes: number }> {
  const { bavail, blocks, bsize } = await statfs(findExistingFolder(dirname(path)));
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
}

/**
 * Creates and removes a temporary folder in `folder`. Returns the modification time of the temporary folder in ms since
 * the epoch, or null when the temporary folder cannot be created.
 */
export async function readFileSystemTime(folder: string): Promise<number | null> {
  try {
    const createdFolder = await mkdtemp(join(folder, '.doctor-'));
    try {
      return (await stat(createdFolder)).mtimeMs;
    } finally {
      await rmdir(createdFolder);
    }
  } catch {
    return null;
  }
}

/**
 * Returns null when a file can be created in the Maildir `path`, or in the folder in which the Maildir will be created.
 * Otherwise returns the error code.
 */
export async function findMaildirFault(path: string): Promise<string | null> {
  const folder = findExistingFolder(existsSync(join(path, 'tmp')) ? join(path, 'tmp') : path);
  try {
    await access(folder, constants.W_OK | constants.X_OK);
    await rmdir(await mkdtemp(join(folder, '.doctor-')));
    return null;
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : String(error);
  }
}

/** Returns the folder if it exists, or its nearest existing parent. */
function findExistingFolder(path: string): string {
  let folder = path;
  while (!existsSync(folder) && dirname(folder) !== folder) folder = dirname(folder);
  return folder;
}

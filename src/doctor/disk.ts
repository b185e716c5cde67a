/** What the checks ask of the file system. What is made is removed at once, and nothing stays. */
import { constants, existsSync } from 'node:fs';
import { access, mkdtemp, rmdir, stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** Free and whole size of the file system on which `path` is or will be. Rejects where it cannot be read. */
export async function readDiskSpace(
  path: string,
): Promise<{ readonly freeBytes: number; readonly wholeBytes: number }> {
  const { bavail, blocks, bsize } = await statfs(nearestFolder(dirname(path)));
  return { freeBytes: bavail * bsize, wholeBytes: blocks * bsize };
}

/** The modification time of a folder made now in `folder`, in ms since the epoch; null where none can be made. */
export async function readFileSystemTime(folder: string): Promise<number | null> {
  try {
    const made = await mkdtemp(join(folder, '.doctor-'));
    try {
      return (await stat(made)).mtimeMs;
    } finally {
      await rmdir(made);
    }
  } catch {
    return null;
  }
}

/** Null where a file can be made in the Maildir `path`, or in the folder where it will be made; else the error's code. */
export async function checkMaildirWritable(path: string): Promise<string | null> {
  const folder = nearestFolder(existsSync(join(path, 'tmp')) ? join(path, 'tmp') : path);
  try {
    await access(folder, constants.W_OK | constants.X_OK);
    await rmdir(await mkdtemp(join(folder, '.doctor-')));
    return null;
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : String(error);
  }
}

/** The folder, or the nearest one above it that exists. */
function nearestFolder(path: string): string {
  let folder = path;
  while (!existsSync(folder) && dirname(folder) !== folder) folder = dirname(folder);
  return folder;
}

import { closeSync, fsyncSync, mkdirSync, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Only this user can read the created folders. Not with the recursive mode of `mkdirSync`, which never returns in a
 * file system that reports ENOENT for a new folder, such as /proc.
 */
export function createFolder(folder: string): void {
  const isFolder = () => statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true;
  if (isFolder()) return;
  const parent = dirname(folder);
  if (parent !== folder) createFolder(parent);
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    // Another process may have created the folder.
    if (!isFolder()) throw error;
  }
}

/** After a crash of the machine, a synced file has its content, and a synced folder its names. */
export function syncPath(path: string): void {
  const file = openSync(path, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

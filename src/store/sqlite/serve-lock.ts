/**
 * One service to a database file. The lock is SQLite's own lock on a small file beside the database: the operating
 * system frees it when the process ends, however it ends. A process that migrates, moves or restores the database holds it too.
 * It goes by the file: callers hand in the path that `resolveDatabasePath` gave, and a second hard link is refused.
 */
import { closeSync, existsSync, openSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { StoreError } from '../error.ts';
import { reasonOf, resultCode, SQLITE_BUSY } from './fault.ts';
import { resolveDatabasePath } from './files.ts';

/**
 * Takes the lock, waiting for it up to `waitMs`, until the returned function is called. Null where another process
 * holds it; throws a StoreError where it cannot be taken for any other reason.
 */
export function tryServeLock(path: string, waitMs: number): (() => void) | null {
  const file = `${path}-serve`;
  let lock: DatabaseSync | null = null;
  try {
    // SQLite would make it readable by others, and whoever may read a file may hold a lock on it that stops the next start.
    closeSync(openSync(file, 'a', 0o600));
    const opened = new DatabaseSync(file, { timeout: waitMs });
    lock = opened;
    opened.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
    return () => opened.close();
  } catch (error) {
    lock?.close();
    if (resultCode(error) === SQLITE_BUSY) return null;
    throw new StoreError(
      `cannot lock ${file} (${reasonOf(error)}). Check its owner and permissions and the disk's space; while no service runs it may be removed.`,
    );
  }
}

/** Takes the lock of a service until the returned function is called; throws a StoreError where another holds it. */
export function takeServeLock(path: string): () => void {
  const unlock = tryServeLock(path, 0);
  if (unlock !== null) return unlock;
  throw new StoreError(
    `another service runs on ${path}, or a restore or a move. Stop it, or set POSTRIDER_DATABASE to another file.`,
  );
}

/** True where a process holds the lock. Makes no file. */
export function isServed(path: string): boolean {
  const real = resolveDatabasePath(path);
  if (!existsSync(`${real}-serve`)) return false;
  const unlock = tryServeLock(real, 0);
  unlock?.();
  return unlock === null;
}

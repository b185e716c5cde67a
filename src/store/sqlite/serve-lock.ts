/**
 * One service to a database file. The lock is SQLite's own lock on a small file beside the database: the operating
 * system frees it when the process ends, however it ends.
 */
import { closeSync, openSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { StoreError } from '../store.ts';

/** Takes the lock until the returned function is called; throws a StoreError where another service holds it. */
export function takeServeLock(path: string): () => void {
  // SQLite would make it readable by others, and whoever may read a file may hold a lock on it that stops the next start.
  closeSync(openSync(`${path}-serve`, 'a', 0o600));
  const lock = new DatabaseSync(`${path}-serve`, { timeout: 0 });
  try {
    lock.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
  } catch {
    lock.close();
    throw new StoreError(`another service runs on ${path}. Stop it, or set POSTRIDER_DATABASE to another file.`);
  }
  return () => lock.close();
}

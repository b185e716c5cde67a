/**
 * Backup of the embedded database: a consistent copy while a service uses it.
 *
 * Guarantees: the copy is complete, checked and on disk when the promise resolves. Rejects with a StoreError of one
 * line.
 */
import { existsSync, statSync } from 'node:fs';
import { backup, DatabaseSync } from 'node:sqlite';
import { StoreError } from '../error.ts';
import { isPostriderDatabase, requireSinglePath } from './database.ts';
import { toStoreError } from './fault.ts';
import { requireUsableFiles, resolveDatabasePath, syncPath } from './files.ts';

/** Pages per copy step. Between the steps the service can write. */
const PAGES = 2_000;

/**
 * Copies the database at `path` into `draft`, an empty file that the caller creates and publishes. Error messages call
 * it `name`. Calls `progress` with the completed share, 0 to 1. Resolves to the size in bytes.
 */
export async function backupDatabase(
  path: string,
  draft: string,
  name: string,
  progress: (share: number) => void,
): Promise<number> {
  const realPath = resolveDatabasePath(path);
  requireUsableFiles(realPath);
  if (!existsSync(realPath)) throw new StoreError(`there is no database ${path} to back up.`);
  try {
    // A log that another process has written under another name would be missing from the copy.
    requireSinglePath(realPath);
    const source = new DatabaseSync(realPath, { timeout: 15_000 });
    try {
      requirePostriderDatabase(source, path);
      await backup(source, draft, {
        rate: PAGES,
        progress: ({ totalPages, remainingPages }) => progress(1 - remainingPages / Math.max(1, totalPages)),
      });
    } finally {
      source.close();
    }
    const copy = new DatabaseSync(draft);
    try {
      copy.exec('PRAGMA journal_mode = DELETE');
      requireIntact(copy, name);
    } finally {
      copy.close();
    }
    syncPath(draft);
    return statSync(draft).size;
  } catch (error) {
    throw toStoreError(error, name);
  }
}

/** Throws a StoreError if `database` is not a Postrider database that this version can read. */
export function requirePostriderDatabase(database: DatabaseSync, path: string): void {
  if (!isPostriderDatabase(database))
    throw new StoreError(`${path} is not a Postrider database that this version can read.`);
}

/** Throws a StoreError if SQLite finds damage in `database`. */
export function requireIntact(database: DatabaseSync, path: string): void {
  const result = database.prepare('PRAGMA integrity_check(1)').get()?.integrity_check;
  if (result !== 'ok') throw new StoreError(`${path} is damaged (${String(result)}). Use another backup.`);
}

/** Messages that a service on a restored database would send. */
export interface UnsentMessages {
  readonly count: number;
  /** When the oldest was accepted (ms since the epoch), or null if there is none. */
  readonly oldestAt: number | null;
}

/**
 * The messages in a database that were queued or being sent at the time of its backup. Throws a StoreError of one line.
 */
export function countUnsentMessages(path: string): UnsentMessages {
  try {
    const database = new DatabaseSync(resolveDatabasePath(path), { readOnly: true });
    try {
      const row = database
        .prepare(
          `SELECT count(*) AS count, min(accepted_at) AS oldest FROM mail_request
           WHERE ended_at IS NULL AND state IN ('queued', 'sending')`,
        )
        .get();
      return { count: Number(row?.count), oldestAt: row?.oldest == null ? null : Number(row.oldest) };
    } finally {
      database.close();
    }
  } catch (error) {
    throw toStoreError(error, path);
  }
}

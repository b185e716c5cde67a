/**
 * The backup of the embedded database: a consistent copy while a service runs on it.
 *
 * Guarantees: the copy is whole, checked and on disk when the promise resolves. Faults are StoreErrors of one line.
 */
import { existsSync, statSync } from 'node:fs';
import { backup, DatabaseSync } from 'node:sqlite';
import { StoreError } from '../error.ts';
import { isPostriderDatabase, requireSinglePath } from './database.ts';
import { toStoreError } from './fault.ts';
import { requireUsableFiles, resolveDatabasePath, syncPath } from './files.ts';

/** Pages copied at a time; between them the service goes on. */
const PAGES = 2_000;

/**
 * Copies the database at `path` into `draft`, an empty file. The caller creates and publishes that file. `name` is what messages
 * call it; `progress` is told the share done, 0 to 1. Resolves to its size in bytes.
 */
export async function backupDatabase(
  path: string,
  draft: string,
  name: string,
  progress: (share: number) => void,
): Promise<number> {
  const real = resolveDatabasePath(path);
  requireUsableFiles(real);
  if (!existsSync(real)) throw new StoreError(`there is no database ${path} to back up.`);
  try {
    // What another process has written under another name is not in the log that would be read here.
    requireSinglePath(real);
    const source = new DatabaseSync(real, { timeout: 15_000 });
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

/** Throws a StoreError where `database` is none of Postrider that this version can read. */
export function requirePostriderDatabase(database: DatabaseSync, path: string): void {
  if (!isPostriderDatabase(database))
    throw new StoreError(`${path} is not a database of Postrider that this version can read.`);
}

/** Throws a StoreError where SQLite finds `database` damaged. */
export function requireIntact(database: DatabaseSync, path: string): void {
  const found = database.prepare('PRAGMA integrity_check(1)').get()?.integrity_check;
  if (found !== 'ok') throw new StoreError(`${path} is damaged (${String(found)}); take another backup.`);
}

/** Messages that a service on a restored database sends. */
export interface UnsentMessages {
  readonly count: number;
  /** When the oldest was accepted (ms since the epoch); null where there is none. */
  readonly oldestAt: number | null;
}

/** The messages in a database that were queued, or on their way, when it was backed up. Throws a StoreError of one line. */
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

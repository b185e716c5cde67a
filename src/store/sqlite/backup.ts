/**
 * Makes a consistent copy while a service may use the database. When the promise resolves, the copy is complete,
 * checked and synced.
 */
import { existsSync, statSync } from 'node:fs';
import { backup, DatabaseSync } from 'node:sqlite';
import { StoreError } from '../error.ts';
import { isPostriderDatabase, requireSinglePath } from './database.ts';
import { toStoreError } from './fault.ts';
import { requireUsableFiles, resolveDatabasePath, syncPath } from './files.ts';

const PAGES_PER_STEP = 2_000;

/**
 * `temporaryPath` is an empty file that the caller later renames; error messages use `name`. Resolves to the size in
 * bytes.
 */
export async function backupDatabase(
  path: string,
  temporaryPath: string,
  name: string,
  progress: (fraction: number) => void,
): Promise<number> {
  const realPath = resolveDatabasePath(path);
  requireUsableFiles(realPath);
  if (!existsSync(realPath))
    throw new StoreError(`there is no database ${path} to back up. Set POSTRIDER_DATABASE to the database file.`);
  try {
    // If another process used the database under another name, the copy would not contain the log of that process.
    requireSinglePath(realPath);
    const source = new DatabaseSync(realPath, { timeout: 15_000 });
    try {
      requirePostriderDatabase(source, path);
      await backup(source, temporaryPath, {
        rate: PAGES_PER_STEP,
        progress: ({ totalPages, remainingPages }) => progress(1 - remainingPages / Math.max(1, totalPages)),
      });
    } finally {
      source.close();
    }
    const copy = new DatabaseSync(temporaryPath);
    try {
      copy.exec('PRAGMA journal_mode = DELETE');
      requireIntact(copy, name);
    } finally {
      copy.close();
    }
    syncPath(temporaryPath);
    return statSync(temporaryPath).size;
  } catch (error) {
    throw toStoreError(error, name);
  }
}

export function requirePostriderDatabase(database: DatabaseSync, path: string): void {
  if (!isPostriderDatabase(database))
    throw new StoreError(`${path} is not a Postrider database that this version can read.`);
}

export function requireIntact(database: DatabaseSync, path: string): void {
  const result = database.prepare('PRAGMA integrity_check(1)').get()?.integrity_check;
  if (result !== 'ok') throw new StoreError(`${path} is damaged (${String(result)}). Use another backup.`);
}

/** The messages that a service would send after a restore of this database. */
export interface UnsentMessages {
  readonly queuedCount: number;
  /** In ms since the epoch, or null. */
  readonly oldestAt: number | null;
}

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
      return { queuedCount: Number(row?.count), oldestAt: row?.oldest == null ? null : Number(row.oldest) };
    } finally {
      database.close();
    }
  } catch (error) {
    throw toStoreError(error, path);
  }
}

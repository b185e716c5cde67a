/**
 * Opening the embedded database: durable settings, checks that the file is ours and whole enough to read, and
 * migrations. Fails with a StoreError of one line that names the file and the remedy.
 */
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { StoreError } from '../store.ts';

/** `PRAGMA application_id` of a Postrider database ("PRDR"). */
const APPLICATION_ID = 0x50524452;

/** SQLite before 3.51.3 can corrupt a database in WAL mode. */
const OLDEST_SQLITE = [3, 51, 3] as const;

/**
 * 8 KiB pages and a checkpoint every 500 of them: a longer log accepts a little more but stalls each commit that copies it
 * back, and smaller pages cost half as much again (figures in docs/decisions/embedded-store.md).
 */
const PAGE_BYTES = 8192;
const CHECKPOINT_PAGES = 500;
const CACHE_KIB = 65_536;
/** How long a statement waits for another process's commit before it fails. */
const BUSY_MS = 15_000;

const MIGRATIONS = new URL('./migrations/', import.meta.url);

/** Opens the file for writing, making it and its folder where they are missing (readable by the owner only). */
export function openDatabase(path: string): DatabaseSync {
  prepareFile(path);
  let database: DatabaseSync | null = null;
  try {
    database = new DatabaseSync(path, { timeout: BUSY_MS });
    checkVersion(database);
    database.exec(`PRAGMA page_size = ${PAGE_BYTES}`);
    checkOwner(database, path);
    database.exec(
      `PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA cache_size = -${CACHE_KIB};
       PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}; PRAGMA journal_size_limit = 67108864; PRAGMA temp_store = MEMORY;`,
    );
    checkDurable(database, path);
    migrate(database, path);
    return database;
  } catch (error) {
    database?.close();
    throw explained(error, path);
  }
}

function prepareFile(path: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    if (statSync(path, { throwIfNoEntry: false }) === undefined) {
      closeSync(openSync(path, 'a', 0o600));
    }
  } catch (error) {
    throw new StoreError(
      `cannot create the database ${path}: ${reasonOf(error)}. Set POSTRIDER_DATABASE to a folder that this user may write.`,
    );
  }
}

function checkVersion(database: DatabaseSync): void {
  const version = String(database.prepare('SELECT sqlite_version() AS version').get()?.version);
  const parts = version.split('.').map(Number);
  for (const [index, least] of OLDEST_SQLITE.entries()) {
    const part = parts[index] ?? 0;
    if (part > least) return;
    if (part < least) {
      throw new StoreError(
        `SQLite ${version} of this Node can corrupt a database; run Postrider with Node 24.21 or later.`,
      );
    }
  }
}

function checkOwner(database: DatabaseSync, path: string): void {
  const id = pragma(database, 'application_id');
  const tables = database.prepare('SELECT count(*) AS n FROM sqlite_schema').get()?.n;
  if (id === APPLICATION_ID || (id === 0 && tables === 0)) return;
  throw new StoreError(
    `${path} is a database of something else, not of Postrider. Set POSTRIDER_DATABASE to another file.`,
  );
}

function checkDurable(database: DatabaseSync, path: string): void {
  const mode = database.prepare('PRAGMA journal_mode').get()?.journal_mode;
  if (mode !== 'wal' || pragma(database, 'synchronous') !== 2) {
    throw new StoreError(
      `${path} cannot be put into WAL mode with full sync; keep the database on a local file system.`,
    );
  }
}

/** Runs the numbered files this database has not seen, each in one transaction together with its number. */
function migrate(database: DatabaseSync, path: string): void {
  const files = readdirSync(MIGRATIONS)
    .filter((name) => name.endsWith('.sql'))
    .sort();
  const newest = files.length;
  if (pragma(database, 'user_version') === newest) return;
  database.exec('BEGIN IMMEDIATE');
  try {
    // Read again under the lock: another process may have migrated meanwhile.
    const version = pragma(database, 'user_version');
    if (version > newest) {
      throw new StoreError(
        `${path} has schema version ${version}, newer than this Postrider knows (${newest}); run the Postrider that wrote it, or a later one.`,
      );
    }
    for (const name of files.slice(version)) {
      database.exec(readFileSync(new URL(name, MIGRATIONS), 'utf8'));
    }
    database.exec(`PRAGMA user_version = ${newest}; PRAGMA application_id = ${APPLICATION_ID}`);
    database.exec('COMMIT');
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

function pragma(database: DatabaseSync, name: string): number {
  return Number(database.prepare(`PRAGMA ${name}`).get()?.[name]);
}

/** SQLite's own words turned into one line with a remedy; codes from sqlite.org/rescode.html. */
export function explained(error: unknown, path: string): StoreError {
  if (error instanceof StoreError) return error;
  const code = error instanceof Error && 'errcode' in error ? Number(error.errcode) & 0xff : 0;
  switch (code) {
    case 26: // SQLITE_NOTADB
    case 11: // SQLITE_CORRUPT
      return new StoreError(
        `the database ${path} is damaged (${reasonOf(error)}). It was left as it is; restore a backup or move it aside.`,
      );
    case 13: // SQLITE_FULL
      return new StoreError(`the disk of ${path} is full. Free space; nothing acknowledged is lost.`);
    case 8: // SQLITE_READONLY
    case 14: // SQLITE_CANTOPEN
      return new StoreError(`cannot write the database ${path} (${reasonOf(error)}). Check its owner and permissions.`);
    case 5: // SQLITE_BUSY
      return new StoreError(`the database ${path} is held by another process for too long; try again.`);
    default:
      return new StoreError(`the database ${path} failed: ${reasonOf(error)}`);
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

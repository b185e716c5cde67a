/** Opens the embedded database in WAL mode with full sync, and migrates its schema under the serve lock. */
import { accessSync, closeSync, constants, existsSync, openSync, readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { createFolder } from '../../folder.ts';
import { StoreError } from '../error.ts';
import { createOldStoreText, listSchemaFiles, SCHEMA_FOLDER } from '../schema.ts';
import { getErrorText, getResultCode, getSystemErrorCode, SQLITE_BUSY, toStoreError } from './fault.ts';
import {
  getRestoreMarkerPath,
  isSameFile,
  readFileIdentity,
  requireUsableFiles,
  resolveDatabasePath,
  tryAcquireServeLock,
} from './files.ts';

const APPLICATION_ID = 0x50524452;

const MIN_SQLITE_VERSION = [3, 51, 3] as const;

/**
 * With a longer interval between checkpoints the throughput is slightly higher, but the commit that starts one waits
 * longer. Pages of 4 KiB increase the processor time per row by 40 % to 66 % (docs/decisions/embedded-store.md).
 */
const PAGE_BYTES = 8192;
const CHECKPOINT_PAGES = 500;
const CACHE_KIB = 65_536;
const BUSY_TIMEOUT_MS = 15_000;

const MAX_OPEN_WAIT_MS = 5_000;

const MAX_MIGRATION_WAIT_MS = 5_000;

/** Creates the file and its folder, readable only by the owner. Without the serve lock, a migration acquires it. */
export function openDatabase(
  configuredPath: string,
  holdsServeLock = false,
  schemaFolder: URL = SCHEMA_FOLDER,
  maxMigrationWaitMs: number = MAX_MIGRATION_WAIT_MS,
): DatabaseSync {
  const path = resolveDatabasePath(configuredPath);
  prepareFile(path);
  let database: DatabaseSync | null = null;
  try {
    requireSinglePath(path);
    const openedFile = readFileIdentity(path);
    database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
    checkVersion(database);
    database.exec(`PRAGMA page_size = ${PAGE_BYTES}`);
    requireApplicationId(database, path);
    // This check runs before the first write, because a log that is created under the name of another file would
    // destroy that file.
    requireSameFile(path, openedFile);
    database.exec(
      `PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA cache_size = -${CACHE_KIB};
       PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}; PRAGMA journal_size_limit = 67108864; PRAGMA temp_store = MEMORY;
       PRAGMA secure_delete = ON;`,
    );
    checkDurable(database, path);
    requireSameFile(path, openedFile);
    const acquireLock = () => (holdsServeLock ? () => undefined : tryAcquireServeLock(path, maxMigrationWaitMs));
    migrate(database, path, listSchemaFiles(schemaFolder, 'sqlite'), acquireLock);
    return database;
  } catch (error) {
    database?.close();
    throw toStoreError(error, path);
  }
}

/**
 * Throws a StoreError if another process has the file open under another name, because the file was moved or is mounted
 * twice. SQLite writes a log for each name, and two logs destroy the database. If a process has the file open under
 * this name, the shared memory file exists.
 */
export function requireSinglePath(path: string): void {
  const isShared = () => existsSync(`${path}-shm`);
  if (isShared() || statSync(path).size === 0) return;
  const probeConnection = new DatabaseSync(path, { timeout: MAX_OPEN_WAIT_MS });
  try {
    probeConnection.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; ROLLBACK');
  } catch (error) {
    if (getResultCode(error) !== SQLITE_BUSY) throw error;
    if (isShared()) return;
    throw new StoreError(
      `another process has ${path} open under another name. End that process, and open the database by one path only.`,
    );
  } finally {
    probeConnection.close();
  }
}

function requireSameFile(path: string, openedFile: ReturnType<typeof readFileIdentity>): void {
  if (isSameFile(openedFile, readFileIdentity(path)) && !existsSync(getRestoreMarkerPath(path))) return;
  throw new StoreError(`${path} was replaced while it was being opened. Try again.`);
}

/** Also throws if opening the file could lose accepted messages. */
export function prepareFile(path: string): void {
  requireUsableFiles(path);
  try {
    createFolder(dirname(path));
    const fileStats = statSync(path, { throwIfNoEntry: false });
    if (fileStats === undefined) closeSync(openSync(path, 'a', 0o600));
    else if (fileStats.isDirectory())
      throw new StoreError(`${path} is a folder. Set POSTRIDER_DATABASE to the database file.`);
    else requireWritable(path);
  } catch (error) {
    if (error instanceof StoreError) throw error;
    throw new StoreError(
      `cannot create the database ${path}: ${getErrorText(error)}. Set POSTRIDER_DATABASE to a folder that this user may write.`,
    );
  }
}

function requireWritable(path: string): void {
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
  } catch (error) {
    throw new StoreError(
      `cannot write the database ${path} (${getSystemErrorCode(error)}). Check its owner and permissions.`,
    );
  }
}

/**
 * Called before the serve lock is acquired, so that no lock file is created beside the database of another application.
 * If there is a lock file, only `openDatabase` checks the database.
 */
export function requireOwnDatabase(path: string): void {
  if (existsSync(`${path}-serve`) || statSync(path).size === 0) return;
  let database: DatabaseSync | null = null;
  try {
    requireSinglePath(path);
    database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
    requireApplicationId(database, path);
  } catch (error) {
    throw toStoreError(error, path);
  } finally {
    database?.close();
  }
}

function checkVersion(database: DatabaseSync): void {
  const version = String(database.prepare('SELECT sqlite_version() AS version').get()?.version);
  const parts = version.split('.').map(Number);
  for (const [index, minimum] of MIN_SQLITE_VERSION.entries()) {
    const part = parts[index] ?? 0;
    if (part > minimum) return;
    if (part < minimum) {
      throw new StoreError(
        `SQLite ${version} of this Node can corrupt a database. Run Postrider with Node 24.21 or later.`,
      );
    }
  }
}

export function isPostriderDatabase(database: DatabaseSync): boolean {
  const latestVersion = listSchemaFiles(SCHEMA_FOLDER, 'sqlite').length;
  return (
    readPragma(database, 'application_id') === APPLICATION_ID &&
    readPragma(database, 'user_version') <= latestVersion &&
    !isOldStore(database)
  );
}

function requireApplicationId(database: DatabaseSync, path: string): void {
  const id = readPragma(database, 'application_id');
  if (id === APPLICATION_ID && isOldStore(database)) throw new StoreError(createOldStoreText(path));
  const tableCount = database.prepare('SELECT count(*) AS n FROM sqlite_schema').get()?.n;
  if (id === APPLICATION_ID || (id === 0 && tableCount === 0)) return;
  throw new StoreError(`${path} is not a Postrider database. Set POSTRIDER_DATABASE to another file.`);
}

/** In 0.1.0 the table `installation` had the name `meta`. */
function isOldStore(database: DatabaseSync): boolean {
  return database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'meta'").get() !== undefined;
}

function checkDurable(database: DatabaseSync, path: string): void {
  const journalMode = database.prepare('PRAGMA journal_mode').get()?.journal_mode;
  if (journalMode !== 'wal' || readPragma(database, 'synchronous') !== 2) {
    throw new StoreError(`${path} does not support WAL mode with full sync. Keep the database on a local file system.`);
  }
}

/** Under the serve lock, so that the schema does not change while a service runs. */
function migrate(
  database: DatabaseSync,
  path: string,
  files: readonly URL[],
  acquireLock: () => (() => void) | null,
): void {
  const latestVersion = files.length;
  const storedVersion = readPragma(database, 'user_version');
  if (storedVersion === latestVersion) return;
  if (storedVersion > latestVersion) throw createNewerSchemaError(path, storedVersion, latestVersion);
  const unlock = acquireLock();
  if (unlock === null) {
    throw new StoreError(
      `a running service uses ${path} with schema version ${storedVersion}, and this Postrider needs ${latestVersion}. Restart the service with this version first; it migrates the database.`,
    );
  }
  try {
    runMigrations(database, path, files);
  } finally {
    unlock();
  }
}

function runMigrations(database: DatabaseSync, path: string, files: readonly URL[]): void {
  const latestVersion = files.length;
  database.exec('BEGIN IMMEDIATE');
  try {
    // The version is read again under the lock, because another process may have migrated the schema in the meantime.
    const version = readPragma(database, 'user_version');
    if (version > latestVersion) throw createNewerSchemaError(path, version, latestVersion);
    for (const file of files.slice(version)) database.exec(readFileSync(file, 'utf8'));
    database.exec(`PRAGMA user_version = ${latestVersion}; PRAGMA application_id = ${APPLICATION_ID}`);
    database.exec('COMMIT');
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

function createNewerSchemaError(path: string, version: number, latestVersion: number): StoreError {
  return new StoreError(
    `${path} has schema version ${version}, but this version of Postrider supports at most ${latestVersion}. Run the version that wrote the schema, or a later version.`,
  );
}

function readPragma(database: DatabaseSync, name: string): number {
  return Number(database.prepare(`PRAGMA ${name}`).get()?.[name]);
}

/**
 * The files of the embedded database. SQLite keeps log and locks beside the database under its name, so a database must
 * have exactly one name: symbolic links are resolved, and a second hard link is refused. The serve lock is a SQLite
 * lock on a file beside it, which the operating system releases when the process ends.
 */
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  statSync,
  unlinkSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { StoreError } from '../error.ts';
import { getErrorText, getResultCode, getSystemErrorCode, SQLITE_BUSY } from './fault.ts';

/** SQLite creates `-journal` only for a database that is not in WAL mode. */
export const DATABASE_FILE_SUFFIXES = ['', '-wal', '-shm', '-journal'] as const;

const MAX_SYMBOLIC_LINKS = 40;

/** Such as `.before-2026-01-31T12-00-00-000Z`: files that a restore has replaced. */
const REPLACED_SUFFIX = /^\.before-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z$/;
/** Files of an unfinished restore. */
const TEMPORARY_SUFFIX = /^\.restor(?:e|ing)-[0-9a-f]{12}$/;

/** Also if the target is missing, so that every process uses the same log and lock. */
export function resolveDatabasePath(path: string): string {
  const absolutePath = resolve(path);
  const realPath = resolveRealPath(absolutePath, 0);
  return realPath === absolutePath ? path : realPath;
}

function resolveRealPath(path: string, linkCount: number): string {
  try {
    return realpathSync.native(path);
  } catch (error) {
    if (getSystemErrorCode(error) !== 'ENOENT' && getSystemErrorCode(error) !== 'ENOTDIR') return path;
  }
  const target = readLinkTarget(path);
  if (target !== null)
    return linkCount < MAX_SYMBOLIC_LINKS ? resolveRealPath(resolve(dirname(path), target), linkCount + 1) : path;
  const folder = dirname(path);
  return folder === path ? path : join(resolveRealPath(folder, linkCount), basename(path));
}

function readLinkTarget(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}

export function getRestoreMarkerPath(path: string): string {
  return `${path}.restoring`;
}

export function createReplacedDatabasePath(path: string, now: Date): string {
  return `${path}.before-${now.toISOString().replaceAll(':', '-').replaceAll('.', '-')}`;
}

export function listTemporaryRestorePaths(path: string): readonly string[] {
  return listPathsBeside(path, TEMPORARY_SUFFIX);
}

export function listLeftoverHardLinks(path: string): readonly string[] {
  const fileStats = statSync(path, { bigint: true, throwIfNoEntry: false });
  if (fileStats === undefined || fileStats.nlink <= 1n) return [];
  return listPathsBeside(path, REPLACED_SUFFIX).filter((linkPath) => {
    const linkStats = statSync(linkPath, { bigint: true, throwIfNoEntry: false });
    return linkStats !== undefined && linkStats.dev === fileStats.dev && linkStats.ino === fileStats.ino;
  });
}

function listPathsBeside(path: string, suffix: RegExp): readonly string[] {
  const folder = dirname(path);
  const baseName = basename(path);
  let names: readonly string[];
  try {
    names = readdirSync(folder);
  } catch {
    return [];
  }
  return names
    .filter((name) => name.startsWith(baseName) && suffix.test(name.slice(baseName.length)))
    .map((name) => (folder === '.' ? name : join(folder, name)));
}

/**
 * Throws if opening `path` could lose accepted messages: a restore is incomplete, the log exists without the database,
 * or the file has a second name.
 */
export function requireUsableFiles(path: string): void {
  if (existsSync(getRestoreMarkerPath(path))) throw createInterruptedRestoreError(path);
  const fileStats = statSync(path, { throwIfNoEntry: false });
  if (fileStats === undefined || fileStats.size === 0)
    requireNoLeftovers(path, fileStats === undefined ? 'missing' : 'empty');
  if (fileStats?.isFile() === true) requireSingleHardLink(path);
}

function createInterruptedRestoreError(path: string): StoreError {
  return new StoreError(
    `a restore of ${path} was interrupted. Run \`postrider restore FILE\` with the backup again; it completes the restore.`,
  );
}

function requireNoLeftovers(path: string, problem: 'missing' | 'empty'): void {
  const log = `${path}-wal`;
  if ((statSync(log, { throwIfNoEntry: false })?.size ?? 0) > 0) {
    throw new StoreError(
      `the database ${path} is ${problem}, but its log ${log} exists. Put the database file back, or run \`postrider restore FILE\` with a backup; to begin with an empty store, move ${log} away.`,
    );
  }
  const [temporaryPath] = listTemporaryRestorePaths(path);
  if (temporaryPath === undefined) return;
  throw new StoreError(
    `the database ${path} is ${problem}, and an interrupted restore has left ${temporaryPath}. Run \`postrider restore FILE\` with the backup again; to begin with an empty store, move ${temporaryPath} away.`,
  );
}

export function requireSingleHardLink(path: string): void {
  const nameCount = statSync(path, { throwIfNoEntry: false })?.nlink ?? 1;
  if (nameCount <= 1 || nameCount === 1 + listLeftoverHardLinks(path).length) return;
  throw new StoreError(
    `${path} has ${nameCount} names (hard links), and SQLite would keep a log for each, which destroys the database. Remove the other names; \`find / -samefile ${path}\` lists them.`,
  );
}

/** Only the holder of the serve lock may call this function. */
export function removeLeftoverHardLinks(path: string): void {
  for (const linkPath of listLeftoverHardLinks(path)) {
    try {
      unlinkSync(linkPath);
    } catch {
      // A link that cannot be removed is harmless, because the next start recognizes it.
    }
  }
}

interface FileIdentity {
  readonly dev: bigint;
  readonly ino: bigint;
}

export function readFileIdentity(path: string): FileIdentity | null {
  const fileStats = statSync(path, { bigint: true, throwIfNoEntry: false });
  return fileStats === undefined ? null : { dev: fileStats.dev, ino: fileStats.ino };
}

export function isSameFile(a: FileIdentity | null, b: FileIdentity | null): boolean {
  return a !== null && b !== null && a.dev === b.dev && a.ino === b.ino;
}

/** A new name is durable only after a sync of its folder. */
export function syncPath(path: string): void {
  const file = openSync(path, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Returns the function that releases the lock, or null if another process holds it after `waitMs`. */
export function tryAcquireServeLock(path: string, waitMs: number): (() => void) | null {
  const file = `${path}-serve`;
  let lock: DatabaseSync | null = null;
  try {
    // This function creates the file, because SQLite would make it readable by other users. A user who can read the
    // file can lock it and prevent the next start.
    closeSync(openSync(file, 'a', 0o600));
    const database = new DatabaseSync(file, { timeout: waitMs });
    lock = database;
    database.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
    return () => database.close();
  } catch (error) {
    lock?.close();
    if (getResultCode(error) === SQLITE_BUSY) return null;
    throw new StoreError(
      `cannot lock ${file} (${getErrorText(error)}). Check its owner and permissions and the free disk space. While no service runs, the file may be removed.`,
    );
  }
}

export function acquireServeLock(path: string): () => void {
  const unlock = tryAcquireServeLock(path, 0);
  if (unlock !== null) return unlock;
  throw new StoreError(
    `another service, a restore or a transfer uses ${path}. Stop it, or set POSTRIDER_DATABASE to another file.`,
  );
}

export function isServeLockHeld(path: string): boolean {
  const realPath = resolveDatabasePath(path);
  if (!existsSync(`${realPath}-serve`)) return false;
  const unlock = tryAcquireServeLock(realPath, 0);
  unlock?.();
  return unlock === null;
}

/**
 * The files of the embedded database: which file a path names, whether a process may open it, and the serve lock of the
 * one service that may use it.
 *
 * SQLite keeps the log and the locks of a database beside it, under its name. A database therefore must have one name:
 * symbolic links are resolved to the real path, and a second hard link is refused. The serve lock is SQLite's own lock
 * on a small file beside the database. The operating system releases it when the process ends. A process that migrates,
 * transfers or restores the database holds it too. Faults are StoreErrors of one line with the remedy.
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
import { errorText, resultCode, SQLITE_BUSY, systemErrorCode } from './fault.ts';

/**
 * The suffixes of the database file and of the files that SQLite keeps beside it. `-journal` belongs to a database that
 * is not in WAL mode.
 */
export const DATABASE_FILE_SUFFIXES = ['', '-wal', '-shm', '-journal'] as const;

/** Maximum length of a chain of symbolic links, as on Linux. */
const MAX_SYMBOLIC_LINKS = 40;

/** `.before-2026-01-31T12-00-00-000Z`: the files that a restore has replaced. */
const REPLACED_SUFFIX = /^\.before-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z$/;
/** The suffixes of files of an unfinished restore: a draft (without digits in earlier versions) or a marker. */
const DRAFT_SUFFIX = /^\.restor(?:e|e-[0-9a-f]{12}|ing-[0-9a-f]{12})$/;

/**
 * The path under which every process finds the same log and lock: all symbolic links are resolved, also those to a
 * missing file. A path without links is returned unchanged.
 */
export function resolveDatabasePath(path: string): string {
  const absolutePath = resolve(path);
  const real = realPath(absolutePath, 0);
  return real === absolutePath ? path : real;
}

function realPath(path: string, links: number): string {
  try {
    return realpathSync.native(path);
  } catch (error) {
    // A path that cannot be resolved fails with its own error when it is opened.
    if (systemErrorCode(error) !== 'ENOENT' && systemErrorCode(error) !== 'ENOTDIR') return path;
  }
  const target = linkTarget(path);
  if (target !== null) return links < MAX_SYMBOLIC_LINKS ? realPath(resolve(dirname(path), target), links + 1) : path;
  const folder = dirname(path);
  return folder === path ? path : join(realPath(folder, links), basename(path));
}

function linkTarget(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}

/** The marker of a restore that moves files aside one by one. */
export function restoreMarkerPath(path: string): string {
  return `${path}.restoring`;
}

/** The path under which a restore keeps the replaced database. */
export function replacedDatabasePath(path: string, now: Date): string {
  return `${path}.before-${now.toISOString().replaceAll(':', '-').replaceAll('.', '-')}`;
}

/** Copies of backups that interrupted restores have left. */
export function restoreDraftPaths(path: string): readonly string[] {
  return pathsBeside(path, DRAFT_SUFFIX);
}

/** Hard links of the database file that an interrupted restore has created. */
export function leftoverHardLinks(path: string): readonly string[] {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  if (stats === undefined || stats.nlink <= 1n) return [];
  return pathsBeside(path, REPLACED_SUFFIX).filter((name) => {
    const link = statSync(name, { bigint: true, throwIfNoEntry: false });
    return link !== undefined && link.dev === stats.dev && link.ino === stats.ino;
  });
}

/** Paths of files beside `path` whose name is its name plus a suffix that matches. */
function pathsBeside(path: string, suffix: RegExp): readonly string[] {
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
 * Throws a StoreError if opening `path` would lose accepted messages: a restore is incomplete, the database is missing
 * while its log exists, or the file has a second name.
 */
export function requireUsableFiles(path: string): void {
  if (existsSync(restoreMarkerPath(path))) throw interruptedRestore(path);
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined || stats.size === 0) requireNoLeftovers(path, stats === undefined ? 'missing' : 'empty');
  if (stats?.isFile() === true) requireSingleHardLink(path);
}

function interruptedRestore(path: string): StoreError {
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
  const [draft] = restoreDraftPaths(path);
  if (draft === undefined) return;
  throw new StoreError(
    `the database ${path} is ${problem}, and an interrupted restore has left ${draft}. Run \`postrider restore FILE\` with the backup again; to begin with an empty store, move ${draft} away.`,
  );
}

/** Throws a StoreError if the file has another name that no interrupted restore has created. */
export function requireSingleHardLink(path: string): void {
  const links = statSync(path, { throwIfNoEntry: false })?.nlink ?? 1;
  if (links <= 1 || links === 1 + leftoverHardLinks(path).length) return;
  throw new StoreError(
    `${path} has ${links} names (hard links), and SQLite would keep a log for each, which destroys the database. Remove the others; \`find / -samefile ${path}\` lists them.`,
  );
}

/**
 * Removes the hard links that an interrupted restore has created. The file keeps its own name. Only for the holder of
 * the serve lock.
 */
export function removeLeftoverHardLinks(path: string): void {
  for (const name of leftoverHardLinks(path)) {
    try {
      unlinkSync(name);
    } catch {
      // A remaining link does no harm: the next start recognizes it.
    }
  }
}

interface FileIdentity {
  readonly dev: bigint;
  readonly ino: bigint;
}

/** The identity of the file at `path`, or null if there is none. */
export function fileIdentity(path: string): FileIdentity | null {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stats === undefined ? null : { dev: stats.dev, ino: stats.ino };
}

/** True for the same file. */
export function isSameFile(a: FileIdentity | null, b: FileIdentity | null): boolean {
  return a !== null && b !== null && a.dev === b.dev && a.ino === b.ino;
}

/** Syncs a file or a folder. A new name is on disk only after a sync of its folder. */
export function syncPath(path: string): void {
  const file = openSync(path, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/**
 * Acquires the lock and waits for it up to `advisedWaitMs`. The returned function releases it. Null if another process holds
 * it. Throws a StoreError if the lock fails for any other reason.
 */
export function tryAcquireServeLock(path: string, waitMs: number): (() => void) | null {
  const file = `${path}-serve`;
  let lock: DatabaseSync | null = null;
  try {
    // SQLite would create the file readable by others. A user who can read it can lock it and so prevent the next
    // start.
    closeSync(openSync(file, 'a', 0o600));
    const database = new DatabaseSync(file, { timeout: waitMs });
    lock = database;
    database.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
    return () => database.close();
  } catch (error) {
    lock?.close();
    if (resultCode(error) === SQLITE_BUSY) return null;
    throw new StoreError(
      `cannot lock ${file} (${errorText(error)}). Check its owner and permissions and the free disk space. While no service runs, the file may be removed.`,
    );
  }
}

/** Acquires the serve lock; the returned function releases it. Throws a StoreError if another process holds it. */
export function acquireServeLock(path: string): () => void {
  const unlock = tryAcquireServeLock(path, 0);
  if (unlock !== null) return unlock;
  throw new StoreError(
    `another service, a restore or a transfer uses ${path}. Stop it, or set POSTRIDER_DATABASE to another file.`,
  );
}

/** True if a process holds the lock. Creates no file. */
export function isServeLockHeld(path: string): boolean {
  const real = resolveDatabasePath(path);
  if (!existsSync(`${real}-serve`)) return false;
  const unlock = tryAcquireServeLock(real, 0);
  unlock?.();
  return unlock === null;
}

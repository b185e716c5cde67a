/**
 * The files of the embedded database: which file a path means, whether a process may open it, and whether they are still
 * the files that were opened.
 *
 * SQLite keeps the log and the locks of a database beside it, under its name. So a file has one name here: symbolic links
 * are followed to the real path, and a second hard link is refused. Faults are StoreErrors of one line with the remedy.
 */
import {
  type BigIntStats,
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
import { StoreError } from '../error.ts';
import { codeOf } from './fault.ts';

/** What SQLite keeps beside a database, and the database itself. `-journal` is of a database that is not in WAL mode. */
export const DATABASE_FILES = ['', '-wal', '-shm', '-journal'] as const;

/** Symbolic links followed one after another; Linux follows as many. */
const MAX_LINKS = 40;

/** `.before-2026-01-31T12-00-00-000Z`: what a restore has replaced. */
const KEPT_NAME = /^\.before-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z$/;
/** The names of files of an unfinished restore: a draft (without digits in earlier versions) or a marker. */
const DRAFT_NAME = /^\.restor(?:e|e-[0-9a-f]{12}|ing-[0-9a-f]{12})$/;

/**
 * The path under which every process finds the same log and lock: symbolic links followed, also to a file that is not there
 * yet. A path without links comes back as it is.
 */
export function resolveDatabasePath(path: string): string {
  const whole = resolve(path);
  const real = realPath(whole, 0);
  return real === whole ? path : real;
}

function realPath(path: string, links: number): string {
  try {
    return realpathSync.native(path);
  } catch (error) {
    // What cannot be followed fails with its own words when it is opened.
    if (codeOf(error) !== 'ENOENT' && codeOf(error) !== 'ENOTDIR') return path;
  }
  const target = linkTarget(path);
  if (target !== null) return links < MAX_LINKS ? realPath(resolve(dirname(path), target), links + 1) : path;
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

/** Where a restore that moves files aside one by one says so. */
export function restoreMarker(path: string): string {
  return `${path}.restoring`;
}

/** Where a restore keeps what was there before. */
export function keptPath(path: string, now: Date): string {
  return `${path}.before-${now.toISOString().replaceAll(':', '-').replaceAll('.', '-')}`;
}

/** Copies of backups that interrupted restores have left. */
export function restoreDrafts(path: string): readonly string[] {
  return besides(path, DRAFT_NAME);
}

/** Further names of the database file that an interrupted restore made: hard links of the same file. */
export function keptLinks(path: string): readonly string[] {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  if (found === undefined || found.nlink <= 1n) return [];
  return besides(path, KEPT_NAME).filter((name) => {
    const kept = statSync(name, { bigint: true, throwIfNoEntry: false });
    return kept !== undefined && kept.dev === found.dev && kept.ino === found.ino;
  });
}

/** Files beside `path` whose names are its name and an ending that matches. */
function besides(path: string, ending: RegExp): readonly string[] {
  const folder = dirname(path);
  const own = basename(path);
  let names: readonly string[];
  try {
    names = readdirSync(folder);
  } catch {
    return [];
  }
  return names
    .filter((name) => name.startsWith(own) && ending.test(name.slice(own.length)))
    .map((name) => (folder === '.' ? name : join(folder, name)));
}

/**
 * Throws a StoreError where opening `path` would lose what was accepted: a restore stands half done, the database is gone
 * and its log is there, or the file has a second name.
 */
export function requireUsableFiles(path: string): void {
  if (existsSync(restoreMarker(path))) throw interruptedRestore(path);
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined || found.size === 0) requireNothingLeft(path, found === undefined ? 'missing' : 'empty');
  if (found?.isFile() === true) requireOneName(path);
}

function interruptedRestore(path: string): StoreError {
  return new StoreError(
    `a restore of ${path} was interrupted. Run \`postrider restore FILE\` with the backup again; it completes the restore.`,
  );
}

function requireNothingLeft(path: string, how: 'missing' | 'empty'): void {
  const log = `${path}-wal`;
  if ((statSync(log, { throwIfNoEntry: false })?.size ?? 0) > 0) {
    throw new StoreError(
      `the database ${path} is ${how}, but its log ${log} is there. Put the database file back, or run \`postrider restore FILE\` with a backup; to begin with an empty store, move ${log} away.`,
    );
  }
  const [draft] = restoreDrafts(path);
  if (draft === undefined) return;
  throw new StoreError(
    `the database ${path} is ${how}, and an interrupted restore has left ${draft}. Run \`postrider restore FILE\` with the backup again; to begin with an empty store, move ${draft} away.`,
  );
}

/** Throws a StoreError where the file has a further name that no interrupted restore has made. */
export function requireOneName(path: string): void {
  const links = statSync(path, { throwIfNoEntry: false })?.nlink ?? 1;
  if (links <= 1 || links === 1 + keptLinks(path).length) return;
  throw new StoreError(
    `${path} has ${links} names (hard links), and SQLite would keep a log for each, which destroys the database. Remove the others; \`find / -samefile ${path}\` lists them.`,
  );
}

/**
 * Takes away the further names that an interrupted restore made. The file keeps its own, so nothing is lost. Only for the
 * holder of the serve lock.
 */
export function removeKeptLinks(path: string): void {
  for (const name of keptLinks(path)) {
    try {
      unlinkSync(name);
    } catch {
      // It does no harm: it is recognised again at the next start.
    }
  }
}

/** Why what is written now would not be kept. */
export interface FilesFault {
  /** Fit for the public: names no path. */
  readonly reason: string;
  /** For the operator: the file, and what to do. */
  readonly remedy: string;
}

interface Identity {
  readonly dev: bigint;
  readonly ino: bigint;
}

/** The files that are watched, each with what to call it. */
const WATCHED = [
  ['', 'the database file'],
  ['-wal', 'the write-ahead log of the database'],
  ['-shm', 'the shared memory file of the database'],
  ['-serve', 'the lock file of the database'],
] as const;
type WatchedEnd = (typeof WATCHED)[number][0];

/** Tells the file at `path` from others; null where there is none. */
export function identityOf(path: string): Identity | null {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found === undefined ? null : { dev: found.dev, ino: found.ino };
}

/** True for the same file. */
export function sameFile(one: Identity | null, other: Identity | null): boolean {
  return one !== null && other !== null && one.dev === other.dev && one.ino === other.ino;
}

/**
 * Remembers the files that are open now. The returned function compares them with what is there, in 8 to 36 µs (2 busy cores), and says
 * what is wrong first. It never opens a file: closing one would drop the locks that SQLite holds on it.
 */
export function guardFiles(path: string): () => FilesFault | null {
  const opened = WATCHED.map(([end, name]) => ({ end, name, was: identityOf(path + end) }));
  const links = statSync(path, { throwIfNoEntry: false })?.nlink ?? 1;
  return () => {
    for (const { end, name, was } of opened) {
      // What was not there at the start is nothing to miss: the lock file is a service's alone.
      if (was === null) continue;
      let now: BigIntStats | undefined;
      try {
        now = statSync(path + end, { bigint: true, throwIfNoEntry: false });
      } catch (error) {
        return unreachable(path + end, name, codeOf(error));
      }
      if (now === undefined) return faultOf(path, end, `${name} was removed`);
      if (!sameFile(was, now)) return faultOf(path, end, `${name} was replaced`);
      // A link that an interrupted restore made may go at any time.
      if (now.nlink > BigInt(end === '' ? links : 1)) return faultOf(path, end, `${name} has got a second hard link`);
    }
    return null;
  };
}

/** The folder has become closed to this user, or its disk fails. */
function unreachable(file: string, name: string, code: string): FilesFault {
  return {
    reason: `${name} cannot be reached (${code})`,
    remedy: `Check the owner, the permissions and the disk of the folder of ${file}; the service then goes on.`,
  };
}

function faultOf(path: string, end: WatchedEnd, reason: string): FilesFault {
  const file = path + end;
  if (reason.endsWith('hard link'))
    return { reason, remedy: `Remove the other name of ${file}; the service then goes on.` };
  switch (end) {
    case '':
      return {
        reason,
        remedy: `Put the file that was at ${path} back, and the service goes on. Where it was deleted, stop the service, move ${path}* aside and run \`postrider restore FILE\` with a backup.`,
      };
    case '-wal':
      return {
        reason,
        remedy: `Stop the service with SIGTERM and start it again: while it stops it writes what the log held into ${path}. Do not end it with SIGKILL, and run no command meanwhile.`,
      };
    case '-shm':
    case '-serve':
      return {
        reason,
        remedy: `Stop the service and start it again; it makes ${file} anew. Run no command meanwhile.`,
      };
  }
}

/** Syncs a file or a folder: a new name is on disk only once its folder is. */
export function syncPath(path: string): void {
  const file = openSync(path, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/**
 * Replaces the embedded database with a backup. At every moment the database is the complete old or the complete new
 * one, or `serve` refuses to start and names the remedy; the replaced database stays beside it. Usually the log is
 * checkpointed, a hard link keeps the old file, and one rename replaces it. For a damaged or missing database, or
 * without hard links, a marker file is written and the files are moved one by one; while it exists nothing opens the
 * database, and the next restore completes the interrupted one.
 */
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { createFolder } from '../../folder.ts';
import { StoreError } from '../error.ts';
import { requireIntact, requirePostriderDatabase } from './backup.ts';
import { getResultCode, getSystemErrorCode, SQLITE_BUSY, toStoreError } from './fault.ts';
import {
  acquireServeLock,
  createReplacedDatabasePath,
  DATABASE_FILE_SUFFIXES,
  getRestoreMarkerPath,
  isSameFile,
  listLeftoverHardLinks,
  listTemporaryRestorePaths,
  readFileIdentity,
  requireSingleHardLink,
  resolveDatabasePath,
  syncPath,
} from './files.ts';

const CHUNK_BYTES = 1_048_576;
/** Maximum time that a restore waits for another command to close the database. */
const BUSY_TIMEOUT_MS = 5_000;
/**
 * SQLite result codes for a file that is not a readable database: SQLITE_ERROR, SQLITE_IOERR, SQLITE_CORRUPT,
 * SQLITE_FORMAT and SQLITE_NOTADB.
 */
const UNREADABLE_DATABASE_CODES: ReadonlySet<number> = new Set([1, 10, 11, 24, 26]);
/**
 * The offset of the read version in the header of a database (sqlite.org/fileformat.html, 1.3). The read version is 2
 * in WAL mode.
 */
const READ_VERSION_OFFSET = 19;
const WAL_VERSION = 2;

export interface RestoreSteps {
  readonly link: (from: string, to: string) => void;
  readonly rename: (from: string, to: string) => void;
  readonly remove: (path: string) => void;
  readonly sync: (path: string) => void;
  readonly write: (file: number, bytes: Uint8Array) => void;
}

const SYSTEM_STEPS: RestoreSteps = {
  link: linkSync,
  rename: renameSync,
  remove: (path) => rmSync(path, { force: true }),
  sync: syncPath,
  write: (file, bytes) => {
    for (let writtenBytes = 0; writtenBytes < bytes.length; ) writtenBytes += writeSync(file, bytes, writtenBytes);
  },
};

/** Returns the new path of the old database, or null if there was none. */
export function restoreDatabase(
  from: string,
  path: string,
  now: Date,
  steps: RestoreSteps = SYSTEM_STEPS,
): string | null {
  const realPath = resolveDatabasePath(path);
  const backupStats = statSync(from, { throwIfNoEntry: false });
  if (backupStats === undefined) throw new StoreError(`there is no backup ${from}. Check the path.`);
  if (!backupStats.isFile()) throw new StoreError(`${from} is not a file. Give the path of a backup file.`);
  makeFolder(realPath);
  const unlock = acquireServeLock(realPath);
  try {
    return new Restore(from, realPath, now, steps).run();
  } catch (error) {
    throw error instanceof StoreError ? error : createRestoreError(error, realPath);
  } finally {
    unlock();
  }
}

function makeFolder(path: string): void {
  try {
    createFolder(dirname(path));
  } catch (error) {
    throw new StoreError(
      `cannot create the folder of ${path} (${getSystemErrorCode(error)}). Set POSTRIDER_DATABASE to a folder that this user may write.`,
    );
  }
}

function createRestoreError(error: unknown, path: string): StoreError {
  if (getResultCode(error) !== 0) return toStoreError(error, path);
  switch (getSystemErrorCode(error)) {
    case 'ENOSPC':
    case 'EDQUOT':
    case 'EFBIG':
      return new StoreError(
        `the disk of ${path} is full (${getSystemErrorCode(error)}). Free disk space, and restore again.`,
      );
    default:
      return new StoreError(
        `cannot restore ${path} (${getSystemErrorCode(error)}). Check the owner and the permissions of the file and of its folder, and restore again.`,
      );
  }
}

function readBackup<T>(from: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new StoreError(
      `cannot read ${from} (${getSystemErrorCode(error)}). Check its owner, its permissions and its disk.`,
    );
  }
}

/**
 * The content of a marker: the new name of the old files, and the name of the temporary copy that replaces the old
 * files. Both are file names in the folder of the database.
 */
interface RestoreMarker {
  readonly kept: string;
  readonly draft: string;
}

class Restore {
  readonly #from: string;
  readonly #path: string;
  readonly #now: Date;
  readonly #steps: RestoreSteps;
  readonly #temporaryPath: string;

  constructor(from: string, path: string, now: Date, steps: RestoreSteps) {
    this.#from = from;
    this.#path = path;
    this.#now = now;
    this.#steps = steps;
    this.#temporaryPath = `${path}.restore-${randomBytes(6).toString('hex')}`;
  }

  run(): string | null {
    if (isSameFile(readFileIdentity(this.#from), readFileIdentity(this.#path)))
      throw new StoreError(`${this.#from} is the database itself. Give the path of a backup file.`);
    const marker = this.#readMarker();
    if (marker === null) requireSingleHardLink(this.#path);
    try {
      this.#copyBackup();
      const completedPath = marker === null ? null : this.#complete(marker);
      return completedPath ?? this.#replace();
    } finally {
      // If the temporary copy has replaced the database, no file with the temporary name exists any more. Temporary
      // copies of earlier restores contain only backups, so they are also removed.
      if (!existsSync(getRestoreMarkerPath(this.#path)))
        for (const temporaryPath of listTemporaryRestorePaths(this.#path)) this.#removeTemporaryFiles(temporaryPath);
    }
  }

  #removeTemporaryFiles(temporaryPath: string): void {
    for (const suffix of DATABASE_FILE_SUFFIXES) rmSync(temporaryPath + suffix, { force: true });
  }

  #syncFolder(): void {
    this.#steps.sync(dirname(this.#path));
  }

  /**
   * Copies the backup to the temporary path and checks the copy. The backup is not opened as a database, because SQLite
   * could then change the file.
   */
  #copyBackup(): void {
    const temporaryPath = this.#temporaryPath;
    this.#copy(this.#from, temporaryPath);
    // `from` may be a database that an earlier restore has preserved without a checkpoint. Such a database has a log; a
    // backup has no log.
    if (isInWalMode(temporaryPath) && existsSync(`${this.#from}-wal`))
      this.#copy(`${this.#from}-wal`, `${temporaryPath}-wal`);
    try {
      const copy = new DatabaseSync(temporaryPath);
      try {
        requirePostriderDatabase(copy, this.#from);
        requireIntact(copy, this.#from);
        copy.exec('PRAGMA journal_mode = DELETE');
      } finally {
        copy.close();
      }
    } catch (error) {
      throw toStoreError(error, this.#from);
    }
    this.#steps.sync(temporaryPath);
  }

  #copy(from: string, to: string): void {
    const source = readBackup(from, () => openSync(from, 'r'));
    try {
      const target = openSync(to, 'wx', 0o600);
      try {
        const chunk = new Uint8Array(CHUNK_BYTES);
        const readChunk = () => readBackup(from, () => readSync(source, chunk));
        for (let byteCount = readChunk(); byteCount > 0; byteCount = readChunk())
          this.#steps.write(target, chunk.subarray(0, byteCount));
      } finally {
        closeSync(target);
      }
    } finally {
      closeSync(source);
    }
  }

  #replace(): string | null {
    const path = this.#path;
    const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    if (size > 0) {
      const oldDatabase = checkpointLog(path);
      if (oldDatabase !== null) {
        try {
          return this.#replaceByLink() ?? this.#replaceByMoving(this.#findUnusedPath());
        } finally {
          // The old file is closed last. A process that is waiting to open it then detects that the path refers to a
          // different file.
          oldDatabase.close();
        }
      }
    } else if (!DATABASE_FILE_SUFFIXES.some((suffix) => suffix !== '' && existsSync(path + suffix))) {
      this.#steps.rename(this.#temporaryPath, path);
      this.#syncFolder();
      return null;
    }
    return this.#replaceByMoving(this.#findUnusedPath());
  }

  #findUnusedPath(): string {
    for (let offsetMs = 0; ; offsetMs += 1) {
      const keptPath = createReplacedDatabasePath(this.#path, new Date(this.#now.getTime() + offsetMs));
      if (!DATABASE_FILE_SUFFIXES.some((suffix) => existsSync(keptPath + suffix))) return keptPath;
    }
  }

  #replaceByLink(): string | null {
    const path = this.#path;
    const oldLinks = listLeftoverHardLinks(path);
    const keptPath = this.#findUnusedPath();
    try {
      this.#steps.link(path, keptPath);
    } catch (error) {
      if (['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'].includes(getSystemErrorCode(error))) return null;
      throw error;
    }
    // The link must be on disk before the rename. Otherwise a power failure could lose the old database.
    this.#syncFolder();
    this.#steps.rename(this.#temporaryPath, path);
    this.#syncFolder();
    // These other hard links of the old file remain after an interrupted restore.
    for (const oldLink of oldLinks) this.#steps.remove(oldLink);
    return keptPath;
  }

  #replaceByMoving(keptPath: string): string {
    this.#writeMarker({ kept: basename(keptPath), draft: basename(this.#temporaryPath) });
    this.#moveOldFiles(keptPath);
    this.#steps.rename(this.#temporaryPath, this.#path);
    this.#syncFolder();
    this.#removeMarker();
    return keptPath;
  }

  #moveOldFiles(keptPath: string): void {
    for (const suffix of DATABASE_FILE_SUFFIXES) {
      if (existsSync(this.#path + suffix)) this.#steps.rename(this.#path + suffix, keptPath + suffix);
    }
    this.#syncFolder();
  }

  /**
   * Completes an interrupted restore. Returns the new path of the old database if the temporary copy of this restore
   * has replaced it. Returns null if the interrupted restore had already replaced the database, or if it had moved no
   * file and its temporary copy is missing; the caller then restores as usual.
   */
  #complete({ kept, draft }: RestoreMarker): string | null {
    const folder = dirname(this.#path);
    const earlierKeptPath = join(folder, kept);
    if (!existsSync(join(folder, draft)) && existsSync(this.#path)) {
      // The interrupted restore had completed every step except the removal of the marker, or had moved no file.
      this.#removeMarker();
      return null;
    }
    const hasConflict = DATABASE_FILE_SUFFIXES.some(
      (suffix) => existsSync(this.#path + suffix) && existsSync(earlierKeptPath + suffix),
    );
    const targetPath = hasConflict ? this.#findUnusedPath() : earlierKeptPath;
    this.#writeMarker({ kept: basename(targetPath), draft: basename(this.#temporaryPath) });
    this.#moveOldFiles(targetPath);
    this.#steps.rename(this.#temporaryPath, this.#path);
    this.#syncFolder();
    this.#removeMarker();
    return targetPath;
  }

  /** Writes the marker under a temporary name and then renames it, so that a marker is always complete. */
  #writeMarker(marker: RestoreMarker): void {
    const path = getRestoreMarkerPath(this.#path);
    const temporaryPath = `${path}-${randomBytes(6).toString('hex')}`;
    const file = openSync(temporaryPath, 'wx', 0o600);
    try {
      this.#steps.write(file, Buffer.from(`${JSON.stringify(marker)}\n`));
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    this.#steps.rename(temporaryPath, path);
    this.#syncFolder();
  }

  #readMarker(): RestoreMarker | null {
    const path = getRestoreMarkerPath(this.#path);
    let text: string;
    try {
      text = readFileSync(path, 'utf8');
    } catch (error) {
      if (getSystemErrorCode(error) === 'ENOENT') return null;
      throw error;
    }
    const marker = parseMarker(text);
    if (marker !== null) return marker;
    throw new StoreError(
      `${path} is not a marker of a restore. Check the files in its folder, and move the marker away.`,
    );
  }

  #removeMarker(): void {
    this.#steps.remove(getRestoreMarkerPath(this.#path));
    this.#syncFolder();
  }
}

function parseMarker(text: string): RestoreMarker | null {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null || !('kept' in value) || !('draft' in value)) return null;
    const { kept, draft } = value;
    if (typeof kept !== 'string' || typeof draft !== 'string') return null;
    return { kept: basename(kept), draft: basename(draft) };
  } catch {
    return null;
  }
}

function isInWalMode(path: string): boolean {
  const header = Buffer.alloc(READ_VERSION_OFFSET + 1);
  const file = openSync(path, 'r');
  try {
    return readSync(file, header) === header.length && header[READ_VERSION_OFFSET] === WAL_VERSION;
  } finally {
    closeSync(file);
  }
}

/**
 * Checkpoints the log into the database at `path`. Returns a connection that prevents other processes from opening the
 * database until the connection is closed. Returns null if the database is damaged. Throws a StoreError if another
 * process has the database open.
 *
 * Until the connection is closed, the caller must not open and close the file, because this would release the locks of
 * this process.
 */
function checkpointLog(path: string): DatabaseSync | null {
  let database: DatabaseSync | null = null;
  try {
    database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
    database.exec('PRAGMA synchronous = FULL');
    // `PRAGMA journal_mode = DELETE` succeeds only if no other process has the database open. It removes the log and
    // the shared memory file.
    const readMode = () => database?.prepare('PRAGMA journal_mode').get()?.journal_mode;
    database.exec('PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE');
    // The mode is read after both statements, because a command may have opened the database between them and created a
    // new log.
    if (readMode() !== 'delete') throw new StoreError(`another process has opened ${path}. Restore again.`);
    return database;
  } catch (error) {
    database?.close();
    if (error instanceof StoreError) throw error;
    const code = getResultCode(error);
    if (code === SQLITE_BUSY)
      throw new StoreError(`another process has ${path} open. Wait until it ends, and restore again.`);
    if (UNREADABLE_DATABASE_CODES.has(code)) return null;
    throw toStoreError(error, path);
  }
}

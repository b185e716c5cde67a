/**
 * Backups of the embedded database: a consistent copy while a service runs on it, and its return.
 *
 * Promises: a backup is whole, checked and on disk before it has its name; nothing is written over; what a restore replaces
 * is moved aside and never deleted. Faults are StoreErrors of one line.
 */
import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { backup, DatabaseSync } from 'node:sqlite';
import { StoreError } from '../store.ts';
import { isOwnDatabase } from './database.ts';
import { explained } from './fault.ts';
import { takeServeLock } from './serve-lock.ts';

/** Pages copied at a time; between them the service goes on. */
const PAGES = 2_000;
/** What SQLite keeps beside a database. */
const BESIDE = ['', '-wal', '-shm'] as const;

/** Copies the database at `path` to `to`, readable by its owner alone. `progress` is told the share done, 0 to 1. Resolves to its size in bytes. */
export async function backupDatabase(path: string, to: string, progress: (share: number) => void): Promise<number> {
  if (!existsSync(path)) throw new StoreError(`there is no database ${path} to back up.`);
  if (existsSync(to)) throw new StoreError(`${to} is there already; give a name that is not.`);
  const draft = `${to}.part`;
  try {
    makeDraft(draft, to);
    const source = new DatabaseSync(path, { timeout: 15_000 });
    try {
      requireOwn(source, path);
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
      requireWhole(copy, draft);
    } finally {
      copy.close();
    }
    chmodSync(draft, 0o600);
    sync(draft);
    renameSync(draft, to);
    sync(dirname(to));
    return statSync(to).size;
  } catch (error) {
    rmSync(draft, { force: true });
    throw explained(error, to);
  }
}

function makeDraft(draft: string, to: string): void {
  try {
    closeSync(openSync(draft, 'w', 0o600));
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new StoreError(`cannot write ${to} (${code}); give a file in a folder that is there and writable.`);
  }
}

/** Puts the backup `from` in the place of the database at `path`. Gives the new name of what was there, or null. */
export function restoreDatabase(from: string, path: string, now: Date): string | null {
  if (!existsSync(from)) throw new StoreError(`there is no backup ${from}.`);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const unlock = takeServeLock(path);
  const draft = `${path}.restore`;
  try {
    // A copy is looked at: opening the backup itself could change it.
    copyFileSync(from, draft);
    chmodSync(draft, 0o600);
    const copy = new DatabaseSync(draft);
    try {
      requireOwn(copy, from);
      requireWhole(copy, from);
    } finally {
      copy.close();
    }
    sync(draft);
    const aside = existsSync(path)
      ? `${path}.before-${now.toISOString().replaceAll(':', '-').replaceAll('.', '-')}`
      : null;
    if (aside !== null) {
      for (const end of BESIDE) if (existsSync(path + end)) renameSync(path + end, aside + end);
    }
    renameSync(draft, path);
    sync(dirname(path));
    return aside;
  } catch (error) {
    throw explained(error, from);
  } finally {
    for (const end of BESIDE) rmSync(draft + end, { force: true });
    unlock();
  }
}

function requireOwn(database: DatabaseSync, path: string): void {
  if (!isOwnDatabase(database))
    throw new StoreError(`${path} is not a database of Postrider that this version can read.`);
}

function requireWhole(database: DatabaseSync, path: string): void {
  const found = database.prepare('PRAGMA integrity_check(1)').get()?.integrity_check;
  if (found !== 'ok') throw new StoreError(`${path} is damaged (${String(found)}); take another backup.`);
}

function sync(path: string): void {
  const file = openSync(path, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { openDatabase } from '../../src/store/sqlite/database.ts';
import { openSqliteStore } from '../../src/store/sqlite/store.ts';
import { createEngine } from '../../src/store/sqlite/thread.ts';
import { createTemporaryFolder } from './folder.ts';
import { createMessage } from './messages.ts';

const FILE_SUFFIXES = ['', '-wal', '-shm'] as const;
export const OLD_ACCOUNTS = ['in-the-log', 'old'];

export async function readAccounts(path: string): Promise<readonly string[]> {
  const store = await openSqliteStore({ path, exclusive: true, runsInCallerThread: true });
  try {
    return (await store.listAccounts()).map(({ name }) => name).sort();
  } finally {
    await store.close();
  }
}

function insertAccount(database: DatabaseSync, name: string): void {
  database.prepare('INSERT INTO account (name, created_at, revision) VALUES (?, 1, 1)').run(name);
}

export function createDatabase(path: string, accounts: readonly string[]): void {
  const database = openDatabase(path);
  for (const name of accounts) insertAccount(database, name);
  const messages = Array.from({ length: 50 }, () => createMessage({ message: 'x'.repeat(500) }));
  createEngine(database).operations.accept(messages);
  database.close();
}

export function createCrashedDatabase(path: string): void {
  const folder = createTemporaryFolder();
  const livePath = join(folder, 'live.db');
  const database = openDatabase(livePath);
  insertAccount(database, 'old');
  createEngine(database).operations.accept(Array.from({ length: 50 }, () => createMessage()));
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  insertAccount(database, 'in-the-log');
  for (const suffix of FILE_SUFFIXES) copyFileSync(livePath + suffix, path + suffix);
  database.close();
}

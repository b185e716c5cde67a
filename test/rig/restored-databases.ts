/** Creates the databases that tests of `restore` replace, and reads their accounts. */
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { openDatabase } from '../../src/store/sqlite/database.ts';
import { openSqliteStore } from '../../src/store/sqlite/store.ts';
import { createEngine } from '../../src/store/sqlite/thread.ts';
import { createTemporaryFolder } from './folder.ts';
import { createMessage, NO_LIMITS } from './messages.ts';

const FILE_SUFFIXES = ['', '-wal', '-shm'] as const;
/** The accounts of a database that `createCrashedDatabase` creates. */
export const OLD_ACCOUNTS = ['in-the-log', 'old'];

/** Returns the accounts of a database as a service reads them. */
export async function readAccounts(path: string): Promise<readonly string[]> {
  const store = await openSqliteStore({ path, exclusive: true, runsInCallerThread: true });
  try {
    return (await store.listAccounts()).map(({ name }) => name).sort();
  } finally {
    await store.close();
  }
}

export function createDatabase(path: string, accounts: readonly string[]): void {
  const database = openDatabase(path);
  const { operations, run } = createEngine(database);
  for (const name of accounts) operations.createAccount(name, NO_LIMITS, 1);
  const messages = Array.from({ length: 50 }, () => createMessage({ message: 'x'.repeat(500) }));
  run([{ number: 1, name: 'accept', args: [messages] }]);
  database.close();
}

/** Creates a database whose account `in-the-log` is only in the `-wal` file, as after a SIGKILL. */
export function createCrashedDatabase(path: string): void {
  const folder = createTemporaryFolder();
  const livePath = join(folder, 'live.db');
  const database = openDatabase(livePath);
  const { operations, run } = createEngine(database);
  operations.createAccount('old', NO_LIMITS, 1);
  run([{ number: 1, name: 'accept', args: [Array.from({ length: 50 }, () => createMessage())] }]);
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  operations.createAccount('in-the-log', NO_LIMITS, 1);
  for (const suffix of FILE_SUFFIXES) copyFileSync(livePath + suffix, path + suffix);
  database.close();
}

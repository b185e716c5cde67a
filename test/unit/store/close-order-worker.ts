/** Appends the name of its connection to `DATABASE-closed` when it closes; all but the writer close late. */
import { appendFileSync, existsSync, writeFileSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import { openDatabase } from '../../../src/store/sqlite/database.ts';
import type { StoreThreadOptions } from '../../../src/store/sqlite/thread.ts';
import { serveThread } from '../../../src/store/sqlite/thread.ts';

const CLOSE_DELAY_MS = 200;

function openDatabaseWithRecordedClose(path: string, holdsServeLock: boolean): DatabaseSync {
  const isWriter = !existsSync(`${path}-closed`);
  if (isWriter) writeFileSync(`${path}-closed`, '');
  const database = openDatabase(path, holdsServeLock);
  const close = database.close.bind(database);
  database.close = () => {
    if (!isWriter) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, CLOSE_DELAY_MS);
    close();
    appendFileSync(`${path}-closed`, isWriter ? 'writer\n' : 'other\n');
  };
  return database;
}

if (parentPort !== null) serveThread(parentPort, workerData as StoreThreadOptions, openDatabaseWithRecordedClose);

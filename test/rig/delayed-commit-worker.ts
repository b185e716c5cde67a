/**
 * A store thread whose COMMIT (the statement that syncs) depends on the content of the file `DATABASE-commit-mode`.
 * With `slow`, COMMIT waits until the content changes. With `fail`, COMMIT fails as in SQLite when the sync to disk
 * fails. Before the wait, the thread writes the number of messages in its transaction to the file
 * `DATABASE-waiting-commit`. After a successful COMMIT, the thread writes the time to the file `DATABASE-synced`.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import { openDatabase } from '../../src/store/sqlite/database.ts';
import type { StoreThreadOptions } from '../../src/store/sqlite/thread.ts';
import { serveThread } from '../../src/store/sqlite/thread.ts';

function openDatabaseWithControlledCommit(path: string, locked: boolean): DatabaseSync {
  const database = openDatabase(path, locked);
  const readCommitMode = () => readFileSync(`${path}-commit-mode`, 'utf8');
  const originalExec = database.exec.bind(database);
  database.exec = (sql) => {
    if (sql !== 'COMMIT') return originalExec(sql);
    if (readCommitMode() === 'slow') {
      const { n } = database.prepare('SELECT count(*) AS n FROM mail_request').get() ?? {};
      writeFileSync(`${path}-waiting-commit`, String(n));
    }
    while (readCommitMode() === 'slow') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    if (readCommitMode() === 'fail') throw Object.assign(new Error('disk I/O error'), { errcode: 1034 });
    originalExec(sql);
    writeFileSync(`${path}-synced`, String(Date.now()));
  };
  return database;
}

if (parentPort !== null) serveThread(parentPort, workerData as StoreThreadOptions, openDatabaseWithControlledCommit);

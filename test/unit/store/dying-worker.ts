/** Exits while a file `*-die` exists next to the database, as with exhausted memory. */
import { existsSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import { openDatabase } from '../../../src/store/sqlite/database.ts';
import type { StoreThreadOptions } from '../../../src/store/sqlite/thread.ts';
import { serveThread } from '../../../src/store/sqlite/thread.ts';

function openAndExit(path: string, isLocked: boolean): DatabaseSync {
  const exitIfRequested = () => {
    if (existsSync(`${path}-die`)) process.exit(7);
  };
  exitIfRequested();
  const database = openDatabase(path, isLocked);
  const prepare = database.prepare.bind(database);
  database.prepare = (sql) => {
    const statement = prepare(sql);
    // The statements of listAccounts and readQueueStatistics.
    if (!sql.includes('FROM account a ORDER BY a.name') && !sql.includes('INDEXED BY mail_request_due WHERE'))
      return statement;
    const [runAll, runGet] = [statement.all.bind(statement), statement.get.bind(statement)];
    statement.all = () => {
      exitIfRequested();
      return runAll();
    };
    statement.get = () => {
      exitIfRequested();
      return runGet();
    };
    return statement;
  };
  return database;
}

if (parentPort !== null) serveThread(parentPort, workerData as StoreThreadOptions, openAndExit);

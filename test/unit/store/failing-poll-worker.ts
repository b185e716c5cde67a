/** Its poll for changes of accounts and keys fails once for each file `*-fail` next to the database. */
import { existsSync, rmSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import { openDatabase } from '../../../src/store/sqlite/database.ts';
import type { StoreThreadOptions } from '../../../src/store/sqlite/thread.ts';
import { serveThread } from '../../../src/store/sqlite/thread.ts';

function openWithFailingPoll(path: string, isLocked: boolean): DatabaseSync {
  const database = openDatabase(path, isLocked);
  const prepare = database.prepare.bind(database);
  database.prepare = (sql) => {
    const statement = prepare(sql);
    if (sql !== 'SELECT revision FROM installation') return statement;
    const runAll = statement.all.bind(statement);
    statement.all = () => {
      if (!existsSync(`${path}-fail`)) return runAll();
      rmSync(`${path}-fail`);
      throw Object.assign(new Error('disk I/O error'), { errcode: 10 });
    };
    return statement;
  };
  return database;
}

if (parentPort !== null) serveThread(parentPort, workerData as StoreThreadOptions, openWithFailingPoll);

import { describe, expect, test } from 'vitest';
import type { Statement } from '../../../src/store/postgres/session.ts';
import { startCommitProxy } from '../../rig/commit-proxy.ts';
import { createTemporaryDatabase, runStatement } from '../../rig/postgres.ts';
import { createTestPool } from '../../rig/stores.ts';

const INSERT_NUMBER: Statement = { name: 'test_insert', text: 'INSERT INTO t (n) VALUES ($1)' };
const SELECT_ALL: Statement = { name: 'test_all', text: 'SELECT * FROM t ORDER BY n' };

async function createDatabase(): Promise<string> {
  const url = await createTemporaryDatabase();
  await runStatement(url, 'CREATE TABLE t (n bigint PRIMARY KEY)');
  return url;
}

const replacePort = (url: string, port: number) => {
  const proxyUrl = new URL(url);
  proxyUrl.port = String(port);
  return proxyUrl.href;
};
const getPort = (url: string) => Number(new URL(url).port);

describe('a transaction', () => {
  test('is stored completely, and numbers are read as numbers', async () => {
    const pool = createTestPool(await createDatabase());
    const value = await pool.transaction(async (transaction) => {
      await Promise.all([transaction.query(INSERT_NUMBER, [2 ** 40]), transaction.query(INSERT_NUMBER, [1])]);
      return 'value';
    });
    expect(value).toBe('value');
    expect(await pool.query(SELECT_ALL, [])).toEqual([{ n: 1 }, { n: 2 ** 40 }]);
  });

  test('with a failed statement stores nothing, even if its function ignores the error', async () => {
    const pool = createTestPool(await createDatabase());
    const result = pool.transaction(async (transaction) => {
      await transaction.query(INSERT_NUMBER, [1]);
      await transaction.query(INSERT_NUMBER, [1]).catch(() => undefined);
    });
    await expect(result).rejects.toThrow('the transaction was rolled back');
    await expect(
      pool.transaction(async (transaction) => {
        await transaction.query(INSERT_NUMBER, [1]);
        throw new Error('an error of the work');
      }),
    ).rejects.toThrow('an error of the work');
    expect(await pool.query(SELECT_ALL, [])).toEqual([]);
  });

  test('rejects statements that are sent after its end', async () => {
    const pool = createTestPool(await createDatabase());
    let queryLater: () => Promise<unknown> = async () => undefined;
    await pool.transaction(async (transaction) => {
      queryLater = () => transaction.query(INSERT_NUMBER, [7]);
    });
    await expect(queryLater()).rejects.toThrow('after its transaction had ended');
    expect(await pool.query(SELECT_ALL, [])).toEqual([]);
  });

  test('is retried after a deadlock, so that both transactions are stored', async () => {
    const url = await createDatabase();
    await runStatement(url, 'INSERT INTO t VALUES (1), (2)');
    const pool = createTestPool(url);
    const updateStatement: Statement = { name: 'test_update', text: 'UPDATE t SET n = n WHERE n = $1' };
    let arrivedCount = 0;
    const bothArrived = Promise.withResolvers<void>();
    let attemptCount = 0;
    const insertInOrder = (firstNumber: number, secondNumber: number, addedNumber: number) =>
      pool.transaction(async (transaction) => {
        attemptCount += 1;
        await transaction.query(updateStatement, [firstNumber]);
        arrivedCount += 1;
        if (arrivedCount === 2) bothArrived.resolve();
        await bothArrived.promise;
        await transaction.query(updateStatement, [secondNumber]);
        await transaction.query(INSERT_NUMBER, [addedNumber]);
      });
    await Promise.all([insertInOrder(1, 2, 3), insertInOrder(2, 1, 4)]);
    // On a busy machine, the retried transaction can cause another deadlock.
    expect(attemptCount).toBeGreaterThan(2);
    expect((await pool.query(SELECT_ALL, [])).map(({ n }) => n)).toEqual([1, 2, 3, 4]);
  });

  test('whose connection was ended before the commit is retried', async () => {
    const url = await createDatabase();
    const pool = createTestPool(url);
    const pidStatement: Statement = { name: 'test_pid', text: 'SELECT pg_backend_pid() AS pid' };
    let attemptCount = 0;
    await pool.transaction(async (transaction) => {
      attemptCount += 1;
      await transaction.query(INSERT_NUMBER, [attemptCount]);
      const [row] = await transaction.query(pidStatement, []);
      if (attemptCount === 1) await runStatement(url, `SELECT pg_terminate_backend(${String(row?.pid)}, 5000)`);
      await transaction.query(pidStatement, []);
    });
    expect(await pool.query(SELECT_ALL, [])).toEqual([{ n: 2 }]);
  });

  test('is stored and not repeated if the answer to its commit is lost', async () => {
    const url = await createDatabase();
    const proxy = await startCommitProxy(getPort(url));
    const pool = createTestPool(replacePort(url, proxy.port));
    let attemptCount = 0;
    proxy.dropCommitResponse();
    await pool.transaction(async (transaction) => {
      attemptCount += 1;
      await transaction.query(INSERT_NUMBER, [attemptCount]);
    });
    expect([attemptCount, proxy.getFaultCount()]).toEqual([1, 1]);
    expect(await pool.query(SELECT_ALL, [])).toEqual([{ n: 1 }]);
  });

  test('without an answer to its commit succeeds only if its rows are found, because another transaction may have the same id', async () => {
    const url = await createDatabase();
    const proxy = await startCommitProxy(getPort(url));
    const pool = createTestPool(replacePort(url, proxy.port));
    for (const isFound of [true, false]) {
      proxy.dropCommitResponse();
      const checks: unknown[] = [];
      const transactionResult = pool.transaction(
        async (transaction) => {
          await transaction.query(INSERT_NUMBER, [isFound ? 1 : 2]);
          return isFound;
        },
        async (session, value) => {
          checks.push(value, (await session.query(SELECT_ALL, [])).length);
          return isFound;
        },
      );
      if (isFound) await expect(transactionResult).resolves.toBe(true);
      else await expect(transactionResult).rejects.toThrow(/^PostgreSQL /);
      expect(checks).toEqual([isFound, isFound ? 1 : 2]);
    }
  });

  test('whose commit does not reach the server is terminated on the server and retried', async () => {
    const url = await createDatabase();
    const proxy = await startCommitProxy(getPort(url));
    const pool = createTestPool(replacePort(url, proxy.port));
    let roundCount = 0;
    proxy.dropCommit();
    await pool.transaction(async (transaction) => {
      roundCount += 1;
      await transaction.query(INSERT_NUMBER, [roundCount]);
    });
    expect([roundCount, proxy.getFaultCount()]).toEqual([2, 1]);
    expect(await pool.query(SELECT_ALL, [])).toEqual([{ n: 2 }]);
  });
});

describe('the connections', () => {
  test('continue without an error when another node changes a table of their prepared statements', async () => {
    const url = await createDatabase();
    const pool = createTestPool(url);
    const queryConcurrently = () => Promise.all(Array.from({ length: 16 }, () => pool.query(SELECT_ALL, [])));
    await queryConcurrently();
    await runStatement(url, 'ALTER TABLE t ADD COLUMN more text; INSERT INTO t VALUES (1)');
    expect(new Set((await queryConcurrently()).map((rows) => JSON.stringify(rows)))).toEqual(
      new Set(['[{"n":1,"more":null}]']),
    );
    await pool.transaction(async (transaction) => {
      expect(await transaction.query(SELECT_ALL, [])).toHaveLength(1);
    });
  });

  test('are all closed with the pool after the work in progress completes, and later calls are rejected', async () => {
    const url = await createDatabase();
    const pool = createTestPool(url);
    const [started, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const runningTransaction = pool.transaction(async (transaction) => {
      await transaction.query(INSERT_NUMBER, [1]);
      started.resolve();
      await released.promise;
      await transaction.query(INSERT_NUMBER, [2]);
    });
    await started.promise;
    const closePromise = pool.close();
    await expect(pool.query(SELECT_ALL, [])).rejects.toThrow('the store is closed');
    released.resolve();
    await Promise.all([runningTransaction, closePromise]);
    const laterPool = createTestPool(url);
    expect(await laterPool.query(SELECT_ALL, [])).toEqual([{ n: 1 }, { n: 2 }]);
    const remainingSessions: Statement = {
      name: 'test_left',
      text: 'SELECT 1 AS one FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
    };
    await expect.poll(() => laterPool.query(remainingSessions, [])).toEqual([]);
  });

  test('of settlements are not occupied by slow reads', async () => {
    const pool = createTestPool(await createDatabase());
    const slowReads = Array.from({ length: 12 }, () => pool.query('SELECT pg_sleep(3)'));
    await expect
      .poll(() => pool.settlements.query("SELECT 1 FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'"))
      .toHaveLength(6);
    await pool.settlements.transaction((transaction) => transaction.query(INSERT_NUMBER, [1]));
    expect(await Promise.race([Promise.all(slowReads), pool.settlements.query(SELECT_ALL, [])])).toEqual([{ n: 1 }]);
    await Promise.all(slowReads);
  });

  test('a sync waits until the WAL is on disk', async () => {
    const url = await createDatabase();
    const pool = createTestPool(url);
    const positionStatement: Statement = {
      name: 'test_lsn',
      text: 'SELECT pg_current_wal_insert_lsn() > $1::pg_lsn AS written, pg_current_wal_flush_lsn() > $1::pg_lsn AS synced, pg_current_wal_insert_lsn()::text AS lsn',
    };
    const [walBefore] = await pool.query(positionStatement, ['0/0']);
    await pool.sync();
    const [walAfter] = await pool.query(positionStatement, [walBefore?.lsn]);
    expect(walAfter).toMatchObject({ written: true, synced: true });
  });
});

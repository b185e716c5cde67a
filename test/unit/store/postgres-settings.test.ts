import { expect, onTestFinished, test } from 'vitest';
import type { Session } from '../../../src/store/postgres/session.ts';
import { startPoolerProxy } from '../../rig/pooler-proxy.ts';
import { connectClient, createTemporaryDatabase, runStatement } from '../../rig/postgres.ts';
import { createTestPool, tryToOpen } from '../../rig/stores.ts';

const STATEMENT_TIMEOUT_MS = 7_000;

async function createUnsafeDatabase(): Promise<URL> {
  const url = new URL(await createTemporaryDatabase());
  const name = `careless_${process.pid}_${Math.random().toString(36).slice(2, 10)}`;
  const adminUrl = url.href;
  const settings = [
    ...['synchronous_commit = off', 'client_min_messages = error', 'statement_timeout = 0', 'jit = on'],
    ...['default_transaction_read_only = on', "lock_timeout = '5ms'", "idle_session_timeout = '8s'"],
  ];
  await runStatement(
    adminUrl,
    `CREATE ROLE ${name} LOGIN PASSWORD 'careless'; ALTER DATABASE ${url.pathname.slice(1)} OWNER TO ${name};
     GRANT ALL ON SCHEMA public TO ${name}; ${settings.map((assignment) => `ALTER ROLE ${name} SET ${assignment};`).join(' ')}`,
  );
  onTestFinished(() =>
    runStatement(
      adminUrl,
      `ALTER DATABASE ${url.pathname.slice(1)} OWNER TO CURRENT_USER; DROP OWNED BY ${name} CASCADE; DROP ROLE ${name}`,
    ),
  );
  url.username = name;
  url.password = 'careless';
  return url;
}

function replacePort(url: URL, port: number, options?: string): string {
  const changedUrl = new URL(url);
  changedUrl.port = String(port);
  if (options !== undefined) changedUrl.searchParams.set('options', options);
  return changedUrl.href;
}

const createPoolFor = (url: string) => createTestPool(url, { statementTimeoutMs: STATEMENT_TIMEOUT_MS });

async function readSettings(connection: Session): Promise<Readonly<Record<string, unknown>>> {
  const settingNames = [
    'synchronous_commit',
    'client_min_messages',
    'statement_timeout',
    'idle_in_transaction_session_timeout',
    'plan_cache_mode',
    'jit',
    'default_transaction_read_only',
    'lock_timeout',
    'idle_session_timeout',
  ];
  const text = `SELECT ${settingNames.map((name) => `current_setting('${name}') AS ${name}`).join(', ')}`;
  const [row = {}] = await connection.query({ name: '', text }, []);
  return row;
}

const EXPECTED_SETTINGS = {
  synchronous_commit: 'on',
  client_min_messages: 'warning',
  statement_timeout: '6s',
  idle_in_transaction_session_timeout: '7s',
  plan_cache_mode: 'force_generic_plan',
  jit: 'off',
  default_transaction_read_only: 'off',
  lock_timeout: '0',
  idle_session_timeout: '0',
};

test('the settings of a role do not affect connections', async () => {
  const url = await createUnsafeDatabase();
  expect(await readSettings(createPoolFor(url.href))).toEqual(EXPECTED_SETTINGS);
});

test.each(['refuse', 'drop'] as const)(
  'behind a pooler that would %s startup options, no startup option is sent, and every setting is applied',
  async (options) => {
    process.env.PGOPTIONS = '-c synchronous_commit=off';
    onTestFinished(() => {
      delete process.env.PGOPTIONS;
    });
    const url = await createUnsafeDatabase();
    const proxy = await startPoolerProxy(Number(url.port), { options });
    expect(await readSettings(createPoolFor(replacePort(url, proxy.port)))).toEqual(EXPECTED_SETTINGS);
    expect(await tryToOpen(replacePort(url, proxy.port))).toBe('it opened');
    expect([...proxy.parameters].sort()).toEqual(['application_name', 'client_encoding', 'database', 'user']);
  },
);

test('a connection whose settings were changed after they had been checked commits nothing', async () => {
  const url = new URL(await createTemporaryDatabase());
  await runStatement(url.href, 'CREATE TABLE t (n bigint)');
  const pool = createPoolFor(url.href);
  // The next statements simulate a pooler in transaction mode, which may run each transaction on a different server
  // connection.
  const resetStatement = { name: '', text: 'RESET ALL' };
  const insert = { name: '', text: 'INSERT INTO t VALUES (1)' };
  await pool.query({ name: '', text: 'SET synchronous_commit = off' }, []);
  await expect(pool.transaction((transaction) => transaction.query(insert, []))).rejects.toThrow(
    /the settings of the connection have changed/,
  );
  // The next transaction uses a new connection and succeeds.
  await pool.transaction((transaction) => transaction.query(insert, []));
  await pool.query(resetStatement, []);
  const client = await connectClient(url.href);
  expect((await client.query('SELECT count(*)::int AS n FROM t')).rows).toEqual([{ n: 1 }]);
});

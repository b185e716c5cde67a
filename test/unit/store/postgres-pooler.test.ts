import { expect, onTestFinished, test, vi } from 'vitest';
import { openStore } from '../../../src/store/open.ts';
import { createMessage, NO_LIMITS } from '../../rig/messages.ts';
import { createTemporaryDatabase, runStatement, startPostgres } from '../../rig/postgres.ts';
import { createTestPool, parsePostgresUrl } from '../../rig/stores.ts';
import { startTransactionPooler } from '../../rig/transaction-pooler.ts';

async function startPooledServer(url: string, options?: Parameters<typeof startTransactionPooler>[1]) {
  const pooler = await startTransactionPooler(Number(new URL(url).port), options);
  const changedUrl = new URL(url);
  changedUrl.port = String(pooler.port);
  changedUrl.searchParams.set('pooler', 'transaction');
  if (options?.prepared === 'track') changedUrl.searchParams.set('prepared', 'yes');
  return { pooler, url: changedUrl.href };
}

function createPostgresSetting(url: string) {
  const setting = parsePostgresUrl(url);
  if (setting.kind !== 'postgres') throw new Error('no PostgreSQL URL');
  return setting;
}

/** Sets defaults of the database with which a commit is not durable and statements fail. */
async function setUnsafeDefaults(url: string): Promise<void> {
  const settings = {
    synchronous_commit: 'off',
    client_min_messages: 'error',
    default_transaction_read_only: 'on',
    lock_timeout: '5ms',
    jit: 'on',
  };
  const database = new URL(url).pathname.slice(1);
  const statements = Object.entries(settings).map(
    ([name, value]) => `ALTER DATABASE ${database} SET ${name} = '${value}'`,
  );
  await runStatement(url, statements.join('; '));
}

test('every transaction and every single statement sets the parameters that durability requires, regardless of the settings of the database', async () => {
  const database = await createTemporaryDatabase();
  await setUnsafeDefaults(database);
  const { pooler, url } = await startPooledServer(database);
  const pool = createTestPool(url);
  const names = ['synchronous_commit', 'client_min_messages', 'lock_timeout', 'jit', 'statement_timeout'];
  const columns = [...names, 'transaction_read_only', 'plan_cache_mode'].map(
    (name) => `current_setting('${name}') AS ${name}`,
  );
  const read = { name: 'test_settings', text: `SELECT ${columns.join(', ')}` };
  const expected = {
    synchronous_commit: 'on',
    client_min_messages: 'warning',
    lock_timeout: '0',
    jit: 'off',
    statement_timeout: '14s',
    transaction_read_only: 'off',
    plan_cache_mode: 'force_generic_plan',
  };
  const readPromises = Array.from({ length: 8 }, (_, at) =>
    at % 2 === 0 ? pool.query(read, []) : pool.transaction((transaction) => transaction.query(read, [])),
  );
  expect(await Promise.all(readPromises)).toEqual(readPromises.map(() => [expected]));
  expect(await pool.query(read, [])).toEqual([expected]);
  expect(pooler.getSwitchCount()).toBeGreaterThan(0);
  expect(pooler.refusedRequests).toEqual([]);
});

test('after an immediate shutdown of a server whose default is synchronous_commit=off, every accepted message is stored', async () => {
  const server = await startPostgres({ settings: { wal_writer_delay: '10s', synchronous_commit: 'off' } });
  const { pooler, url } = await startPooledServer(await server.createDatabase());
  const store = await openStore(parsePostgresUrl(url), { exclusive: true });
  onTestFinished(() => store.close());
  await store.createAccount('default', NO_LIMITS, 1);
  const messages = Array.from({ length: 30 }, () => createMessage());
  for (const message of messages) expect(await store.accept([message])).toMatchObject([{ kind: 'accepted' }]);
  await server.restart();
  const found = await vi.waitFor(() => Promise.all(messages.map(({ id }) => store.findMessage(id))), {
    timeout: 60_000,
  });
  expect(found.filter((message) => message === null)).toEqual([]);
  expect(pooler.refusedRequests).toEqual([]);
});

test('a change is visible to other nodes within 2 s, by polling and by notifications of a direct connection', async () => {
  const database = await createTemporaryDatabase();
  const { pooler, url } = await startPooledServer(database);
  const directSetting = createPostgresSetting(database);
  for (const [name, setting] of [
    ['polled', parsePostgresUrl(url)],
    ['notified', { ...createPostgresSetting(url), direct: directSetting }],
  ] as const) {
    const [writer, reader] = await Promise.all([1, 2].map(() => openStore(setting, { exclusive: true })));
    if (writer === undefined || reader === undefined) throw new Error('no store');
    onTestFinished(async () => void (await Promise.all([writer.close(), reader.close()])));
    const names: string[] = [];
    await reader.watchDirectory(({ accounts }) => void names.push(...accounts.map(({ name }) => name)));
    await writer.createAccount(name, NO_LIMITS, 1);
    await vi.waitFor(() => expect(names).toContain(name), { timeout: 120_000 });
  }
  expect(pooler.refusedRequests).toEqual([]);
});

test('a direct connection to another database is refused before anything is migrated', async () => {
  const [database, other] = await Promise.all([createTemporaryDatabase(), createTemporaryDatabase()]);
  const { url } = await startPooledServer(database);
  const setting = { ...createPostgresSetting(url), direct: createPostgresSetting(other) };
  await expect(openStore(setting, { exclusive: true })).rejects.toThrow(
    /: POSTRIDER_DATABASE_DIRECT names another database, schema or server than POSTRIDER_DATABASE\. Correct one/,
  );
  const unreachableSetting = { ...createPostgresSetting(database), hosts: [{ host: '127.0.0.1', port: 1 }] };
  await expect(openStore({ ...setting, direct: unreachableSetting }, { exclusive: true })).rejects.toThrow(
    /the connection was refused\. Start PostgreSQL, or correct host and port in POSTRIDER_DATABASE_DIRECT\.$/,
  );
});

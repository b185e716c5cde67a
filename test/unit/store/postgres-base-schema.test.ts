import { readFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { openStore } from '../../../src/store/open.ts';
import { migrate } from '../../../src/store/postgres/migrate.ts';
import { listSchemaFiles, SCHEMA_FOLDER } from '../../../src/store/schema.ts';
import { createMessage, NO_LIMITS } from '../../rig/messages.ts';
import { connectClient, createTemporaryDatabase, runStatement } from '../../rig/postgres.ts';
import { createSchemaFolder } from '../../rig/schema.ts';
import { createTestPool, parsePostgresUrl } from '../../rig/stores.ts';

const NEWEST_VERSION = listSchemaFiles(SCHEMA_FOLDER, 'postgres').length;

const readRows = async (url: string, sql: string) => (await (await connectClient(url)).query(sql)).rows;

test('if many nodes start together on an empty database, the schema is created once and all nodes work', async () => {
  const url = await createTemporaryDatabase();
  const stores = await Promise.all(
    Array.from({ length: 6 }, () => openStore(parsePostgresUrl(url), { exclusive: true })),
  );
  for (const store of stores) onTestFinished(() => store.close());
  expect(await readRows(url, 'SELECT version FROM installation')).toEqual([{ version: NEWEST_VERSION }]);
  await stores[0]?.createAccount('default', NO_LIMITS, 1);
  const results = await Promise.all(stores.map((store) => store.accept([createMessage()])));
  expect(results.flat().map(({ kind }) => kind)).toEqual(stores.map(() => 'accepted'));
});

test('a failing migration changes nothing, and reports the failure in one line', async () => {
  const url = await createTemporaryDatabase();
  await migrate(createTestPool(url));
  const brokenMigrations = createSchemaFolder('postgres', 'CREATE TABLE half (n int); CREATE TABLE account (n int);');
  await expect(migrate(createTestPool(url), brokenMigrations)).rejects.toThrow(
    /^PostgreSQL .*relation "account" already exists\.$/,
  );
  expect(await readRows(url, "SELECT to_regclass('half') AS half, version FROM installation")).toEqual([
    { half: null, version: NEWEST_VERSION },
  ]);
});

test('a node continues to work, and can restart, after a newer node has added columns to the schema', async () => {
  const url = await createTemporaryDatabase();
  const olderStore = await openStore(parsePostgresUrl(url), { exclusive: true });
  onTestFinished(() => olderStore.close());
  await olderStore.createAccount('default', NO_LIMITS, 1);
  await olderStore.accept([createMessage()]);
  await migrate(
    createTestPool(url),
    createSchemaFolder(
      'postgres',
      'ALTER TABLE account ADD COLUMN more text; ALTER TABLE mail_request ADD COLUMN more text',
    ),
  );
  expect(await readRows(url, 'SELECT version, least FROM installation')).toEqual([
    { version: NEWEST_VERSION + 1, least: 1 },
  ]);
  const reopenedStore = await openStore(parsePostgresUrl(url), { exclusive: true });
  onTestFinished(() => reopenedStore.close());
  for (const store of [olderStore, reopenedStore]) {
    expect((await store.accept([createMessage()])).map(({ kind }) => kind)).toEqual(['accepted']);
    expect((await store.setAccount('default', { volume: 10 }, 2)).kind).toBe('done');
    expect(
      (await store.listMessages({ accountId: null, state: null, to: null, since: null, limit: 9 })).length,
    ).toBeGreaterThan(1);
  }
});

test('a schema that is incompatible with this version is refused with a one-line error that contains both versions', async () => {
  const url = await createTemporaryDatabase();
  await migrate(createTestPool(url));
  await runStatement(url, `UPDATE installation SET version = ${NEWEST_VERSION + 2}, least = ${NEWEST_VERSION + 1}`);
  await expect(openStore(parsePostgresUrl(url), { exclusive: true })).rejects.toThrow(
    new RegExp(
      `schema version ${NEWEST_VERSION + 2}, but this version of Postrider supports at most ${NEWEST_VERSION}\\. Run the version`,
    ),
  );
});

test('a database of another program is refused and unchanged', async () => {
  const url = await createTemporaryDatabase();
  await runStatement(url, 'CREATE TABLE account (name text)');
  await expect(openStore(parsePostgresUrl(url), { exclusive: true })).rejects.toThrow(
    /is not a Postrider database.*createdb/,
  );
  expect(await readRows(url, "SELECT count(*)::int AS n FROM pg_tables WHERE schemaname = 'public'")).toEqual([
    { n: 1 },
  ]);
});

test('a store of version 0.1.0 is refused in one line', async () => {
  const url = await createTemporaryDatabase();
  await migrate(createTestPool(url));
  await runStatement(url, 'ALTER TABLE installation RENAME TO postrider');
  await expect(openStore(parsePostgresUrl(url), { exclusive: true })).rejects.toThrow(
    /^[^\n]* is a store of Postrider 0\.1\.0, which this version cannot read\./,
  );
});

/** The tables and columns that only one database has (src/store/schema/sqlite.sql). */
const DIFFERENCES = [
  ...['account_usage', 'body_rest', 'event_rest', 'mail_request_rest', 'queue', 'transfer'].map((table) => `-${table}`),
  ...['-body.account_id', '-body.id', '+body.seq', '-event.account_id', '-event.id', '+event.seq'],
  ...['-installation.least', '+installation.probed_at', '-installation.version'],
  ...['due_at', 'handing_over', 'held_ms', 'lane', 'owner', 'seq'].map((column) => `+mail_request.${column}`),
  ...['-outbox.n', '-outbox.xid', '-reputation.slot', '-search.id'],
];

test('both databases have the same tables and columns, except for those that the schema of SQLite names', async () => {
  const url = await createTemporaryDatabase();
  await migrate(createTestPool(url));
  const database = new DatabaseSync(':memory:');
  for (const file of listSchemaFiles(SCHEMA_FOLDER, 'sqlite')) database.exec(readFileSync(file, 'utf8'));
  const embedded = database
    .prepare(
      "SELECT t.name AS table_name, c.name AS column_name FROM pragma_table_list t, pragma_table_info(t.name) c WHERE t.type <> 'shadow' AND t.name NOT LIKE 'sqlite_%'",
    )
    .all();
  const server = await readRows(
    url,
    "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'",
  );
  expect(listDifferences(toColumns(embedded), toColumns(server)).sort()).toEqual(DIFFERENCES.sort());
});

type Columns = ReadonlyMap<string, ReadonlySet<string>>;

function toColumns(rows: readonly unknown[]): Columns {
  const columns = new Map<string, Set<string>>();
  for (const { table_name, column_name } of rows as readonly Record<string, string>[]) {
    const names = columns.get(String(table_name)) ?? new Set();
    columns.set(String(table_name), names.add(String(column_name)));
  }
  return columns;
}

function listDifferences(embedded: Columns, server: Columns): string[] {
  const compare = (sign: string, ours: Columns, theirs: Columns) =>
    [...ours].flatMap(([table, columns]) => {
      const others = theirs.get(table);
      if (others === undefined) return [`${sign}${table}`];
      return [...columns].filter((column) => !others.has(column)).map((column) => `${sign}${table}.${column}`);
    });
  return [...compare('+', embedded, server), ...compare('-', server, embedded)];
}

/** Copies of filled stores of an old version (test/corpus/stores), opened by this version. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import type { DatabaseSetting } from '../../src/config/settings.ts';
import { openStore } from '../../src/store/open.ts';
import { SCHEMA_FOLDER } from '../../src/store/schema.ts';
import type { Row } from '../../src/store/transaction.ts';
import { connectClient, createTemporaryDatabase } from '../rig/postgres.ts';
import { submitAccepted } from '../rig/service.ts';
import { startSmtpServer } from '../rig/smtp-server.ts';
import { parsePostgresUrl } from '../rig/stores.ts';
import { createScenario } from './running-service.ts';

interface OldStore {
  readonly url: string;
  readonly setting: DatabaseSetting;
  /** The column names `owner` and `name` are the table and the column. */
  readonly columnsQuery: string;
  /** An API key of the account `default`. */
  readonly key: string;
  query(sql: string): Promise<readonly Row[]>;
}

const STORES_FOLDER = new URL('../corpus/stores/', import.meta.url);
/** An hour after the stores were written: the messages have not expired. */
const NOW = 1_795_957_200_000;
/** They contain the version of the schema. */
const MIGRATED_COLUMNS = ['installation.version', 'installation.least'];
const startedAt = Date.now();
const clock = { ...systemClock, now: () => NOW + Date.now() - startedAt };
const environment = { clock, random: Math.random, isSimulated: true };
const rig = createScenario();

async function copySqliteStore(): Promise<OldStore> {
  const path = join(rig.createFolder(), 'postrider.db');
  writeFileSync(path, gunzipSync(readFileSync(new URL('version-1.sqlite.gz', STORES_FOLDER))));
  return {
    url: `sqlite:${path}`,
    setting: { kind: 'sqlite', path },
    columnsQuery: `SELECT t.name AS owner, c.name FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table'`,
    key: 'pr_IWbZi9skHW3l658cdyxzUHcxqaYhBnF1xp5vThP78Kw',
    async query(sql) {
      const database = new DatabaseSync(path);
      try {
        return database.prepare(sql).all();
      } finally {
        database.close();
      }
    },
  };
}

async function copyPostgresStore(): Promise<OldStore> {
  const url = await createTemporaryDatabase();
  const client = await connectClient(url);
  await client.query(readFileSync(new URL('postgres.sql', SCHEMA_FOLDER), 'utf8'));
  await client.query(readFileSync(new URL('version-1-postgres.sql', STORES_FOLDER), 'utf8'));
  return {
    url,
    setting: parsePostgresUrl(url),
    columnsQuery: `SELECT c.relname AS owner, a.attname AS name FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
      WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = current_schema()::regnamespace
        AND a.attnum > 0 AND NOT a.attisdropped`,
    key: 'pr_1CAY3QXE_2UA3f4qIoT4RUu6ivXbxHL1zy5QnyX22Hg',
    query: async (sql) => (await client.query<Row>(sql)).rows,
  };
}

async function listColumns({ query, columnsQuery }: OldStore): Promise<ReadonlyMap<string, readonly string[]>> {
  const columns = (await query(columnsQuery)).filter(
    ({ owner, name }) => !MIGRATED_COLUMNS.includes(`${owner}.${name}`),
  );
  const byTable = Map.groupBy(columns, ({ owner }) => String(owner));
  return new Map([...byTable].map(([table, list]) => [table, list.map(({ name }) => `"${name}"`)]));
}

async function readRows({ query }: OldStore, tables: ReadonlyMap<string, readonly string[]>) {
  const rows: Record<string, readonly string[]> = {};
  for (const [table, columns] of tables) {
    const found = await query(`SELECT ${columns.join(', ')} FROM ${table}`);
    rows[table] = found.map((row) => JSON.stringify(row)).sort();
  }
  return rows;
}

test.each([
  ['an embedded store', copySqliteStore],
  ['a PostgreSQL store', copyPostgresStore],
])('%s of version 1 loses nothing: every row, the key, the DKIM key and a queued message', async (_name, copy) => {
  const oldStore = await copy();
  const { url, setting, key, query } = oldStore;
  const tables = await listColumns(oldStore);
  const rowsBefore = await readRows(oldStore, tables);
  const emptyTables = Object.keys(rowsBefore).filter((table) => rowsBefore[table]?.length === 0);
  // Items that need attention last for an hour at most, and only a transfer writes the other table.
  expect(emptyTables.filter((table) => table !== 'transfer')).toEqual(['attention']);
  const secret = 'ab'.repeat(32);

  const store = await openStore(setting, { exclusive: true, environment });
  expect(await readRows(oldStore, tables)).toEqual(rowsBefore);
  const findId = async (subject: string) => {
    const [row] = await query(`SELECT id FROM mail_request WHERE subject = '${subject}'`);
    return String(row?.id);
  };
  expect(await store.findMessage(await findId('Grüße 😀'))).toMatchObject({
    ...{ state: 'delivered', to: 'rita@example.com', message: expect.stringContaining('<p>Grüße 😀</p>') },
    events: [{ verb: 'accepted' }, { verb: 'delivered', attempt: { outcome: { kind: 'delivered' } } }],
  });
  await store.close();

  const relay = await startSmtpServer();
  const service = await rig.serve(
    rig.createFolder(),
    {
      ...{ POSTRIDER_DATABASE: url, POSTRIDER_SECRET: secret, POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${relay.port}` },
      POSTRIDER_DNS: '127.0.0.1:1',
    },
    { clock, openStore: (settings) => openStore(settings.database, { exclusive: true, environment }) },
  );
  await submitAccepted(service.publicUrl, key, { from: 'shop@shop.example', subject: 'New' });
  const listReceived = () =>
    relay.receivedMessages.map(({ to, data }) => [...to, /d=shop\.example/.test(String(data))]);
  await expect.poll(listReceived).toEqual(
    expect.arrayContaining([
      ['queued@example.com', true],
      ['rita@example.com', true],
    ]),
  );
  await service.stop();
  await relay.close();
});

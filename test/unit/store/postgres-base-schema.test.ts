/** Tests that the schema of the PostgreSQL store is created once, and either completely or not at all. */
import { copyFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { openStore } from '../../../src/store/open.ts';
import { createPool, type Pool } from '../../../src/store/postgres/database.ts';
import { migrate } from '../../../src/store/postgres/migrate.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';
import { createMessage, NO_LIMITS } from '../../rig/messages.ts';
import { createTemporaryDatabase, runStatement } from '../../rig/postgres.ts';
import { parsePostgresUrl } from '../../rig/stores.ts';

const MIGRATIONS = new URL('../../../src/store/postgres/migrations/', import.meta.url);
const NEWEST_VERSION = readdirSync(MIGRATIONS).filter((name) => name.endsWith('.sql')).length;

function createPoolFor(url: string): Pool {
  const setting = parsePostgresUrl(url);
  if (setting.kind !== 'postgres') throw new Error('no PostgreSQL URL');
  const pool = createPool({ setting, application: 'postrider test', random: Math.random });
  onTestFinished(() => pool.close());
  return pool;
}

/** Creates a folder with the current migrations and an additional one. */
function createMigrationFolder(sql: string): URL {
  const folder = createTemporaryFolder();
  for (const name of readdirSync(MIGRATIONS)) copyFileSync(new URL(name, MIGRATIONS), join(folder, name));
  writeFileSync(join(folder, `${String(NEWEST_VERSION + 1).padStart(4, '0')}-next.sql`), sql);
  return pathToFileURL(`${folder}/`);
}

async function readRows(url: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

test('if many nodes start together on an empty database, the schema is created once and all nodes work', async () => {
  const url = await createTemporaryDatabase();
  const stores = await Promise.all(
    Array.from({ length: 6 }, () => openStore(parsePostgresUrl(url), { exclusive: true })),
  );
  for (const store of stores) onTestFinished(() => store.close());
  expect(await readRows(url, 'SELECT version FROM postrider')).toEqual([{ version: NEWEST_VERSION }]);
  await stores[0]?.createAccount('default', NO_LIMITS, 1);
  const results = await Promise.all(stores.map((store) => store.accept([createMessage()])));
  expect(results.flat().map(({ kind }) => kind)).toEqual(stores.map(() => 'accepted'));
});

test('a failing migration changes nothing, and reports the failure in one line', async () => {
  const url = await createTemporaryDatabase();
  await migrate(createPoolFor(url));
  const brokenMigrations = createMigrationFolder('CREATE TABLE half (n int); CREATE TABLE account (n int);');
  await expect(migrate(createPoolFor(url), brokenMigrations)).rejects.toThrow(
    /^PostgreSQL .*relation "account" already exists\.$/,
  );
  expect(await readRows(url, "SELECT to_regclass('half') AS half, version FROM postrider")).toEqual([
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
    createPoolFor(url),
    createMigrationFolder('ALTER TABLE account ADD COLUMN more text; ALTER TABLE mail_request ADD COLUMN more text'),
  );
  expect(await readRows(url, 'SELECT version, least FROM postrider')).toEqual([
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
  await migrate(createPoolFor(url));
  await runStatement(url, `UPDATE postrider SET version = ${NEWEST_VERSION + 2}, least = ${NEWEST_VERSION + 1}`);
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

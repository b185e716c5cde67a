/** PostgreSQL for tests: empty databases on the shared server of the run, and separate servers for fault tests. */
import pg from 'pg';
import { expect, onTestFinished, vi } from 'vitest';
import { type Server, type ServerOptions, type ServerVersion, startServer } from './postgres-server.ts';
import { getTestedVersion, SHARED_SERVERS, TEMPLATE_DATABASE } from './postgres-version.ts';

export type PostgresServer = Server;

/** The content of a new database: nothing, or the migrated tables of a store without data. */
export type DatabaseContent = 'none' | 'empty-store';

interface DatabaseOptions {
  readonly version?: ServerVersion;
  /** The content of the database; the default is `none`. */
  readonly content?: DatabaseContent;
}

export async function createTemporaryDatabase(options: DatabaseOptions = {}): Promise<string> {
  const { version = getTestedVersion() } = options;
  const url = await createSharedDatabase(options);
  const { pathname } = new URL(url);
  onTestFinished(async () =>
    runStatement(await getSharedServer(version), `DROP DATABASE IF EXISTS ${pathname.slice(1)} WITH (FORCE)`),
  );
  return url;
}

const sharedUrls = new Map<ServerVersion, Promise<string>>();

export async function createSharedDatabase({
  version = getTestedVersion(),
  content = 'none',
}: DatabaseOptions = {}): Promise<string> {
  const url = new URL(await getSharedServer(version));
  const name = `test_${process.pid}_${Math.random().toString(36).slice(2, 12)}`;
  const template = content === 'none' ? '' : ` TEMPLATE ${TEMPLATE_DATABASE} STRATEGY FILE_COPY`;
  await runStatement(url.href, `CREATE DATABASE ${name}${template}`);
  url.pathname = `/${name}`;
  return url.href;
}

function getSharedServer(version: ServerVersion): Promise<string> {
  const url = sharedUrls.get(version) ?? requestSharedServer(version);
  sharedUrls.set(version, url);
  return url;
}

async function requestSharedServer(version: ServerVersion): Promise<string> {
  const address = process.env[SHARED_SERVERS[version]];
  if (address === undefined)
    throw new Error('no shared PostgreSQL server; add test/rig/postgres-setup.ts to the global setup');
  const response = await fetch(address);
  const text = await response.text();
  if (!response.ok) throw new Error(`PostgreSQL does not start: ${text}`);
  return text;
}

/** Starts a server for one test only, so that the test may stop or restart the server. */
export async function startPostgres(options: ServerOptions = {}): Promise<PostgresServer> {
  const server = await startServer({ version: getTestedVersion(), inMemory: true, ...options });
  onTestFinished(() => server.stop());
  return server;
}

export async function startStandby(primary: PostgresServer): Promise<PostgresServer> {
  const standby = await startPostgres({ standbyOf: primary });
  await primary.run("ALTER SYSTEM SET synchronous_standby_names = 'standby'");
  await primary.run('SELECT pg_reload_conf()');
  await vi.waitFor(async () => {
    const { rows } = await primary.run("SELECT sync_state FROM pg_stat_replication WHERE application_name = 'standby'");
    expect(rows).toEqual([{ sync_state: 'sync' }]);
  });
  return standby;
}

/** The connection ends with the test. */
export async function connectClient(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

export async function runStatement(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}

export async function dumpRows(url: string): Promise<string> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const tables = await client.query<{ name: string }>(
      "SELECT relname AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace",
    );
    const texts: string[] = [];
    for (const { name } of tables.rows) {
      const { rows } = await client.query<{ row: string }>(`SELECT t::text AS row FROM ${name} t`);
      texts.push(...rows.map(({ row }) => row));
    }
    return texts.join('\n');
  } finally {
    await client.end();
  }
}

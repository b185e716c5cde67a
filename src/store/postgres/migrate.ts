/**
 * The schema: numbered files that run once. All missing ones run in one transaction under an advisory lock, so that of
 * many nodes that start together one migrates and the others wait for it.
 *
 * Rolling upgrades: the database stores its schema version and the least version whose code still works with it. A node
 * refuses a schema whose least version is greater than its own. A migration that only adds does not change the least
 * version.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { StoreError } from '../error.ts';
import type { Pool } from './database.ts';
import { toStoreError } from './fault.ts';
import type { Row, Session, Statement } from './session.ts';

const MIGRATIONS_URL = new URL('./migrations/', import.meta.url);
/** An advisory lock that no other software uses ("PRDR"). */
const LOCK_ID = 0x50524452;
/** A migration of large tables, by this node or another one, may take long. */
const STATEMENT_TIMEOUT_MS = 3_600_000;

const FIND_SCHEMA: Statement = {
  name: 'schema_found',
  text: `SELECT to_regclass('postrider') IS NOT NULL AS ours,
    (SELECT count(*)::int FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p', 'v', 'm')) AS tables`,
};
const READ_VERSION: Statement = { name: 'schema_version', text: 'SELECT version, least FROM postrider' };
const ACQUIRE_LOCK: Statement = { name: 'schema_lock', text: 'SELECT pg_advisory_xact_lock($1)' };
const WRITE_VERSION: Statement = { name: 'schema_write', text: 'UPDATE postrider SET version = $1' };

/** Migrates the schema to the current version. Rejects with a StoreError of one line; then nothing has changed. */
export async function migrate(pool: Pool, folder: URL = MIGRATIONS_URL): Promise<void> {
  const files = readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .sort();
  const latestVersion = files.length;
  if ((await readVersion(pool, pool.server, latestVersion)) === latestVersion) return;
  const connection = await pool.connect(STATEMENT_TIMEOUT_MS);
  try {
    await connection.command('BEGIN');
    await connection.query(ACQUIRE_LOCK, [LOCK_ID]);
    // Read again under the lock: another node may have migrated meanwhile.
    const version = await readVersion(connection, pool.server, latestVersion);
    for (const name of files.slice(version)) await connection.command(readFileSync(new URL(name, folder), 'utf8'));
    if (version < latestVersion) await connection.query(WRITE_VERSION, [latestVersion]);
    await connection.command('COMMIT');
  } catch (error) {
    throw toStoreError(error, pool.server);
  } finally {
    await connection.close();
  }
}

/** The schema's version; 0 for an empty database. Rejects if it is not a Postrider schema or is too new. */
async function readVersion(session: Session, server: string, latestVersion: number): Promise<number> {
  const [found = {}] = await session.query(FIND_SCHEMA, []);
  if (found.ours !== true) {
    if (found.tables === 0) return 0;
    throw new StoreError(
      `${server} is not a Postrider database. Create one with \`createdb\`, and name it in POSTRIDER_DATABASE.`,
    );
  }
  const [row]: readonly (Row | undefined)[] = await session.query(READ_VERSION, []);
  const [version, minVersion] = [Number(row?.version), Number(row?.least)];
  if (minVersion > latestVersion) {
    throw new StoreError(
      `${server} has schema version ${version}, but this version of Postrider supports at most ${latestVersion}. Run the version that wrote it, or a later one.`,
    );
  }
  // A newer schema with which this code still works, during a rolling upgrade.
  return Math.min(version, latestVersion);
}

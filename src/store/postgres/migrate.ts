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

const MIGRATIONS = new URL('./migrations/', import.meta.url);
/** An advisory lock that no other software uses ("PRDR"). */
const LOCK = 0x50524452;
/** A migration of large tables, by this node or another one, may take long. */
const LIMIT_MS = 3_600_000;

const FOUND: Statement = {
  name: 'schema_found',
  text: `SELECT to_regclass('postrider') IS NOT NULL AS ours,
    (SELECT count(*)::int FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p', 'v', 'm')) AS tables`,
};
const VERSION: Statement = { name: 'schema_version', text: 'SELECT version, least FROM postrider' };
const WAIT: Statement = { name: 'schema_lock', text: 'SELECT pg_advisory_xact_lock($1)' };
const WRITE: Statement = { name: 'schema_write', text: 'UPDATE postrider SET version = $1' };

/** Migrates the schema to the current version. Rejects with a StoreError of one line; then nothing has changed. */
export async function migrate(pool: Pool, folder: URL = MIGRATIONS): Promise<void> {
  const files = readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .sort();
  const newest = files.length;
  if ((await versionOf(pool, pool.where, newest)) === newest) return;
  const connection = await pool.connect(LIMIT_MS);
  try {
    await connection.command('BEGIN');
    await connection.query(WAIT, [LOCK]);
    // Read again under the lock: another node may have migrated meanwhile.
    const version = await versionOf(connection, pool.where, newest);
    for (const name of files.slice(version)) await connection.command(readFileSync(new URL(name, folder), 'utf8'));
    if (version < newest) await connection.query(WRITE, [newest]);
    await connection.command('COMMIT');
  } catch (error) {
    throw toStoreError(error, pool.where);
  } finally {
    await connection.close();
  }
}

/** The schema's version; 0 for an empty database. Rejects if it is not a Postrider schema or is too new. */
async function versionOf(session: Session, where: string, newest: number): Promise<number> {
  const [found = {}] = await session.query(FOUND, []);
  if (found.ours !== true) {
    if (found.tables === 0) return 0;
    throw new StoreError(
      `${where} is not a Postrider database. Create one with \`createdb\`, and name it in POSTRIDER_DATABASE.`,
    );
  }
  const [row]: readonly (Row | undefined)[] = await session.query(VERSION, []);
  const [version, least] = [Number(row?.version), Number(row?.least)];
  if (least > newest) {
    throw new StoreError(
      `${where} has schema version ${version}, but this version of Postrider supports at most ${newest}. Run the version that wrote it, or a later one.`,
    );
  }
  // A newer schema with which this code still works, during a rolling upgrade.
  return Math.min(version, newest);
}

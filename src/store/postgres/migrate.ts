/**
 * The schema: numbered files that run once, all that are missing in one transaction, under an advisory lock, so that of
 * many nodes that start together one migrates and the others wait for it.
 *
 * Rolling upgrades: the database says which version it has and the least one whose code still works on it. A node
 * refuses a schema whose least version is beyond its own; a migration that only adds leaves the least one as it is.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { StoreError } from '../error.ts';
import type { Pool } from './database.ts';
import { toStoreError } from './fault.ts';
import type { Row, Session, Statement } from './session.ts';

const MIGRATIONS = new URL('./migrations/', import.meta.url);
/** Any number that no one else's advisory locks use ("PRDR"). */
const LOCK = 0x50524452;
/** A migration of large tables, or another node's that is waited for, may take long. */
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

/** Brings the schema up to date. Rejects with a StoreError of one line; then nothing has changed. */
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

/** The schema's version, 0 for an empty database; rejects where it is none of ours or too new. */
async function versionOf(session: Session, where: string, newest: number): Promise<number> {
  const [found = {}] = await session.query(FOUND, []);
  if (found.ours !== true) {
    if (found.tables === 0) return 0;
    throw new StoreError(
      `${where} is a database of something else, not of Postrider. Create one for it with \`createdb\`, and name it in POSTRIDER_DATABASE.`,
    );
  }
  const [row]: readonly (Row | undefined)[] = await session.query(VERSION, []);
  const [version, least] = [Number(row?.version), Number(row?.least)];
  if (least > newest) {
    throw new StoreError(
      `${where} has schema version ${version}, newer than this Postrider knows (${newest}); run the Postrider that wrote it, or a later one.`,
    );
  }
  // A newer one that this code still works on: a rolling upgrade is under way.
  return Math.min(version, newest);
}

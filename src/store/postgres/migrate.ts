/**
 * Migrates the schema: each numbered file is executed once, all new ones in one transaction under an advisory lock, so
 * that nodes that start together migrate once. A migration that only adds tables or columns does not change the oldest
 * version that can use the schema (`least`), so nodes of two versions run side by side.
 */
import { readFileSync } from 'node:fs';
import pg from 'pg';
import { StoreError } from '../error.ts';
import { createOldStoreText, listSchemaFiles, SCHEMA_FOLDER } from '../schema.ts';
import { beginTransaction, type Pool } from './database.ts';
import { ConfigurationFault, toStoreError } from './fault.ts';
import type { Row, Session } from './session.ts';

/** The key of the advisory lock of migrations ("PRDR"). No other software uses this key. */
const LOCK_ID = 0x50524452;
/** A migration of large tables, by this node or by another node, may take a long time. */
const STATEMENT_TIMEOUT_MS = 3_600_000;

const FIND_SCHEMA = `SELECT to_regclass('installation') IS NOT NULL AS ours, to_regclass('postrider') IS NOT NULL AS old,
    CASE WHEN current_schema() IS NOT NULL THEN 'usable' WHEN to_regnamespace($1::text) IS NULL THEN 'missing' ELSE 'denied' END AS state,
    (SELECT count(*)::int FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p', 'v', 'm')) AS tables`;
const READ_VERSION = 'SELECT version, least FROM installation';
const ACQUIRE_LOCK = 'SELECT pg_advisory_xact_lock($1)';
const WRITE_VERSION = 'UPDATE installation SET version = $1';

/** Also creates the configured schema. */
export async function migrate(pool: Pool, folder: URL = SCHEMA_FOLDER): Promise<void> {
  const files = listSchemaFiles(folder, 'postgres');
  const latestVersion = files.length;
  const { schema } = pool.setting;
  if ((await readSchema(pool, pool, latestVersion)).version === latestVersion) return;
  const connection = await pool.connect(STATEMENT_TIMEOUT_MS);
  try {
    await requireSameDatabase(pool, connection);
    await beginTransaction(connection, 'single');
    await connection.query(ACQUIRE_LOCK, [LOCK_ID]);
    // The version is read again under the lock, because another node may have migrated the schema.
    const { version, isMissing } = await readSchema(connection, pool, latestVersion);
    if (isMissing && schema !== null) await connection.run(`CREATE SCHEMA ${pg.escapeIdentifier(schema)}`);
    for (const file of files.slice(version)) await connection.run(readFileSync(file, 'utf8'));
    if (version < latestVersion) await connection.query(WRITE_VERSION, [latestVersion]);
    await connection.run('COMMIT');
  } catch (error) {
    throw toStoreError(error, pool.server);
  } finally {
    await connection.close();
  }
}

const READ_IDENTITY = `SELECT concat_ws(' ', extract(epoch FROM pg_postmaster_start_time()), d.oid, current_schema(), to_regclass('installation')::oid) AS identity
    FROM pg_database d WHERE d.datname = current_database()`;

/** Rejects if POSTRIDER_DATABASE_DIRECT leads to another database than POSTRIDER_DATABASE. */
export async function requireSameDatabase(pool: Pool, connection: Session): Promise<void> {
  if (pool.setting.direct === null) return;
  const [[one], [other]] = await Promise.all([pool.query(READ_IDENTITY), connection.query(READ_IDENTITY)]);
  if (one?.identity === other?.identity) return;
  throw new StoreError(
    `${pool.server}: POSTRIDER_DATABASE_DIRECT names another database, schema or server than POSTRIDER_DATABASE. Correct one of them.`,
  );
}

interface FoundSchema {
  readonly version: number;
  readonly isMissing: boolean;
}

/** Rejects if the database is not a Postrider database or its schema is too new. */
async function readSchema(
  session: Session,
  { server, setting: { schema } }: Pick<Pool, 'server' | 'setting'>,
  latestVersion: number,
): Promise<FoundSchema> {
  const [found = {}] = await session.query(FIND_SCHEMA, [schema === null ? null : pg.escapeIdentifier(schema)]);
  if (found.ours !== true) {
    if (found.state === 'denied')
      throw new ConfigurationFault(
        `${server}: the user lacks a permission (permission denied for schema ${schema}). Make the user the owner of the schema.`,
      );
    if (found.old === true) throw new StoreError(createOldStoreText(server));
    if (found.tables === 0) return { version: 0, isMissing: found.state === 'missing' };
    throw new StoreError(
      `${server} is not a Postrider database. Create a database with \`createdb\`, and set POSTRIDER_DATABASE to it.`,
    );
  }
  const [row]: readonly (Row | undefined)[] = await session.query(READ_VERSION);
  const [version, minVersion] = [Number(row?.version), Number(row?.least)];
  if (minVersion > latestVersion) {
    throw new StoreError(
      `${server} has schema version ${version}, but this version of Postrider supports at most ${latestVersion}. Run the version that wrote the schema, or a later version.`,
    );
  }
  // During a rolling upgrade, the schema may be newer than this version of Postrider and still be compatible with it.
  return { version: Math.min(version, latestVersion), isMissing: false };
}

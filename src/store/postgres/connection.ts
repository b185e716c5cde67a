/** One connection to a PostgreSQL server that accepts writes, with the settings on which durability depends. */
import pg from 'pg';
import type { PostgresSetting } from '../../config/settings.ts';
import type { HostPort } from '../../model/listen-address.ts';
import { StoreError } from '../error.ts';
import { encodeValues } from './binary-array.ts';
import * as fault from './fault.ts';
import { buildTransactionPrologue, listRequiredSettings, type ServerSetting } from './server-settings.ts';
import { type Row, type Session, toStatement } from './session.ts';

const MIN_SERVER_VERSION = 150_000;
/** The only warning of this server function states that the wait for the standby was cancelled (syncrep.c). */
const STANDBY_WAIT_FUNCTION = 'SyncRepWaitForLSN';
/** Large enough that connections of several nodes rarely share a counter slot. */
const SLOT_COUNT = 64;
/**
 * An SQL expression that identifies the write history of the server: the cluster, its timeline (which a promotion
 * changes), and its start time. A transaction id is unique only within one write history.
 */
export const WRITE_HISTORY = `(SELECT system_identifier::text FROM pg_control_system()) || ' '
  || left(pg_walfile_name(pg_current_wal_lsn()), 8) || ' ' || pg_postmaster_start_time()`;

interface PrepareOptions {
  readonly setting: PostgresSetting;
  /** Those of the URL. */
  readonly settings: readonly ServerSetting[];
  readonly statementTimeoutMs: number;
  /** A connection of an earlier generation is not used again. */
  readonly generation: number;
}

export type Connection = Awaited<ReturnType<typeof prepareConnection>>;

/** Returns the hosts and the database for error messages. */
export function describeServer(hosts: readonly HostPort[], database: string): string {
  return `PostgreSQL ${hosts.map(({ host, port }) => `${host}:${port}`).join(',')}/${database}`;
}

/** Rejects with a StoreError if the server is too old, does not accept writes or does not apply a setting. */
export async function prepareConnection(
  client: pg.Client,
  { setting: { database, pooler, schema, tracksStatements }, settings, statementTimeoutMs, generation }: PrepareOptions,
) {
  const server = describeServer([client], database);
  const [, { rows }, history] = await Promise.all([
    pooler === null ? setParameter(client, server, listRequiredSettings(statementTimeoutMs, 0)[0]) : null,
    client.query<Record<string, unknown>>(
      "SELECT current_setting('server_version_num')::int AS version, pg_is_in_recovery() AS recovering, pg_backend_pid() AS pid",
    ),
    // Some managed servers do not permit this query.
    client.query<{ history: string }>(`SELECT ${WRITE_HISTORY} AS history`).catch(() => null),
  ]);
  const [version, pid] = [Number(rows[0]?.version), Number(rows[0]?.pid)];
  if (version < MIN_SERVER_VERSION) {
    throw new StoreError(
      `PostgreSQL ${Math.floor(version / 10_000)} at ${client.host} is too old; Postrider needs 15 or later.`,
    );
  }
  if (rows[0]?.recovering === true) throw new StoreError(`${server}: ${fault.READ_ONLY_REPLICA}`);
  const required = listRequiredSettings(statementTimeoutMs, version);
  if (pooler === null) {
    const searchPath = schema === null ? [] : [['search_path', pg.escapeIdentifier(schema)] as const];
    await applySettings(client, server, [...settings, ...searchPath, ...required]);
  }
  // A pooler sends a number of its own instead of the process id of the server connection.
  const processId = Number(Reflect.get(client, 'processID') ?? pid);
  const usesStatementNames = pooler === null || tracksStatements;
  // A pooler that tracks prepared statements prepares equal texts once per server connection, for all clients.
  const textSuffix = tracksStatements && generation > 0 ? ` /* ${generation} */` : '';
  let cancelledWaitCount = 0;
  client.on('notice', ({ routine }) => {
    if (routine === STANDBY_WAIT_FUNCTION) cancelledWaitCount += 1;
  });
  // The warning about a statement arrives before the statement completes. Other statements in progress are rejected as
  // well, so that a message that may be lost is never reported as stored.
  const checkReplication = async <T>(statement: Promise<T>): Promise<T> => {
    const cancelledWaitCountBefore = cancelledWaitCount;
    const answer = await statement;
    if (cancelledWaitCount !== cancelledWaitCountBefore) throw new fault.UnknownCommitResult(server);
    return answer;
  };
  return {
    client,
    dialect: 'postgres' as const,
    server,
    slot: Math.abs(processId) % SLOT_COUNT,
    /** Behind a pooler in transaction mode, the process id of the last transaction; 0 until it has begun. */
    pid,
    isPooled: processId !== pid,
    history: history?.rows[0]?.history ?? null,
    generation,
    prologue: pooler === null ? null : buildTransactionPrologue(required, schema),
    async query(...[sql, values = []]: Parameters<Session['query']>): Promise<readonly Row[]> {
      const statement = toStatement(sql);
      const text = statement.text + textSuffix;
      const name = usesStatementNames ? statement.name : '';
      try {
        const answer = client.query<Record<string, unknown>>({ name, text, values: encodeValues(statement, values) });
        return (await checkReplication(answer)).rows;
      } catch (error) {
        if (!tracksStatements || !fault.UNTRACKED_CODES.includes(fault.getErrorCode(error))) throw error;
        throw new fault.ConfigurationFault(`${server}: ${fault.UNTRACKED_STATEMENTS}`);
      }
    },
    /** Resolves to the rows and the command tag, such as `COMMIT`, of the last of several statements. */
    async run(text: string): Promise<{ readonly command: string; readonly rows: readonly Row[] }> {
      const results = [await checkReplication(client.query<Record<string, unknown>>(text))].flat();
      return results.at(-1) ?? { command: '', rows: [] };
    },
    release(isUsable: boolean): void {
      if (!isUsable) client.connection.stream.destroy();
      (client as pg.PoolClient).release(!isUsable);
    },
  };
}

/** Applies the settings and reads them back, in one round trip. If a setting is given twice, the last value applies. */
async function applySettings(client: pg.Client, server: string, settings: readonly ServerSetting[]): Promise<void> {
  const lastSettings = [...new Map(settings.map(([name, value]) => [name.toLowerCase(), value]))];
  const applied = Promise.all(lastSettings.map((setting) => setParameter(client, server, setting)));
  const columns = lastSettings.map(([name], index) => `current_setting(${pg.escapeLiteral(name)}) AS s${index}`);
  const readBack = client.query<Record<string, unknown>>(
    `SELECT current_setting('transaction_read_only') AS read_only, ${columns.join(', ')}`,
  );
  const [values, { rows }] = await Promise.all([applied, readBack]);
  if (rows[0]?.read_only === 'on') throw new StoreError(`${server}: ${fault.READ_ONLY_DEFAULT}`);
  for (const [index, [name]] of lastSettings.entries()) {
    const [value, actual] = [values[index], rows[0]?.[`s${index}`]];
    if (value === actual) continue;
    throw new StoreError(
      `${server}: the server does not apply ${name}=${value} (its value is ${actual}). ${fault.SESSION_POOLING}`,
    );
  }
}

/** Sets a parameter of the session. Resolves to its value in the form of `current_setting`. */
async function setParameter(client: pg.Client, server: string, [name, value]: ServerSetting): Promise<unknown> {
  const parameters = `${pg.escapeLiteral(name)}, ${pg.escapeLiteral(value)}, false`;
  try {
    return (await client.query<{ value: string }>(`SELECT set_config(${parameters}) AS value`)).rows[0]?.value;
  } catch (error) {
    if (fault.endsConnection(error) || fault.getErrorCode(error) === '42704') throw error;
    throw new StoreError(
      `${server}: the server refuses a setting of options= in POSTRIDER_DATABASE (${fault.getDetail(error)}). Correct it.`,
    );
  }
}

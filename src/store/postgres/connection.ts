/**
 * One connection to PostgreSQL: the first host of the setting that takes writes, statements in libpq's pipeline mode, each
 * with a time limit after which the connection is destroyed, so that a path broken in silence holds nothing up for ever.
 */
import pg from 'pg';
import type { DatabaseSetting, HostPort } from '../../config/settings.ts';
import { StoreError } from '../store.ts';
import { explained, readOnly } from './fault.ts';
import type { Row, Session, Statement } from './session.ts';

export type PostgresSetting = Extract<DatabaseSetting, { kind: 'postgres' }>;

/** Server versions before this lack what the schema uses. */
const OLDEST_SERVER = 150_000;
/** How long one host may take until it is known to take writes; less where there is another one to try. */
const CONNECT_MS = 5_000;
const CONNECT_NEXT_MS = 2_000;
/** A statement that has no answer by then is given up, on the server a little earlier than here. */
const STATEMENT_MS = 15_000;
const KEEPALIVE_MS = 10_000;
/** How long a polite end may take on a path that may be broken. */
const CLOSE_MS = 1_000;
const INT8 = 20;
const HISTORY = `SELECT (SELECT system_identifier::text FROM pg_control_system()) || ' '
  || left(pg_walfile_name(pg_current_wal_lsn()), 8) || ' ' || pg_postmaster_start_time() AS history`;
/** Slots of counters: enough that the connections of some nodes seldom meet in one. */
const SLOTS = 64;

export interface Connection extends Session {
  /** Small number that differs for connections open at the same time, mostly. */
  readonly slot: number;
  /** The server's number for this connection. */
  readonly pid: number;
  readonly host: HostPort;
  /**
   * The history that the server writes: the cluster, its timeline, which a promotion changes, and its start. A transaction number means
   * the same transaction only within one. Null where the server does not tell.
   */
  readonly history: string | null;
  /** Resolves, and never rejects, once the connection is of no more use. */
  readonly ended: Promise<void>;
  /** Runs a statement and gives the server's word for what it did, such as `COMMIT`. */
  command(text: string): Promise<string>;
  onNotification(heard: (channel: string, payload: string) => void): void;
  /** Ends it at once. */
  destroy(): void;
  close(): Promise<void>;
}

export interface ConnectOptions {
  readonly setting: PostgresSetting;
  /** Shown by the server. */
  readonly application: string;
  /** Of one statement, in ms. */
  readonly limitMs?: number;
  /** The host to try first. */
  readonly first?: HostPort | null;
}

/** Connects to the first host that takes writes. Rejects with its fault, or the faults of all hosts as an AggregateError. */
export async function connect(options: ConnectOptions): Promise<Connection> {
  const { setting, first = null } = options;
  const hosts = first === null ? setting.hosts : [first, ...setting.hosts.filter((host) => host !== first)];
  const faults: unknown[] = [];
  for (const host of hosts) {
    for (const tls of setting.tls === 'preferred' ? (['required', 'never'] as const) : [setting.tls]) {
      try {
        return await connectTo(options, host, tls);
      } catch (error) {
        // Only a server without TLS is asked without: whatever else went wrong goes wrong again.
        if (tls === 'required' && setting.tls === 'preferred' && isWithoutTls(error)) continue;
        faults.push(hosts.length === 1 ? error : explained(error, whereOf([host], setting.database)));
        break;
      }
    }
  }
  throw faults.length === 1 ? faults[0] : new AggregateError(faults);
}

/** Hosts and database as people know them. */
export function whereOf(hosts: readonly HostPort[], database: string): string {
  return `PostgreSQL ${hosts.map(({ host, port }) => `${host}:${port}`).join(',')}/${database}`;
}

function isWithoutTls(error: unknown): boolean {
  return error instanceof Error && error.message.includes('does not support SSL');
}

async function connectTo(
  { setting, application, limitMs = STATEMENT_MS }: ConnectOptions,
  host: HostPort,
  tls: 'never' | 'required' | 'verified',
): Promise<Connection> {
  const { user, password, database, options, hosts } = setting;
  const client = new pg.Client({
    host: host.host,
    port: host.port,
    user,
    database,
    ...(password === null ? {} : { password }),
    ssl: tls === 'never' ? false : { rejectUnauthorized: tls === 'verified' },
    application_name: application,
    query_timeout: limitMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEPALIVE_MS,
    pipeline: true,
    options: [
      options ?? '',
      `-c synchronous_commit=on -c statement_timeout=${limitMs - 1_000} -c idle_in_transaction_session_timeout=${limitMs}`,
      // Rows are asked for by their keys; a plan made for no particular value finds them, and is made once.
      '-c plan_cache_mode=force_generic_plan -c jit=off -c client_min_messages=error',
    ]
      .join(' ')
      .trim(),
    types: { getTypeParser: ((oid: number, format: 'text' | 'binary') => parserOf(oid, format)) as never },
  });
  const ended = Promise.withResolvers<void>();
  client.on('error', () => ended.resolve());
  client.on('end', () => ended.resolve());
  const limit = setTimeout(
    () => client.connection.stream.destroy(new Timeout()),
    hosts.length > 1 ? CONNECT_NEXT_MS : CONNECT_MS,
  );
  try {
    await client.connect();
    const asked = client.query(
      "SELECT current_setting('server_version_num')::int AS version, current_setting('transaction_read_only') AS read_only, pg_backend_pid() AS pid",
    );
    // Some managed servers may not tell.
    const told = client.query(HISTORY).catch(() => ({ rows: [{ history: null }] }));
    const row = (await asked).rows[0] as { version: number; read_only: string; pid: number };
    const { history } = (await told).rows[0] as { history: string | null };
    if (row.version < OLDEST_SERVER) {
      throw new StoreError(
        `PostgreSQL ${Math.floor(row.version / 10_000)} at ${host.host} is too old; Postrider needs 15 or later.`,
      );
    }
    // A server in recovery says so too.
    if (row.read_only === 'on') throw new StoreError(readOnly(whereOf([host], database)));
    return wrap(client, ended.promise, { slot: row.pid % SLOTS, pid: row.pid, host, history });
  } catch (error) {
    client.connection.stream.destroy();
    throw error;
  } finally {
    clearTimeout(limit);
  }
}

/** The host has said nothing in time. */
class Timeout extends Error {
  readonly code = 'ETIMEDOUT';
  override readonly message = 'it does not answer in time';
}

function parserOf(oid: number, format: 'text' | 'binary') {
  return oid === INT8 ? Number : pg.types.getTypeParser(oid, format);
}

function wrap(
  client: pg.Client,
  ended: Promise<void>,
  known: Pick<Connection, 'slot' | 'pid' | 'host' | 'history'>,
): Connection {
  return {
    ...known,
    ended,
    async query({ name, text }: Statement, values): Promise<readonly Row[]> {
      return (await client.query({ name, text, values: [...values] })).rows as Row[];
    },
    async command(text) {
      return (await client.query(text)).command;
    },
    onNotification(heard) {
      client.on('notification', ({ channel, payload }) => heard(channel, payload ?? ''));
    },
    destroy() {
      client.connection.stream.destroy();
    },
    async close() {
      const limit = setTimeout(() => client.connection.stream.destroy(), CLOSE_MS);
      await client.end().catch(() => undefined);
      clearTimeout(limit);
    },
  };
}

/**
 * One connection to PostgreSQL: to the first configured host that accepts writes. Statements use libpq's pipeline mode.
 * Each has a time limit after which the connection is destroyed, so that a broken network path blocks nothing
 * permanently.
 *
 * Array parameters are sent in PostgreSQL's binary form (array_send in src/backend/utils/adt/arrayfuncs.c): the server
 * then parses no text, which saves a fifth of its processor time per batch (docs/decisions/hot-path.md). A statement
 * declares the type of each array parameter by a cast (`$1::uuid[]`). A value that does not fit the type is sent as
 * text, so that the server refuses it as usual.
 */
import pg from 'pg';
import type { DatabaseSetting, HostPort } from '../../config/settings.ts';
import { StoreError } from '../error.ts';
import {
  defaultReadOnlyText,
  errorCode,
  isServerError,
  oneLine,
  readOnlyReplicaText,
  toStoreError,
  UnknownCommitResult,
} from './fault.ts';
import {
  parseOptions,
  type RequiredSettings,
  requiredSettings,
  type ServerSetting,
  STATEMENT_TIMEOUT,
  VERSION_17_SETTINGS,
} from './server-settings.ts';
import type { Row, Session, Statement } from './session.ts';

export type PostgresSetting = Extract<DatabaseSetting, { kind: 'postgres' }>;

/** Older servers lack features that the schema uses. */
const MIN_SERVER_VERSION = 150_000;
/**
 * Time limit for connecting to one host and verifying that it accepts writes. The limit is shorter if another host
 * follows.
 */
const CONNECT_MS = 5_000;
const CONNECT_NEXT_MS = 2_000;
/** Time limit of one statement. The server's own limit is slightly shorter. */
const STATEMENT_MS = 15_000;
const KEEPALIVE_MS = 10_000;
/** Time limit for closing a connection gracefully; the network path may be broken. */
const CLOSE_MS = 1_000;
/**
 * The server function that waits for the synchronous standby. Warnings name it in every language. Its only warning is
 * that the wait was cancelled (syncrep.c).
 */
const STANDBY_WAIT = 'SyncRepWaitForLSN';
const INT8 = 20;
const HISTORY = `SELECT (SELECT system_identifier::text FROM pg_control_system()) || ' '
  || left(pg_walfile_name(pg_current_wal_lsn()), 8) || ' ' || pg_postmaster_start_time() AS history`;
/** Number of counter slots: large enough that connections of several nodes rarely share one. */
const SLOTS = 64;

export interface Connection extends Session {
  /** A small number that differs for most connections open at the same time. */
  readonly slot: number;
  /** The process id of the server connection. */
  readonly pid: number;
  readonly host: HostPort;
  /**
   * The server's write history: the cluster, its timeline (changed by a promotion), and its start time. A transaction
   * id is unique only within one history. Null if the server does not report it.
   */
  readonly history: string | null;
  /** Resolves, and never rejects, when the connection can no longer be used. */
  readonly ended: Promise<void>;
  /**
   * Runs a statement and resolves to the server's command tag, such as `COMMIT`. Rejects with UnknownCommitResult if
   * the wait for the synchronous standby was cancelled, as `query` does.
   */
  command(text: string): Promise<string>;
  onNotification(heard: (channel: string, payload: string) => void): void;
  /** Ends the connection at once. */
  destroy(): void;
  close(): Promise<void>;
}

export interface ConnectOptions {
  readonly setting: PostgresSetting;
  /** The name that the server shows. */
  readonly application: string;
  /** Time limit of one statement, in ms. */
  readonly limitMs?: number;
  /** The host to try first. */
  readonly first?: HostPort | null;
}

/**
 * Connects to the first host that accepts writes. Rejects with its fault, or with an AggregateError of the faults of
 * all hosts.
 */
export async function connect(options: ConnectOptions): Promise<Connection> {
  const { setting, first = null } = options;
  const hosts = first === null ? setting.hosts : [first, ...setting.hosts.filter((host) => host !== first)];
  const faults: unknown[] = [];
  for (const host of hosts) {
    for (const tls of setting.tls === 'preferred' ? (['required', 'never'] as const) : [setting.tls]) {
      try {
        return await connectTo(options, host, tls);
      } catch (error) {
        // Only a server without TLS is tried again without TLS. Any other fault would recur.
        if (tls === 'required' && setting.tls === 'preferred' && isWithoutTls(error)) continue;
        faults.push(hosts.length === 1 ? error : toStoreError(error, describeServer([host], setting.database)));
        break;
      }
    }
  }
  throw faults.length === 1 ? faults[0] : new AggregateError(faults);
}

/** Hosts and database for error messages. */
export function describeServer(hosts: readonly HostPort[], database: string): string {
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
  const { user, password, database, hosts } = setting;
  const { settings, atStart } = parseOptions(setting.options ?? '');
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
    types: { getTypeParser: ((oid: number, format: 'text' | 'binary') => parserOf(oid, format)) as never },
  });
  // Otherwise the driver would use PGOPTIONS of the environment.
  startOf(client).options = atStart;
  const ended = Promise.withResolvers<void>();
  client.on('error', () => ended.resolve());
  client.on('end', () => ended.resolve());
  const limit = setTimeout(
    () => client.connection.stream.destroy(new Timeout()),
    hosts.length > 1 ? CONNECT_NEXT_MS : CONNECT_MS,
  );
  try {
    await client.connect();
    const known = await setUp(client, { given: settings, own: requiredSettings(limitMs), host, database });
    return wrap(client, ended.promise, describeServer([host], database), { slot: known.pid % SLOTS, host, ...known });
  } catch (error) {
    client.connection.stream.destroy();
    throw error;
  } finally {
    clearTimeout(limit);
  }
}

interface SetUp {
  readonly given: readonly ServerSetting[];
  readonly own: RequiredSettings;
  readonly host: HostPort;
  readonly database: string;
}

/**
 * Applies Postrider's own settings and the operator's other ones, and reads all of them back, in one round trip.
 * Rejects with a StoreError if the server does not apply one, is too old, or accepts no writes.
 */
async function setUp(
  client: pg.Client,
  { given, own, host, database }: SetUp,
): Promise<Pick<Connection, 'pid' | 'history'>> {
  const where = describeServer([host], database);
  const literal = (text: string) => client.escapeLiteral(text);
  const names = new Set(own.map(([name]) => name));
  // If a setting is given twice, the last value counts.
  const last = new Map(given.map(({ name, value }) => [name.toLowerCase(), { name, value }]));
  const others = [...last.values()].filter(({ name }) => !names.has(name.toLowerCase()));
  const setOthers = others.map(
    ({ name, value }, at) => `set_config(${literal(name)}, ${literal(value)}, false) AS o${at}`,
  );
  // Separate statements: a statement timeout of a few milliseconds applies to each of them alone.
  const setOwn = own
    .toSorted(([one], [other]) => Number(other === STATEMENT_TIMEOUT) - Number(one === STATEMENT_TIMEOUT))
    .map(([name, value]) => `SET ${name} = ${literal(String(value))}`);
  const setNewer = VERSION_17_SETTINGS.map(
    ([name, value]) =>
      `SELECT set_config('${name}', '${value}', false) WHERE current_setting('${name}', true) IS NOT NULL`,
  );
  const columns = [
    "current_setting('server_version_num')::int AS version",
    "current_setting('transaction_read_only') AS read_only",
    'pg_is_in_recovery() AS recovering',
    'pg_backend_pid() AS pid',
    ...others.map(({ name }, at) => `current_setting(${literal(name)}) AS o${at}`),
    ...VERSION_17_SETTINGS.map(
      ([name, value], at) => `coalesce(current_setting('${name}', true), '${value}') AS n${at}`,
    ),
    ...own.map(([name, value], at) =>
      typeof value === 'string'
        ? `current_setting('${name}') AS s${at}`
        : `(extract(epoch FROM current_setting('${name}')::interval) * 1000)::bigint::text AS s${at}`,
    ),
  ];
  const [done, set, read, historyResult] = await Promise.allSettled([
    Promise.all([...setOwn, ...setNewer].map((statement) => client.query(statement))),
    others.length === 0 ? null : client.query<Record<string, unknown>>(`SELECT ${setOthers.join(', ')}`),
    client.query<Record<string, unknown>>(`SELECT ${columns.join(', ')}`),
    client.query<{ history: string }>(HISTORY),
  ]);
  const row: Row = (read.status === 'fulfilled' ? read.value.rows[0] : undefined) ?? {};
  const version = Number(row.version ?? MIN_SERVER_VERSION);
  if (version < MIN_SERVER_VERSION) {
    throw new StoreError(
      `PostgreSQL ${Math.floor(version / 10_000)} at ${host.host} is too old; Postrider needs 15 or later.`,
    );
  }
  if (set.status === 'rejected') throw refusedSetting(set.reason, where);
  if (done.status === 'rejected') throw done.reason;
  if (read.status === 'rejected') throw read.reason;
  if (row.recovering === true) throw new StoreError(readOnlyReplicaText(where));
  if (row.read_only === 'on') throw new StoreError(defaultReadOnlyText(where));
  const expected = set.value?.rows[0] ?? {};
  for (const [name, value, has] of [
    ...own.map(([name, value], at) => [name, String(value), row[`s${at}`]]),
    ...VERSION_17_SETTINGS.map(([name, value], at) => [name, value, row[`n${at}`]]),
    ...others.map(({ name }, at) => [name, expected[`o${at}`], row[`o${at}`]]),
  ]) {
    if (value === has) continue;
    throw new StoreError(
      `${where}: the server does not apply ${name}=${value} (it has ${has}). A connection pooler must keep sessions (PgBouncer: pool_mode = session).`,
    );
  }
  // Some managed servers do not permit this query.
  const history = historyResult.status === 'fulfilled' ? (historyResult.value.rows[0]?.history ?? null) : null;
  return { pid: Number(row.pid), history };
}

/** Maps the server's refusal of an operator's setting. */
function refusedSetting(error: unknown, where: string): unknown {
  if (!isServerError(error) || errorCode(error) === '42704') return error;
  const said = error instanceof Error ? oneLine(error.message) : '';
  return new StoreError(
    `${where}: the server refuses a setting of options= in POSTRIDER_DATABASE (${said}). Correct it.`,
  );
}

/** The startup parameters, which the driver's types omit. */
function startOf(client: pg.Client): { options?: string } {
  return (client as unknown as { connectionParameters: { options?: string } }).connectionParameters;
}

/** The host did not answer in time. */
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
  where: string,
  info: Pick<Connection, 'slot' | 'pid' | 'host' | 'history'>,
): Connection {
  let cancelledWaits = 0;
  client.on('notice', ({ routine }) => {
    if (routine === STANDBY_WAIT) cancelledWaits += 1;
  });
  // The warning arrives before the end of its own statement. Statements sent after it are rejected too; this never
  // reports a lost message as stored.
  const replicated = async <T>(statement: Promise<T>): Promise<T> => {
    const before = cancelledWaits;
    const answer = await statement;
    if (cancelledWaits !== before) throw new UnknownCommitResult(where);
    return answer;
  };
  return {
    ...info,
    ended,
    async query(statement, values): Promise<readonly Row[]> {
      const { name, text } = statement;
      return (await replicated(client.query({ name, text, values: encoded(statement, values) }))).rows as Row[];
    },
    async command(text) {
      return (await replicated(client.query(text))).command;
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

type Element = 'uuid' | 'text' | 'int' | 'bigint';

/** Type OIDs in pg_type. */
const OID: Readonly<Record<Element, number>> = { uuid: 2950, text: 25, int: 23, bigint: 20 };
/** The header: dimensions, null flag, element type, length and lower bound of the one dimension. */
const HEAD_BYTES = 20;
const LENGTH_BYTES = 4;
const NULL_LENGTH = -1;
const CAST = /\$(\d{1,3})::(uuid|text|int|bigint)\[\]/g;

/** Per statement: the element type of each array parameter. */
const TYPES = new WeakMap<Statement, readonly (Element | undefined)[]>();

/** The values of `statement` as the driver sends them. It sends Buffers in binary form. */
function encoded(statement: Statement, values: readonly unknown[]): unknown[] {
  let types = TYPES.get(statement);
  if (types === undefined) {
    types = typesOf(statement.text);
    TYPES.set(statement, types);
  }
  const sent = new Array<unknown>(values.length);
  for (let at = 0; at < values.length; at += 1) {
    const value = values[at];
    const type = types[at];
    sent[at] = type !== undefined && Array.isArray(value) ? (encodeArray(type, value) ?? value) : value;
  }
  return sent;
}

function typesOf(text: string): readonly (Element | undefined)[] {
  const types: (Element | undefined)[] = [];
  for (const [, number, type] of text.matchAll(CAST)) types[Number(number) - 1] = type as Element;
  return types;
}

/** The array in binary form, or null if an element does not fit the type. */
export function encodeArray(type: Element, values: readonly unknown[]): Buffer | null {
  const bytes = sizeOf(type, values);
  if (bytes === null) return null;
  const array = Buffer.allocUnsafe(bytes);
  array.writeInt32BE(values.length === 0 ? 0 : 1, 0);
  array.writeInt32BE(values.includes(null) ? 1 : 0, 4);
  array.writeInt32BE(OID[type], 8);
  if (values.length === 0) return array;
  array.writeInt32BE(values.length, 12);
  array.writeInt32BE(1, 16);
  let at = HEAD_BYTES;
  for (const value of values) {
    if (value === null) at = array.writeInt32BE(NULL_LENGTH, at);
    else if (typeof value === 'number') at = writeNumber(array, at, type, value);
    else if (typeof value === 'string' && type === 'text') {
      const length = array.write(value, at + LENGTH_BYTES);
      array.writeInt32BE(length, at);
      at += LENGTH_BYTES + length;
    } else if (typeof value === 'string') {
      const hex = value.length === 36 ? value.replaceAll('-', '') : value;
      if (hex.length !== 32 || array.write(hex, at + LENGTH_BYTES, 'hex') !== 16) return null;
      array.writeInt32BE(16, at);
      at += LENGTH_BYTES + 16;
    }
  }
  return array;
}

/** The size of the whole array in bytes, or null if an element does not fit the type. */
function sizeOf(type: Element, values: readonly unknown[]): number | null {
  if (values.length === 0) return HEAD_BYTES - 8;
  let bytes = HEAD_BYTES + LENGTH_BYTES * values.length;
  for (const value of values) {
    if (value === null) continue;
    switch (type) {
      case 'text':
        if (typeof value !== 'string') return null;
        bytes += Buffer.byteLength(value);
        break;
      case 'uuid':
        if (typeof value !== 'string') return null;
        bytes += 16;
        break;
      case 'int':
        if (typeof value !== 'number' || (value | 0) !== value) return null;
        bytes += 4;
        break;
      case 'bigint':
        if (typeof value !== 'number' || !Number.isSafeInteger(value)) return null;
        bytes += 8;
        break;
    }
  }
  return bytes;
}

function writeNumber(array: Buffer, at: number, type: Element, value: number): number {
  if (type === 'int') return array.writeInt32BE(value, array.writeInt32BE(4, at));
  const high = Math.floor(value / 2 ** 32);
  return array.writeUInt32BE(value - high * 2 ** 32, array.writeInt32BE(high, array.writeInt32BE(8, at)));
}

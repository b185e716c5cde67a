/**
 * Opens one connection to PostgreSQL, to the first configured host that accepts writes. Statements use the pipeline
 * mode of libpq. Each statement has a time limit after which the connection is destroyed, so that a broken network path
 * cannot block a call permanently.
 *
 * Array parameters are sent in PostgreSQL's binary format (array_send in src/backend/utils/adt/arrayfuncs.c). The
 * server then does not parse text. This saves a fifth of the processor time of the server per batch
 * (docs/decisions/hot-path.md). A cast in the statement declares the type of each array parameter (`$1::uuid[]`). An
 * array with a value that does not fit the type is sent as text, and the server reports the error.
 */

import pg from 'pg';
import type { PostgresSetting } from '../../config/settings.ts';
import type { HostPort } from '../../model/listen-address.ts';
import { StoreError } from '../error.ts';
import {
  ConfigurationFault,
  describeReadOnlyDefault,
  describeReadOnlyReplica,
  describeUntrackedStatements,
  getErrorCode,
  isServerError,
  isUntrackedStatement,
  toOneLine,
  toStoreError,
  UnknownCommitResult,
} from './fault.ts';
import {
  buildTransactionPrologue,
  getRequiredSettings,
  parseOptions,
  type RequiredSettings,
  type ServerSetting,
  STATEMENT_TIMEOUT_SETTING,
  toSearchPath,
  VERSION_17_SETTINGS,
} from './server-settings.ts';
import { type Row, type Session, type Statement, toStatement } from './session.ts';
import { readTlsOptions } from './tls.ts';

/** The oldest supported version of the server. Older servers lack features that the schema uses. */
const MIN_SERVER_VERSION = 150_000;
/**
 * Time limit for connecting to one host and verifying that it accepts writes. The limit is shorter if several hosts are
 * configured.
 */
const CONNECT_TIMEOUT_MS = 5_000;
const MULTI_HOST_CONNECT_TIMEOUT_MS = 2_000;
/** Time limit of one statement. The statement timeout of the server is one second shorter. */
const DEFAULT_STATEMENT_TIMEOUT_MS = 15_000;
const KEEPALIVE_DELAY_MS = 10_000;
/** Time limit for closing a connection gracefully. The close does not complete if the network path is broken. */
const CLOSE_TIMEOUT_MS = 1_000;
/**
 * The server function that waits for the synchronous standby. Its only warning states that the wait was cancelled
 * (syncrep.c). The warning contains the name of the function, whatever the language of the server's messages is.
 */
const STANDBY_WAIT_FUNCTION = 'SyncRepWaitForLSN';
const INT8_OID = 20;
/** The SQLSTATE with which PgBouncer refuses a startup parameter. */
const PROTOCOL_VIOLATION = '08P01';
/** An SQL expression that identifies the write history of the server. */
export const WRITE_HISTORY = `(SELECT system_identifier::text FROM pg_control_system()) || ' '
  || left(pg_walfile_name(pg_current_wal_lsn()), 8) || ' ' || pg_postmaster_start_time()`;
const WRITE_HISTORY_QUERY = `SELECT ${WRITE_HISTORY} AS history`;
/** Number of counter slots. It is large enough that connections of several nodes rarely share a slot. */
const SLOT_COUNT = 64;

export interface Connection extends Session {
  /** The number of the counter slot. Most connections that are open at the same time have different slots. */
  readonly slot: number;
  /**
   * The process id of the server connection. Behind a pooler in transaction mode, each transaction may have a different
   * process id.
   */
  readonly pid: number;
  /** True if a connection pooler between this process and the server answers in place of the server. */
  readonly isPooled: boolean;
  /**
   * The statements that begin a transaction with its settings (`buildTransactionPrologue`) behind a pooler in
   * transaction mode; otherwise null. Behind such a pooler, statements are prepared under a name only with
   * `prepared=yes`.
   */
  readonly prologue: string | null;
  /** `planGeneration` of ConnectOptions. */
  readonly planGeneration: number;
  readonly host: HostPort;
  /**
   * Identifies the write history of the server: the cluster, its timeline (which a promotion changes), and its start
   * time. A transaction id is unique only within one write history. Null if the server does not report it.
   */
  readonly history: string | null;
  /** Resolves when the connection can no longer be used. Never rejects. */
  readonly whenEnded: Promise<void>;
  /**
   * Runs a statement and resolves to the server's command tag, such as `COMMIT`. Rejects with UnknownCommitResult if
   * the wait for the synchronous standby was cancelled, as `query` does.
   */
  runCommand(text: string): Promise<string>;
  /** Runs statements that are separated by semicolons, and resolves to the rows of the last statement. */
  runScript(text: string): Promise<readonly Row[]>;
  onNotification(listener: (channel: string, payload: string) => void): void;
  /** Ends the connection immediately. */
  destroy(): void;
  close(): Promise<void>;
}

export interface ConnectOptions {
  readonly setting: PostgresSetting;
  /** The application name that the server shows. */
  readonly application: string;
  /** Time limit of one statement, in ms. */
  readonly statementTimeoutMs?: number;
  /** The host to which the first connection attempt is made. */
  readonly preferredHost?: HostPort | null;
  /**
   * The generation of the connection; by default 0. Behind a pooler that tracks prepared statements, connections of
   * different generations share no prepared statement.
   */
  readonly planGeneration?: number;
}

/**
 * Connects to the first host that accepts writes. If no host does, rejects with the error of the only configured host
 * or, if several hosts are configured, with an AggregateError of their errors.
 */
export async function connectToServer(options: ConnectOptions): Promise<Connection> {
  const { setting, preferredHost = null } = options;
  const hosts =
    preferredHost === null ? setting.hosts : [preferredHost, ...setting.hosts.filter((host) => host !== preferredHost)];
  const faults: unknown[] = [];
  for (const host of hosts) {
    for (const tls of setting.tls === 'preferred' ? (['required', 'never'] as const) : [setting.tls]) {
      try {
        return await connectTo(options, host, tls);
      } catch (error) {
        // The attempt is repeated without TLS only if the server does not support TLS. Any other error would occur
        // again.
        if (tls === 'required' && setting.tls === 'preferred' && isWithoutTls(error)) continue;
        faults.push(hosts.length === 1 ? error : describeFault(error, describeServer([host], setting.database)));
        break;
      }
    }
  }
  throw faults.length === 1 ? faults[0] : new AggregateError(faults);
}

/** Returns a StoreError that names the host and keeps the error as its cause. */
function describeFault(error: unknown, server: string): StoreError {
  return new StoreError(toStoreError(error, server).message, { cause: error });
}

/** Returns the hosts and the database for error messages. */
export function describeServer(hosts: readonly HostPort[], database: string): string {
  return `PostgreSQL ${hosts.map(({ host, port }) => `${host}:${port}`).join(',')}/${database}`;
}

function isWithoutTls(error: unknown): boolean {
  return error instanceof Error && error.message.includes('does not support SSL');
}

async function connectTo(
  { setting, application, statementTimeoutMs = DEFAULT_STATEMENT_TIMEOUT_MS, planGeneration = 0 }: ConnectOptions,
  host: HostPort,
  tls: Exclude<PostgresSetting['tls'], 'preferred'>,
): Promise<Connection> {
  const { user, password, database, hosts } = setting;
  const { settings, startupOptions } = parseOptions(setting.options ?? '');
  const operatorSettings = setting.schema === null ? settings : [...settings, toSearchPath(setting.schema)];
  const client = new pg.Client({
    host: host.host,
    port: host.port,
    user,
    database,
    ...(password === null ? {} : { password }),
    ssl: tls === 'never' ? false : readTlsOptions(tls, setting.tlsFiles),
    application_name: application,
    query_timeout: statementTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEPALIVE_DELAY_MS,
    pipeline: true,
    types: { getTypeParser: ((oid: number, format: 'text' | 'binary') => getTypeParser(oid, format)) as never },
  });
  // The options are always set. Otherwise the driver would use the environment variable PGOPTIONS.
  getStartupParameters(client).options = startupOptions;
  const endSignal = Promise.withResolvers<void>();
  client.on('error', () => endSignal.resolve());
  client.on('end', () => endSignal.resolve());
  const timer = setTimeout(
    () => client.connection.stream.destroy(new ConnectTimeout()),
    hosts.length > 1 ? MULTI_HOST_CONNECT_TIMEOUT_MS : CONNECT_TIMEOUT_MS,
  );
  try {
    await client.connect();
    const requiredSettings = getRequiredSettings(statementTimeoutMs);
    const appliedSettings =
      setting.pooler === 'transaction'
        ? await readPooledServer(client, { setting, required: requiredSettings, host })
        : {
            prologue: null,
            ...(await applySettings(client, { operatorSettings, required: requiredSettings, host, database })),
          };
    // PostgreSQL sends the process id of the server connection. A pooler sends a number that the pooler has generated.
    const processId = (client as unknown as { readonly processID: number | null }).processID ?? appliedSettings.pid;
    return wrapClient(client, endSignal.promise, setting, {
      slot: Math.abs(processId) % SLOT_COUNT,
      planGeneration,
      isPooled: processId !== appliedSettings.pid,
      host,
      ...appliedSettings,
    });
  } catch (error) {
    client.connection.stream.destroy();
    // A pooler refuses the options with this code. The server reports an invalid option with a different code.
    if (startupOptions !== '' && getErrorCode(error) === PROTOCOL_VIOLATION)
      throw createRefusedOptionsFault(error, describeServer([host], database));
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

interface PooledOptions {
  readonly setting: PostgresSetting;
  readonly required: RequiredSettings;
  readonly host: HostPort;
}

/**
 * Reads the properties of the server behind a pooler in transaction mode. The settings are part of every transaction,
 * so no setting is applied to the connection. Rejects with a StoreError if the server is too old or does not accept
 * writes.
 */
async function readPooledServer(
  client: pg.Client,
  { setting: { database, schema }, required, host }: PooledOptions,
): Promise<Pick<Connection, 'pid' | 'history' | 'prologue'>> {
  const [read, historyResult] = await Promise.allSettled([
    client.query<Record<string, unknown>>(
      "SELECT current_setting('server_version_num')::int AS version, pg_is_in_recovery() AS recovering, pg_backend_pid() AS pid",
    ),
    client.query<{ history: string }>(WRITE_HISTORY_QUERY),
  ]);
  if (read.status === 'rejected') throw read.reason;
  const row: Row = read.value.rows[0] ?? {};
  const version = Number(row.version);
  requireVersion(version, host);
  if (row.recovering === true) throw new StoreError(describeReadOnlyReplica(describeServer([host], database)));
  return {
    pid: Number(row.pid),
    // Each transaction reads the history again. The history is null if the server does not permit the query.
    history: historyResult.status === 'fulfilled' ? (historyResult.value.rows[0]?.history ?? null) : null,
    prologue: buildTransactionPrologue(required, schema, version),
  };
}

function requireVersion(version: number, host: HostPort): void {
  if (version >= MIN_SERVER_VERSION) return;
  throw new StoreError(
    `PostgreSQL ${Math.floor(version / 10_000)} at ${host.host} is too old; Postrider needs 15 or later.`,
  );
}

interface ApplyOptions {
  readonly operatorSettings: readonly ServerSetting[];
  readonly required: RequiredSettings;
  readonly host: HostPort;
  readonly database: string;
}

/**
 * Applies the required settings and the operator's other settings, and reads the values of all of them, in one round
 * trip. Rejects with a StoreError if the server does not apply a setting, is too old, or does not accept writes.
 */
async function applySettings(
  client: pg.Client,
  { operatorSettings, required, host, database }: ApplyOptions,
): Promise<Pick<Connection, 'pid' | 'history'>> {
  const server = describeServer([host], database);
  const quoteLiteral = (text: string) => client.escapeLiteral(text);
  const names = new Set(required.map(([name]) => name));
  // If a setting is given twice, the last value applies.
  const lastValues = new Map(operatorSettings.map(({ name, value }) => [name.toLowerCase(), { name, value }]));
  const otherSettings = [...lastValues.values()].filter(({ name }) => !names.has(name.toLowerCase()));
  const otherSettingCalls = otherSettings.map(
    ({ name, value }, index) => `set_config(${quoteLiteral(name)}, ${quoteLiteral(value)}, false) AS o${index}`,
  );
  // The settings are separate statements, because a statement timeout of a few milliseconds then applies to each of
  // them individually.
  const requiredSettingStatements = required
    .toSorted(([a], [b]) => Number(b === STATEMENT_TIMEOUT_SETTING) - Number(a === STATEMENT_TIMEOUT_SETTING))
    .map(([name, value]) => `SET ${name} = ${quoteLiteral(String(value))}`);
  const version17Statements = VERSION_17_SETTINGS.map(
    ([name, value]) =>
      `SELECT set_config('${name}', '${value}', false) WHERE current_setting('${name}', true) IS NOT NULL`,
  );
  const columns = [
    "current_setting('server_version_num')::int AS version",
    "current_setting('transaction_read_only') AS read_only",
    'pg_is_in_recovery() AS recovering',
    'pg_backend_pid() AS pid',
    ...otherSettings.map(({ name }, index) => `current_setting(${quoteLiteral(name)}) AS o${index}`),
    ...VERSION_17_SETTINGS.map(
      ([name, value], index) => `coalesce(current_setting('${name}', true), '${value}') AS n${index}`,
    ),
    ...required.map(([name, value], index) =>
      typeof value === 'string'
        ? `current_setting('${name}') AS s${index}`
        : `(extract(epoch FROM current_setting('${name}')::interval) * 1000)::bigint::text AS s${index}`,
    ),
  ];
  const [requiredResult, othersResult, readResult, historyResult] = await Promise.allSettled([
    Promise.all([...requiredSettingStatements, ...version17Statements].map((statement) => client.query(statement))),
    otherSettings.length === 0 ? null : client.query<Record<string, unknown>>(`SELECT ${otherSettingCalls.join(', ')}`),
    client.query<Record<string, unknown>>(`SELECT ${columns.join(', ')}`),
    client.query<{ history: string }>(WRITE_HISTORY_QUERY),
  ]);
  const row: Row = (readResult.status === 'fulfilled' ? readResult.value.rows[0] : undefined) ?? {};
  requireVersion(Number(row.version ?? MIN_SERVER_VERSION), host);
  if (othersResult.status === 'rejected') throw toSettingError(othersResult.reason, server);
  if (requiredResult.status === 'rejected') throw requiredResult.reason;
  if (readResult.status === 'rejected') throw readResult.reason;
  if (row.recovering === true) throw new StoreError(describeReadOnlyReplica(server));
  if (row.read_only === 'on') throw new StoreError(describeReadOnlyDefault(server));
  const expectedValues = othersResult.value?.rows[0] ?? {};
  for (const [name, value, actual] of [
    ...required.map(([name, value], index) => [name, String(value), row[`s${index}`]]),
    ...VERSION_17_SETTINGS.map(([name, value], index) => [name, value, row[`n${index}`]]),
    ...otherSettings.map(({ name }, index) => [name, expectedValues[`o${index}`], row[`o${index}`]]),
  ]) {
    if (value === actual) continue;
    throw new StoreError(
      `${server}: the server does not apply ${name}=${value} (its value is ${actual}). If a connection pooler is used, add pooler=transaction to POSTRIDER_DATABASE, or set the pooler to session pooling (PgBouncer: pool_mode = session).`,
    );
  }
  // The query of the write history may fail, because some managed servers do not permit it.
  const history = historyResult.status === 'fulfilled' ? (historyResult.value.rows[0]?.history ?? null) : null;
  return { pid: Number(row.pid), history };
}

/**
 * Returns a StoreError if the server has refused the value of an operator's setting. Returns any other error unchanged.
 */
function toSettingError(error: unknown, server: string): unknown {
  if (!isServerError(error) || getErrorCode(error) === '42704') return error;
  const detail = error instanceof Error ? toOneLine(error.message) : '';
  return new StoreError(
    `${server}: the server refuses a setting of options= in POSTRIDER_DATABASE (${detail}). Correct it.`,
  );
}

/** Returns the error of a pooler that refuses the startup parameter `options`. */
function createRefusedOptionsFault(error: unknown, server: string): ConfigurationFault {
  const detail = error instanceof Error ? toOneLine(error.message) : '';
  return new ConfigurationFault(`${server}: the pooler refuses options= in POSTRIDER_DATABASE (${detail}). Remove it.`);
}

/** Returns the startup parameters, which the driver's type declarations omit. */
function getStartupParameters(client: pg.Client): { options?: string } {
  return (client as unknown as { connectionParameters: { options?: string } }).connectionParameters;
}

/** The host did not answer within the time limit. */
class ConnectTimeout extends Error {
  readonly code = 'ETIMEDOUT';
  override readonly message = 'no answer within the time limit';
}

function getTypeParser(oid: number, format: 'text' | 'binary') {
  return oid === INT8_OID ? Number : pg.types.getTypeParser(oid, format);
}

function wrapClient(
  client: pg.Client,
  whenEnded: Promise<void>,
  { database, tracksStatements }: Pick<PostgresSetting, 'database' | 'tracksStatements'>,
  properties: Pick<Connection, 'slot' | 'pid' | 'host' | 'history' | 'isPooled' | 'prologue' | 'planGeneration'>,
): Connection {
  const server = describeServer([properties.host], database);
  const usesStatementNames = properties.prologue === null || tracksStatements;
  // A pooler that tracks prepared statements prepares equal texts once per server connection, for all clients. The
  // suffix gives each generation different texts.
  const textSuffix = tracksStatements && properties.planGeneration > 0 ? ` /* ${properties.planGeneration} */` : '';
  let cancelledWaitCount = 0;
  client.on('notice', ({ routine }) => {
    if (routine === STANDBY_WAIT_FUNCTION) cancelledWaitCount += 1;
  });
  // The warning about a statement arrives before the statement completes. Other statements in progress are rejected as
  // well, so that a message that may be lost is never reported as stored.
  const checkReplication = async <T>(statement: Promise<T>): Promise<T> => {
    const cancelledWaitCountBefore = cancelledWaitCount;
    const answer = await statement;
    if (cancelledWaitCount !== cancelledWaitCountBefore) throw new UnknownCommitResult(server);
    return answer;
  };
  return {
    ...properties,
    whenEnded,
    dialect: 'postgres',
    async query(sql, values = []): Promise<readonly Row[]> {
      const statement = toStatement(sql);
      const text = statement.text + textSuffix;
      const name = usesStatementNames ? statement.name : '';
      try {
        return (await checkReplication(client.query({ name, text, values: encodeValues(statement, values) })))
          .rows as Row[];
      } catch (error) {
        if (!tracksStatements || !isUntrackedStatement(error)) throw error;
        throw new ConfigurationFault(describeUntrackedStatements(server));
      }
    },
    async runCommand(text) {
      return (await checkReplication(client.query(text))).command;
    },
    async runScript(text) {
      const results: unknown = await checkReplication(client.query(text));
      return ((Array.isArray(results) ? results.at(-1) : results) as pg.QueryResult<Record<string, unknown>>).rows;
    },
    onNotification(listener) {
      client.on('notification', ({ channel, payload }) => listener(channel, payload ?? ''));
    },
    destroy() {
      client.connection.stream.destroy();
    },
    async close() {
      const timer = setTimeout(() => client.connection.stream.destroy(), CLOSE_TIMEOUT_MS);
      await client.end().catch(() => undefined);
      clearTimeout(timer);
    },
  };
}

type ArrayElementType = 'uuid' | 'text' | 'int' | 'bigint';

/** OIDs of the element types in pg_type. */
const TYPE_OIDS: Readonly<Record<ArrayElementType, number>> = { uuid: 2950, text: 25, int: 23, bigint: 20 };
/** Size of the header: number of dimensions, null flag, element type, and length and lower bound of the dimension. */
const HEADER_BYTES = 20;
const LENGTH_BYTES = 4;
const NULL_LENGTH = -1;
const ARRAY_CAST = /\$(\d{1,3})::(uuid|text|int|bigint)\[\]/g;

/** The element type of each array parameter of each statement. */
const ARRAY_TYPES = new WeakMap<Statement, readonly (ArrayElementType | undefined)[]>();

/**
 * Returns the values of `statement` in the form that the driver requires. The driver sends a Buffer in binary format.
 */
function encodeValues(statement: Statement, values: readonly unknown[]): unknown[] {
  let types = ARRAY_TYPES.get(statement);
  if (types === undefined) {
    types = parseArrayTypes(statement.text);
    ARRAY_TYPES.set(statement, types);
  }
  const encodedValues = new Array<unknown>(values.length);
  for (let index = 0; index < values.length; index += 1) {
    const value = values[index];
    const type = types[index];
    encodedValues[index] = type !== undefined && Array.isArray(value) ? (encodeArray(type, value) ?? value) : value;
  }
  return encodedValues;
}

function parseArrayTypes(text: string): readonly (ArrayElementType | undefined)[] {
  const types: (ArrayElementType | undefined)[] = [];
  for (const [, number, type] of text.matchAll(ARRAY_CAST)) types[Number(number) - 1] = type as ArrayElementType;
  return types;
}

/** Returns the array in binary format, or null if an element does not fit the type. */
export function encodeArray(type: ArrayElementType, values: readonly unknown[]): Buffer | null {
  const bytes = measureArray(type, values);
  if (bytes === null) return null;
  const array = Buffer.allocUnsafe(bytes);
  array.writeInt32BE(values.length === 0 ? 0 : 1, 0);
  array.writeInt32BE(values.includes(null) ? 1 : 0, 4);
  array.writeInt32BE(TYPE_OIDS[type], 8);
  if (values.length === 0) return array;
  array.writeInt32BE(values.length, 12);
  array.writeInt32BE(1, 16);
  let offset = HEADER_BYTES;
  for (const value of values) {
    if (value === null) offset = array.writeInt32BE(NULL_LENGTH, offset);
    else if (typeof value === 'number') offset = writeNumber(array, offset, type, value);
    else if (typeof value === 'string' && type === 'text') {
      const length = array.write(value, offset + LENGTH_BYTES);
      array.writeInt32BE(length, offset);
      offset += LENGTH_BYTES + length;
    } else if (typeof value === 'string') {
      const hex = value.length === 36 ? value.replaceAll('-', '') : value;
      if (hex.length !== 32 || array.write(hex, offset + LENGTH_BYTES, 'hex') !== 16) return null;
      array.writeInt32BE(16, offset);
      offset += LENGTH_BYTES + 16;
    }
  }
  return array;
}

/** Returns the size of the encoded array in bytes, or null if an element does not fit the type. */
function measureArray(type: ArrayElementType, values: readonly unknown[]): number | null {
  if (values.length === 0) return HEADER_BYTES - 8;
  let bytes = HEADER_BYTES + LENGTH_BYTES * values.length;
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

function writeNumber(array: Buffer, offset: number, type: ArrayElementType, value: number): number {
  if (type === 'int') return array.writeInt32BE(value, array.writeInt32BE(4, offset));
  const highWord = Math.floor(value / 2 ** 32);
  return array.writeUInt32BE(value - highWord * 2 ** 32, array.writeInt32BE(highWord, array.writeInt32BE(8, offset)));
}

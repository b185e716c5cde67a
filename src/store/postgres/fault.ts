/**
 * Maps errors of PostgreSQL to a StoreError of one line that names the server and the remedy, and never contains the
 * password. SQLSTATEs: postgresql.org/docs/current/errcodes-appendix.html.
 */
import { StoreError } from '../error.ts';

/** A prepared statement does not exist, or exists already, on the server connection. */
export const UNTRACKED_CODES = ['26000', '42P05'];
const CONNECTION_LOST_CODES = ['57P01', '57P02', '57P03', '57P05', '25006', '25P03', ...UNTRACKED_CODES];
/** Parts of Node's codes. */
const TLS_CODES = ['ERR_TLS', 'ERR_SSL', 'CERT', 'UNABLE_TO_VERIFY', 'UNABLE_TO_GET_ISSUER', 'SELF_SIGNED'];

// Messages of the driver and its pool, which have no code.
const STATEMENT_TIMEOUT = 'Query read timeout';
const BUSY_TIMEOUT = 'timeout exceeded when trying to connect';
export const CONNECT_TIMEOUT = 'timeout expired';
const WITHOUT_TLS = 'The server does not support SSL connections';
/** How long a call waits while all connections are in use. */
export const MAX_BUSY_WAIT_MS = 10_000;

export const READ_ONLY_REPLICA =
  'the server is a read-only replica. Set POSTRIDER_DATABASE to the primary, or to all hosts separated by commas.';
export const READ_ONLY_DEFAULT =
  'the server makes every transaction read-only, although it is not a replica. Set default_transaction_read_only=off for the server, the database and the role.';
export const UNDECLARED_POOLER =
  'a connection pooler in transaction mode is in front of the server. Add pooler=transaction to POSTRIDER_DATABASE.';
export const UNTRACKED_STATEMENTS =
  'the pooler does not track prepared statements. Set max_prepared_statements in PgBouncer 1.21 or later, or remove prepared=yes from POSTRIDER_DATABASE.';
export const SESSION_POOLING =
  'If a connection pooler is used, add pooler=transaction to POSTRIDER_DATABASE, or set the pooler to session pooling (PgBouncer: pool_mode = session).';

/** The texts by SQLSTATE, Node's code or message of the driver. `%` stands for the message of the error. */
const TEXTS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ENOTFOUND: 'the host was not found (%). Correct POSTRIDER_DATABASE, or check DNS.',
    ECONNREFUSED: 'the connection was refused. Start PostgreSQL, or correct host and port in POSTRIDER_DATABASE.',
    ENOENT: 'the socket does not exist. Start PostgreSQL, or correct host= in POSTRIDER_DATABASE.',
    ETIMEDOUT: 'the host does not answer (%). Check the network and its firewalls.',
    [CONNECT_TIMEOUT]:
      'the host does not answer (no answer within the time limit). Check the network and its firewalls.',
    [BUSY_TIMEOUT]: `every connection was busy for ${MAX_BUSY_WAIT_MS / 1_000} s. Check the server for slow or blocked statements.`,
    [STATEMENT_TIMEOUT]: 'the server no longer answers. Check the network and its firewalls.',
    ECONNRESET: 'the connection was lost (%). It is reopened automatically.',
    'There was an error establishing an SSL connection':
      'the server is not PostgreSQL. Correct host and port in POSTRIDER_DATABASE.',
    '28P01':
      'the server refuses the user or the password (%). Correct them in POSTRIDER_DATABASE, or correct pg_hba.conf.',
    '3D000': 'the database does not exist. Create it with `createdb`, or correct its name in POSTRIDER_DATABASE.',
    '42501':
      'the user lacks a permission (%). Make the user the owner of the database, or make the user the owner of a schema and add schema=NAME to POSTRIDER_DATABASE.',
    '3F000': 'no schema of the search path exists (%). Create a schema, and add schema=NAME to POSTRIDER_DATABASE.',
    '42704':
      'the server does not recognize a setting (%). Correct options= in POSTRIDER_DATABASE; Postrider needs PostgreSQL 15 or later.',
    '53300':
      'the server has no free connection. Increase max_connections, or run fewer nodes: each node uses up to 9 connections.',
    '53100': 'the disk of the server is full (%). Free disk space. No acknowledged message is lost.',
    '25006': READ_ONLY_REPLICA,
    '26000': UNDECLARED_POOLER,
    // PgBouncer reports all its own errors with this code. PostgreSQL does not use it for connection errors.
    '08P01':
      'the server or its pooler refuses the connection (%). Correct user, password and database in POSTRIDER_DATABASE, or the configuration of the pooler.',
    '57P03': 'the server is starting or recovering (%). Wait until it accepts connections.',
    '57P01': 'the server ended the connection (%). It is reopened automatically.',
    '57014':
      'a statement exceeded its time limit and was cancelled (%). Check the server for slow or blocked statements.',
  }),
);
const SAME_TEXTS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ...{ EAI_AGAIN: 'ENOTFOUND', EHOSTUNREACH: 'ETIMEDOUT', ENETUNREACH: 'ETIMEDOUT', EPIPE: 'ECONNRESET' },
    ...{ '28000': '28P01', '42P05': '26000', '57P02': '57P01' },
  }),
);
const TLS_TEXT =
  'the TLS connection failed (%). Correct sslmode= in POSTRIDER_DATABASE, or the certificate of the server. For a private certificate authority, add sslrootcert=FILE.';

/** The server has committed the transaction, but a failover may lose it. */
export class UnknownCommitResult extends StoreError {
  constructor(server: string) {
    super(
      `${server}: the wait for the synchronous standby was cancelled, and it is unknown whether the standby has the transaction. Check the standby, and find out which process cancels statements.`,
    );
  }
}

/** An error that only a change by the operator can correct. */
export class ConfigurationFault extends StoreError {}

/** Returns the SQLSTATE or Node's code, or an empty string. */
export function getErrorCode(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}

/** Returns true for an error of the server, which has then rolled back the transaction. */
export function isServerError(error: unknown): boolean {
  // Some of Node's codes have five letters too, such as EPIPE.
  return /^(?:\d[0-9A-Z]|HV|P0|F0|XX)[0-9A-Z]{3}$/.test(getErrorCode(error));
}

/** A migration by another node has changed tables that prepared statements use. */
export function isStalePlan(error: unknown): boolean {
  return getErrorCode(error) === '0A000' && getMessage(error).includes('cached plan');
}

export function isStatementTimeout(error: unknown): boolean {
  return getMessage(error) === STATEMENT_TIMEOUT;
}

export function isBusyTimeout(error: unknown): boolean {
  return getMessage(error) === BUSY_TIMEOUT;
}

/** A serialization failure, a deadlock or a stale plan. */
export function isTransient(error: unknown): boolean {
  return ['40001', '40P01'].includes(getErrorCode(error)) || isStalePlan(error);
}

/** The connection cannot be used after this error. */
export function endsConnection(error: unknown): boolean {
  const code = getErrorCode(error);
  return !isServerError(error) || CONNECTION_LOST_CODES.includes(code) || code.startsWith('08') || isStalePlan(error);
}

function isConfigurationError(error: unknown): boolean {
  const code = getErrorCode(error);
  return code.startsWith('28') || ['3D000', '3F000', '42501', 'ENOTFOUND'].includes(code) || isTlsFault(error);
}

export function toStoreError(error: unknown, server: string): StoreError {
  if (error instanceof StoreError) return error;
  const detail = getDetail(error);
  const code = getErrorCode(error);
  const text = isTlsFault(error) ? TLS_TEXT : (TEXTS.get(SAME_TEXTS.get(code) ?? code) ?? TEXTS.get(detail) ?? '%.');
  return new (isConfigurationError(error) ? ConfigurationFault : StoreError)(
    `${server}: ${text.replace('%', () => detail)}`,
  );
}

function isTlsFault(error: unknown): boolean {
  return TLS_CODES.some((part) => getErrorCode(error).includes(part)) || isWithoutTls(error);
}

export function isWithoutTls(error: unknown): boolean {
  return getMessage(error) === WITHOUT_TLS;
}

function getMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export function getDetail(error: unknown): string {
  return toOneLine(getMessage(error));
}

export function toOneLine(text: string): string {
  return text.replaceAll('\n', ' ').slice(0, 300);
}

/**
 * Maps errors of PostgreSQL to a StoreError of one line that names the server and the remedy. The line never contains
 * the password.
 */
import { StoreError } from '../error.ts';

/** SQLSTATEs (postgresql.org/docs/current/errcodes-appendix.html) after which the same transaction may succeed. */
const RETRYABLE_CODES: ReadonlySet<string> = new Set(['40001', '40P01']);
/**
 * SQLSTATEs after which the connection cannot be used: the server is shutting down or starting, or no longer accepts
 * writes.
 */
const CONNECTION_LOST_CODES: ReadonlySet<string> = new Set([
  '57P01',
  '57P02',
  '57P03',
  '57P05',
  '25006',
  '25P03',
  '26000',
  '42P05',
]);
/** The SQLSTATE classes that begin with a letter: foreign data, PL/pgSQL, configuration, internal errors. */
const LETTER_SQLSTATE_CLASSES = ['HV', 'P0', 'F0', 'XX'];
/** Substrings of the codes with which Node reports an untrusted certificate. */
const CERTIFICATE_CODES = ['CERT', 'UNABLE_TO_VERIFY', 'UNABLE_TO_GET_ISSUER', 'SELF_SIGNED'];

/**
 * The error of a transaction that the server has committed but that the synchronous standby may not have received. A
 * failover after a crash may lose the transaction.
 */
export class UnknownCommitResult extends StoreError {
  constructor(server: string) {
    super(
      `${server}: the wait for the synchronous standby was cancelled, and it is unknown whether the standby has the transaction. Check the standby, and find out which process cancels statements.`,
    );
  }
}

/** An error that only a change by the operator can correct. */
export class ConfigurationFault extends StoreError {}

/** Returns the SQLSTATE or Node's error code, or an empty string. */
export function getErrorCode(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}

/** Returns true if the server has returned the error. The server has then rolled back the transaction. */
export function isServerError(error: unknown): boolean {
  const code = getErrorCode(error);
  // The first characters are checked too, because some of Node's error codes also have five letters, such as EPIPE.
  return (
    code.length === 5 &&
    ((code >= '0' && code < ':') || LETTER_SQLSTATE_CLASSES.some((letters) => code.startsWith(letters)))
  );
}

/** Returns true if a migration by another node has changed tables that prepared statements use. */
export function isStalePlan(error: unknown): boolean {
  return getErrorCode(error) === '0A000' && error instanceof Error && error.message.includes('cached plan');
}

/** Returns true if a statement had no answer within its time limit, for example because the network path is broken. */
export function isStatementTimeout(error: unknown): boolean {
  return error instanceof Error && error.message === 'Query read timeout';
}

/** Returns true if the same transaction may succeed when it is retried. */
export function isTransient(error: unknown): boolean {
  return RETRYABLE_CODES.has(getErrorCode(error)) || isStalePlan(error);
}

/** Returns true if the connection cannot be used after this error. */
export function endsConnection(error: unknown): boolean {
  return (
    !isServerError(error) ||
    CONNECTION_LOST_CODES.has(getErrorCode(error)) ||
    getErrorCode(error).startsWith('08') ||
    isStalePlan(error)
  );
}

/** Returns true if only a change by the operator can correct the error. */
export function isConfigurationError(error: unknown): boolean {
  if (error instanceof ConfigurationFault) return true;
  // With several hosts, every error must be a configuration error, because otherwise another host may work later.
  if (hasErrorPerHost(error)) return error.errors.every(isConfigurationError);
  if (error instanceof StoreError && error.cause !== undefined) return isConfigurationError(error.cause);
  const code = getErrorCode(error);
  return code.startsWith('28') || ['3D000', '3F000', '42501', 'ENOTFOUND'].includes(code) || isTlsFault(error);
}

/**
 * Returns true for an AggregateError with one error per host. Node's own AggregateError, with one error per address of
 * a host, has a code.
 */
function hasErrorPerHost(error: unknown): error is AggregateError {
  return error instanceof AggregateError && getErrorCode(error) === '';
}

/** Maps an error to a StoreError. Returns a StoreError unchanged. `server` contains host, port and database. */
export function toStoreError(error: unknown, server: string): StoreError {
  if (error instanceof StoreError) return error;
  if (hasErrorPerHost(error))
    return new StoreError(error.errors.map((hostError) => toStoreError(hostError, server).message).join(' '));
  const detail = error instanceof Error ? toOneLine(error.message) : toOneLine(String(error));
  if (isTlsFault(error)) {
    return new StoreError(
      `${server}: the TLS connection failed (${detail}). Correct sslmode= in POSTRIDER_DATABASE, or the certificate of the server. For a private certificate authority, add sslrootcert=FILE.`,
    );
  }
  if (detail.includes('error establishing an SSL connection')) {
    return new StoreError(`${server}: the server is not PostgreSQL. Correct host and port in POSTRIDER_DATABASE.`);
  }
  if (isStatementTimeout(error)) {
    return new StoreError(`${server}: the server no longer answers. Check the network and its firewalls.`);
  }
  switch (getErrorCode(error)) {
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return new StoreError(`${server}: the host was not found (${detail}). Correct POSTRIDER_DATABASE, or check DNS.`);
    case 'ECONNREFUSED':
      return new StoreError(
        `${server}: the connection was refused. Start PostgreSQL, or correct host and port in POSTRIDER_DATABASE.`,
      );
    case 'ENOENT':
      return new StoreError(
        `${server}: the socket does not exist. Start PostgreSQL, or correct host= in POSTRIDER_DATABASE.`,
      );
    case 'ETIMEDOUT':
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return new StoreError(`${server}: the host does not answer (${detail}). Check the network and its firewalls.`);
    case 'ECONNRESET':
    case 'EPIPE':
      return new StoreError(`${server}: the connection was lost (${detail}). It is reopened automatically.`);
    case '28P01':
    case '28000':
      return new StoreError(
        `${server}: the server refuses the user or the password (${detail}). Correct them in POSTRIDER_DATABASE, or correct pg_hba.conf.`,
      );
    case '3D000':
      return new StoreError(
        `${server}: the database does not exist. Create it with \`createdb\`, or correct its name in POSTRIDER_DATABASE.`,
      );
    case '42501':
      return new StoreError(
        `${server}: the user lacks a permission (${detail}). Make the user the owner of the database, or make the user the owner of a schema and add schema=NAME to POSTRIDER_DATABASE.`,
      );
    case '3F000':
      return new StoreError(
        `${server}: no schema of the search path exists (${detail}). Create a schema, and add schema=NAME to POSTRIDER_DATABASE.`,
      );
    case '42704':
      return new StoreError(
        `${server}: the server does not recognize a setting (${detail}). Correct options= in POSTRIDER_DATABASE; Postrider needs PostgreSQL 15 or later.`,
      );
    case '53300':
      return new StoreError(
        `${server}: the server has no free connection. Increase max_connections, or run fewer nodes: each node uses up to 9 connections.`,
      );
    case '53100':
      return new StoreError(
        `${server}: the disk of the server is full (${detail}). Free disk space. No acknowledged message is lost.`,
      );
    case '25006':
      return new StoreError(describeReadOnlyReplica(server));
    // 26000: the statement to execute is not prepared on the server connection. 42P05: the statement to prepare already
    // exists on the server connection.
    case '26000':
    case '42P05':
      return new StoreError(describeUndeclaredPooler(server));
    // PgBouncer reports all its own errors with this code. PostgreSQL does not use this code for connection errors.
    case '08P01':
      return new StoreError(
        `${server}: the server or its pooler refuses the connection (${detail}). Correct user, password and database in POSTRIDER_DATABASE, or the configuration of the pooler.`,
      );
    case '57P03':
      return new StoreError(
        `${server}: the server is starting or recovering (${detail}). Wait until it accepts connections.`,
      );
    case '57P01':
    case '57P02':
      return new StoreError(`${server}: the server ended the connection (${detail}). It is reopened automatically.`);
    case '57014':
      return new StoreError(
        `${server}: a statement exceeded its time limit and was cancelled (${detail}). Check the server for slow or blocked statements.`,
      );
    default:
      return new StoreError(`${server}: ${detail}.`);
  }
}

/** Returns the error message for a server that is not a replica but makes every transaction read-only. */
export function describeReadOnlyDefault(server: string): string {
  return `${server}: the server makes every transaction read-only, although it is not a replica. Set default_transaction_read_only=off for the server, the database and the role.`;
}

/** Returns the error message for a pooler in transaction mode without `pooler=transaction`. */
export function describeUndeclaredPooler(server: string): string {
  return `${server}: a connection pooler in transaction mode is in front of the server. Add pooler=transaction to POSTRIDER_DATABASE.`;
}

/** Returns the error message for a pooler that does not track prepared statements, although `prepared=yes` is set. */
export function describeUntrackedStatements(server: string): string {
  return `${server}: the pooler does not track prepared statements. Set max_prepared_statements in PgBouncer 1.21 or later, or remove prepared=yes from POSTRIDER_DATABASE.`;
}

/** Returns true if a prepared statement does not exist, or exists already, on the server connection. */
export function isUntrackedStatement(error: unknown): boolean {
  return ['26000', '42P05'].includes(getErrorCode(error));
}

/** Returns the error message for a replica. */
export function describeReadOnlyReplica(server: string): string {
  return `${server}: the server is a read-only replica. Set POSTRIDER_DATABASE to the primary, or to all hosts separated by commas.`;
}

function isTlsFault(error: unknown): boolean {
  const code = getErrorCode(error);
  return (
    code.startsWith('ERR_TLS') ||
    code.startsWith('ERR_SSL') ||
    CERTIFICATE_CODES.some((part) => code.includes(part)) ||
    (error instanceof Error && error.message.includes('does not support SSL'))
  );
}

/** Returns the first 300 characters of a message of the server, on one line. */
export function toOneLine(text: string): string {
  return text.replaceAll('\n', ' ').slice(0, 300);
}

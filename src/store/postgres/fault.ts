/** PostgreSQL's own words turned into one line that names the thing and the remedy, and never the password. */
import { StoreError } from '../error.ts';

/** SQLSTATEs (postgresql.org/docs/current/errcodes-appendix.html) after which the same transaction may work. */
const AGAIN: ReadonlySet<string> = new Set(['40001', '40P01']);
/** After these the connection is of no more use: the server ends, starts, or takes no writes any more. */
const GONE: ReadonlySet<string> = new Set(['57P01', '57P02', '57P03', '57P05', '25006', '25P03', '26000']);
/** First characters of the classes that are letters: foreign data, PL/pgSQL, configuration, internal faults. */
const LETTER_CLASSES = ['HV', 'P0', 'F0', 'XX'];
/** Node's words for a certificate that is not trusted. */
const CERTIFICATE = ['CERT', 'UNABLE_TO_VERIFY', 'UNABLE_TO_GET_ISSUER', 'SELF_SIGNED'];

/** The server has committed and is not sure of its synchronous standby: a crash and a failover may undo it. */
export class UnknownCommitResult extends StoreError {
  constructor(where: string) {
    super(
      `${where}: the wait for the synchronous standby was cancelled; whether it has the transaction is not known. Look at the standby, and at what cancels statements.`,
    );
  }
}

/** SQLSTATE, or Node's own code, or an empty text. */
export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}

/** True where the server itself has answered with a fault; its transaction is then undone for certain. */
export function isServerError(error: unknown): boolean {
  const code = errorCode(error);
  // Node has codes of five letters too, such as EPIPE.
  return (
    code.length === 5 && ((code >= '0' && code < ':') || LETTER_CLASSES.some((letters) => code.startsWith(letters)))
  );
}

/** True where another node's migration has changed the tables under statements that are prepared on old connections. */
export function isStalePlan(error: unknown): boolean {
  return errorCode(error) === '0A000' && error instanceof Error && error.message.includes('cached plan');
}

/** True where a statement had no answer within its time limit: the path may be broken without a word. */
export function isStatementTimeout(error: unknown): boolean {
  return error instanceof Error && error.message === 'Query read timeout';
}

/** True where the same transaction may work when tried again. */
export function isTransient(error: unknown): boolean {
  return AGAIN.has(errorCode(error)) || isStalePlan(error);
}

/** True where the connection that met this fault is of no more use. */
export function endsConnection(error: unknown): boolean {
  return !isServerError(error) || GONE.has(errorCode(error)) || errorCode(error).startsWith('08') || isStalePlan(error);
}

/** True where trying again soon does not help: somebody has to correct something. */
export function isConfigurationError(error: unknown): boolean {
  const code = errorCode(error);
  return code.startsWith('28') || ['3D000', '42501', 'ENOTFOUND'].includes(code) || isTlsFault(error);
}

/** Any fault as a StoreError; a StoreError as it is. `where` is host, port and database as people know them. */
export function toStoreError(error: unknown, where: string): StoreError {
  if (error instanceof StoreError) return error;
  // One fault for each host; Node's own for each address of one host has a code.
  if (error instanceof AggregateError && errorCode(error) === '')
    return new StoreError(error.errors.map((one) => toStoreError(one, where).message).join(' '));
  const said = error instanceof Error ? oneLine(error.message) : oneLine(String(error));
  if (isTlsFault(error)) {
    return new StoreError(
      `${where}: TLS fails (${said}). Correct sslmode= in POSTRIDER_DATABASE, or the server's certificate; one of your own authority needs NODE_EXTRA_CA_CERTS.`,
    );
  }
  if (said.includes('error establishing an SSL connection')) {
    return new StoreError(
      `${where}: what answers there is no PostgreSQL. Correct host and port in POSTRIDER_DATABASE.`,
    );
  }
  if (isStatementTimeout(error)) {
    return new StoreError(`${where}: the server does not answer any more. Look at the network and its firewalls.`);
  }
  switch (errorCode(error)) {
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return new StoreError(`${where}: the host is not found (${said}). Correct POSTRIDER_DATABASE, or look at DNS.`);
    case 'ECONNREFUSED':
      return new StoreError(
        `${where}: nothing listens there. Start PostgreSQL, or correct host and port in POSTRIDER_DATABASE.`,
      );
    case 'ENOENT':
      return new StoreError(
        `${where}: the socket is not there. Start PostgreSQL, or correct host= in POSTRIDER_DATABASE.`,
      );
    case 'ETIMEDOUT':
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return new StoreError(`${where}: the host does not answer (${said}). Look at the network and its firewalls.`);
    case 'ECONNRESET':
    case 'EPIPE':
      return new StoreError(`${where}: the connection broke (${said}). It is made anew by itself.`);
    case '28P01':
    case '28000':
      return new StoreError(
        `${where}: the server refuses user or password (${said}). Correct them in POSTRIDER_DATABASE, or pg_hba.conf.`,
      );
    case '3D000':
      return new StoreError(
        `${where}: there is no such database. Create it with \`createdb\`, or correct its name in POSTRIDER_DATABASE.`,
      );
    case '42501':
      return new StoreError(`${where}: the user may not do this (${said}). Make it the owner of the database.`);
    case '42704':
      return new StoreError(
        `${where}: the server does not know what is set (${said}). Correct options= in POSTRIDER_DATABASE; Postrider needs PostgreSQL 15 or later.`,
      );
    case '53300':
      return new StoreError(
        `${where}: the server has no connection left. Raise max_connections, or run fewer nodes: each takes up to 9.`,
      );
    case '53100':
      return new StoreError(`${where}: the server's disk is full (${said}). Free space; nothing acknowledged is lost.`);
    case '25006':
      return new StoreError(readOnlyReplicaText(where));
    case '57P03':
      return new StoreError(`${where}: the server is starting up or recovering (${said}). Wait for it.`);
    case '57P01':
    case '57P02':
      return new StoreError(`${where}: the server has ended the connection (${said}). It is made anew by itself.`);
    case '57014':
      return new StoreError(`${where}: a statement took too long and was given up (${said}).`);
    default:
      return new StoreError(`${where}: ${said}.`);
  }
}

/** What to say of a server that is no replica and yet runs every transaction read-only. */
export function defaultReadOnlyText(where: string): string {
  return `${where}: the server makes every transaction read-only, although it is no replica. Set default_transaction_read_only=off for the server, the database and the role.`;
}

/** What to say of a replica. */
export function readOnlyReplicaText(where: string): string {
  return `${where}: the server is a read-only replica. Name the primary in POSTRIDER_DATABASE, or all hosts separated by commas.`;
}

function isTlsFault(error: unknown): boolean {
  const code = errorCode(error);
  return (
    code.startsWith('ERR_TLS') ||
    code.startsWith('ERR_SSL') ||
    CERTIFICATE.some((word) => code.includes(word)) ||
    (error instanceof Error && error.message.includes('does not support SSL'))
  );
}

/** A server's words on one line, cut. */
export function oneLine(text: string): string {
  return text.replaceAll('\n', ' ').slice(0, 300);
}

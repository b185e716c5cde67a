/**
 * Begins transactions. On a connection with its own settings, BEGIN is followed by a check that they are still in
 * force. Behind a pooler in transaction mode, each transaction applies the settings itself, in the same message as
 * BEGIN. Neither method needs an additional round trip, because the next statements are sent without waiting for the
 * reply.
 */
import { StoreError } from '../error.ts';
import { type Connection, WRITE_HISTORY } from './connection.ts';
import type { Row, Session, Statement } from './session.ts';

/** A transaction that has begun. */
export interface BegunTransaction {
  /** The transaction id; null if `beginTransaction` was called with `single`. */
  readonly xid: string | null;
  /** The process id of the server connection. */
  readonly pid: number;
  /** The write history of the server; null if the server does not report it. */
  readonly history: string | null;
  /**
   * False if the settings on which durability depends are not in force. In this case, no message may be acknowledged.
   */
  readonly isSafe: boolean;
}

const BEGIN: Statement = { name: 'begin', text: 'BEGIN ISOLATION LEVEL READ COMMITTED' };
const IS_SAFE = `current_setting('synchronous_commit') = 'on' AND current_setting('client_min_messages') = 'warning'`;
/**
 * Compares the process id, in order to detect a pooler in transaction mode that POSTRIDER_DATABASE does not declare:
 * such a pooler may run each transaction on a different server connection.
 */
const READ_XID: Statement = {
  name: 'xid',
  text: `SELECT pg_current_xact_id()::text AS xid, pg_backend_pid() = $1 AND ${IS_SAFE} AS safe`,
};
const COMMIT = 'COMMIT';

/**
 * Begins a transaction. If `kind` is `single`, the transaction consists of one statement and needs no transaction id.
 * Resolves after the server has answered every statement that this function sends.
 */
export async function beginTransaction(
  connection: Connection,
  kind: 'single' | 'transaction',
): Promise<BegunTransaction> {
  const { pid, history, prologue } = connection;
  if (prologue !== null) {
    const columns = [
      `pg_backend_pid() AS pid, ${IS_SAFE} AS safe`,
      ...(kind === 'single' ? [] : ['pg_current_xact_id()::text AS xid']),
      ...(kind === 'single' || history === null ? [] : [`${WRITE_HISTORY} AS history`]),
    ];
    const [row = {}]: readonly Row[] = await connection.runScript(`${prologue}; SELECT ${columns.join(', ')}`);
    return {
      xid: kind === 'single' ? null : String(row.xid),
      pid: Number(row.pid),
      history: row.history === undefined ? null : String(row.history),
      isSafe: row.safe === true,
    };
  }
  const [begun, read] = await Promise.allSettled([connection.query(BEGIN, []), connection.query(READ_XID, [pid])]);
  if (begun.status === 'rejected') throw begun.reason;
  if (read.status === 'rejected') throw read.reason;
  const [row = {}]: readonly Row[] = read.value;
  return { xid: String(row.xid), pid, history, isSafe: row.safe === true };
}

/** Returns the error of a transaction whose settings are not in force. */
export function createSettingsError(server: string): StoreError {
  return new StoreError(
    `${server}: the settings of the connection have changed. If a connection pooler is used, add pooler=transaction to POSTRIDER_DATABASE, or set the pooler to session pooling (PgBouncer: pool_mode = session).`,
  );
}

/**
 * Runs one statement as a transaction by itself. Behind a pooler in transaction mode, BEGIN, the statement and COMMIT
 * are sent together, in one round trip, and `onBegun` is called with the process id of the server connection.
 */
export async function runSingleStatement(
  connection: Connection,
  server: string,
  statement: Statement | string,
  values: readonly unknown[],
  onBegun: (pid: number) => void,
): Promise<readonly Row[]> {
  if (connection.prologue === null) return connection.query(statement, values);
  const beginPromise = beginTransaction(connection, 'single').then((begun) => {
    onBegun(begun.pid);
    return begun;
  });
  const [begun, statementResult, commitResult] = await Promise.allSettled([
    beginPromise,
    connection.query(statement, values),
    connection.runCommand(COMMIT),
  ]);
  if (begun.status === 'rejected') throw begun.reason;
  if (statementResult.status === 'rejected') throw statementResult.reason;
  if (commitResult.status === 'rejected') throw commitResult.reason;
  requireCommit(commitResult.value, server);
  if (!begun.value.isSafe) throw createSettingsError(server);
  return statementResult.value;
}

/** Runs `work` on one server connection. Behind a pooler in transaction mode, runs `work` in one transaction. */
export async function runOnOneServer<T>(
  connection: Connection,
  server: string,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  if (connection.prologue === null) return work(connection);
  const [begun, workResult] = await Promise.allSettled([
    beginTransaction(connection, 'single'),
    (async () => work(connection))(),
  ]);
  if (begun.status === 'rejected') throw begun.reason;
  if (workResult.status === 'rejected') {
    await connection.runCommand('ROLLBACK');
    throw workResult.reason;
  }
  requireCommit(await connection.runCommand(COMMIT), server);
  if (!begun.value.isSafe) throw createSettingsError(server);
  return workResult.value;
}

/**
 * Throws if the transaction was rolled back. COMMIT of an aborted transaction returns the command tag ROLLBACK instead
 * of an error.
 */
export function requireCommit(commandTag: string, server: string): void {
  if (commandTag !== COMMIT) throw new StoreError(`${server}: the transaction was rolled back.`);
}

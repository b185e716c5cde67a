/**
 * Runs statements and transactions on the connections of this process. While the database is unavailable, a call fails
 * within two seconds with an error of one line. A statement or commit without a response fails within its time limit.
 * If the response to a commit is lost, a query determines whether the transaction was committed.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { StoreError } from '../error.ts';
import { type Connection, WRITE_HISTORY } from './connection.ts';
import { type Connections, type ConnectionsOptions, createConnections } from './connections.ts';
import * as fault from './fault.ts';
import {
  type Database,
  forceDurableCommit,
  type Row,
  type Session,
  type Statement,
  type Transaction,
} from './session.ts';

/** For two batches of accepted messages, a claim, the retention work, and reads at the same time. */
const MAX_CONNECTIONS = 6;
/** Settlements have connections of their own, so that no number of slow reads delays them until their leases end. */
const MAX_SETTLEMENT_CONNECTIONS = 2;
/** Of a transaction that fails because of a deadlock or a concurrent change. */
const MAX_ATTEMPTS = 6;
/** A transaction whose connection was lost before the commit is retried once, within this time after its start. */
const MAX_RETRY_AFTER_LOSS_MS = 2_000;
/** Maximum time for the queries that determine the result of a commit without a response. */
const MAX_STATUS_CHECK_MS = 6_000;
const STATUS_POLL_MS = 100;

const READ_PID = 'SELECT pg_backend_pid() AS pid';
const IS_SAFE = `current_setting('synchronous_commit') = 'on' AND current_setting('client_min_messages') = 'warning'`;
/** The process id differs behind a pooler in transaction mode that POSTRIDER_DATABASE does not declare. */
const READ_XID = `SELECT pg_current_xact_id()::text AS xid, pg_backend_pid() = $1 AND ${IS_SAFE} AS safe`;
/**
 * Reads the status of a transaction, ends its server process if it is still in progress (it waits for the standby, or
 * its COMMIT was lost, and holds locks), and writes to the WAL: the commit of this statement waits for the standby as
 * that of the transaction did. No row on another write history, on which another transaction may have the id.
 */
const RESOLVE_TRANSACTION = `SELECT pg_xact_status($1::text::xid8) AS status,
    pg_logical_emit_message(true, 'postrider', ''::text),
    (SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid = $2 AND backend_xid = $1::text::xid8::xid)
  WHERE ${WRITE_HISTORY} = $3`;
/**
 * The statement timeout does not apply to a commit, so an abandoned server connection would wait for the standby, hold
 * its locks, and count towards max_connections.
 */
const TERMINATE_WAITS = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE pid = ANY($1::int[]) AND usename = current_user AND wait_event = 'SyncRep'`;

export type Pool = ReturnType<typeof createPool>;
export type SeparateConnection = Awaited<ReturnType<Pool['connect']>>;
type BegunTransaction = Awaited<ReturnType<typeof beginTransaction>>;

/** The connection was lost before the commit, so nothing is stored. */
class LostBeforeCommit extends Error {}

export function createPool(options: ConnectionsOptions) {
  const { setting, random } = options;
  const connections = createConnections(options, MAX_CONNECTIONS);
  const settlementConnections = createConnections(options, MAX_SETTLEMENT_CONNECTIONS);
  const database = createDatabase(connections, random);
  const { server } = connections;
  return {
    ...database,
    settlements: createDatabase(settlementConnections, random),
    server,
    setting,
    /** Opens a connection outside the pool, and without the pooler if POSTRIDER_DATABASE_DIRECT is set. */
    async connect(statementTimeoutMs = options.statementTimeoutMs) {
      const timeLimit = statementTimeoutMs === undefined ? {} : { statementTimeoutMs };
      const separate = createConnections({ ...options, ...timeLimit, setting: setting.direct ?? setting }, 1);
      try {
        const connection = await separate.acquire();
        let release: Connection['release'] | null = connection.release;
        return {
          ...connection,
          close(): Promise<void> {
            release?.(true);
            release = null;
            return separate.close();
          },
        };
      } catch (error) {
        void separate.close();
        if (setting.direct === null || !(error instanceof StoreError)) throw error;
        throw new StoreError(error.message.replaceAll('POSTRIDER_DATABASE', 'POSTRIDER_DATABASE_DIRECT'));
      }
    },
    sync: () => forceDurableCommit(database),
    /** Rejects if a pooler in transaction mode was not declared, or does not track statements as declared. */
    requireDeclaredPooler: () =>
      database.withConnection(async (connection) => {
        const [row] = await runSingleStatement(connection, READ_PID);
        if (setting.pooler === null ? !connection.isPooled : !setting.tracksStatements) return;
        if (row?.pid !== connection.pid) throw new fault.ConfigurationFault(`${server}: ${fault.UNDECLARED_POOLER}`);
        // A pooler in transaction mode assigns the idle server connection of the first connection to the second one. It
        // is then refused, or without tracking refuses to prepare a statement with the same name again.
        const other = database.withConnection((second) => runSingleStatement(second, READ_PID));
        await other.catch((error: unknown) => {
          if (error instanceof fault.ConfigurationFault) throw error;
        });
      }),
    async close(): Promise<void> {
      await Promise.all([connections.close(), settlementConnections.close()]);
    },
  };
}

function createDatabase(connections: Connections, random: () => number) {
  const { server } = connections;
  const abandonedPids = new Set<number>();

  /** Runs `work` on a connection, which is ended if the error of `work` makes it unusable. */
  async function withConnection<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    const connection = await connections.acquire();
    try {
      const value = await work(connection);
      connections.release(connection);
      return value;
    } catch (error) {
      releaseAfter(connection, error);
      throw error;
    }
  }

  function releaseAfter(connection: Connection, error: unknown): void {
    // Prepared statements of existing connections are not valid for a changed schema. After a timeout on one
    // connection, the other connections probably use the same broken network path.
    if (fault.isStalePlan(error) || fault.isStatementTimeout(error)) connections.renew(connection);
    if (fault.endsConnection(error)) connection.release(false);
    else connections.release(connection);
    if (!fault.isStatementTimeout(error)) return;
    abandonedPids.add(connection.pid);
    // If this fails, the next abandoned connection repeats it.
    query(TERMINATE_WAITS, [[...abandonedPids]]).then(
      () => abandonedPids.clear(),
      () => undefined,
    );
  }

  /** Repeats `attempt` while another attempt may succeed. Rejects with a StoreError. */
  async function withRetries<T>(attempt: () => Promise<T>): Promise<T> {
    const startedAt = performance.now();
    for (let count = 1; ; count += 1) {
      try {
        return await attempt();
      } catch (failure) {
        const isLost = failure instanceof LostBeforeCommit;
        const error = isLost ? failure.cause : failure;
        const isRetryable =
          fault.isTransient(error) ||
          (isLost && count === 1 && performance.now() - startedAt < MAX_RETRY_AFTER_LOSS_MS);
        if (count >= MAX_ATTEMPTS || !isRetryable) throw fault.toStoreError(error, server);
        if (fault.isTransient(error)) await sleep(random() * 10 * 2 ** count);
      }
    }
  }

  /** If the connection is lost, it is unknown whether a single statement was executed, so it is not repeated. */
  const query: Session['query'] = (statement, values) =>
    withRetries(() => withConnection((connection) => runSingleStatement(connection, statement, values)));

  async function runTransaction<T>(
    work: (transaction: Transaction) => Promise<T>,
    checkStored: (session: Session, value: T) => Promise<boolean>,
  ): Promise<T> {
    const connection = await connections.acquire();
    let hasEnded = false;
    const transaction: Transaction = {
      dialect: 'postgres',
      slot: connection.slot,
      query: (statement, values) =>
        hasEnded
          ? Promise.reject(new StoreError('a statement was sent after its transaction had ended.'))
          : connection.query(statement, values),
    };
    // Waits for both, so that no statement of this transaction is sent on the connection after its end.
    const [begun, result] = await Promise.allSettled([
      beginTransaction(connection, 'transaction'),
      (async () => work(transaction))(),
    ]);
    hasEnded = true;
    if (begun.status === 'rejected' || result.status === 'rejected') {
      const reason: unknown =
        begun.status === 'rejected' ? begun.reason : result.status === 'rejected' && result.reason;
      rollBack(connection, reason);
      if (fault.isServerError(reason) || reason instanceof StoreError) throw reason;
      throw new LostBeforeCommit('', { cause: reason });
    }
    if (!begun.value.isSafe) connection.release(false);
    requireSafe(begun.value, server);
    const { value } = result;
    const { pid } = connection;
    let commandTag: string;
    try {
      commandTag = (await connection.run('COMMIT')).command;
    } catch (error) {
      releaseAfter(connection, error);
      const isRefused = fault.isServerError(error) && !fault.endsConnection(error);
      if (error instanceof fault.UnknownCommitResult || isRefused) throw error;
      const status = await findTransactionStatus(begun.value, pid);
      if (status === 'aborted') throw new LostBeforeCommit('', { cause: error });
      if (status !== 'committed' || !(await checkStored({ dialect: 'postgres', query }, value).catch(() => false)))
        throw error;
      return value;
    }
    connections.release(connection);
    requireCommit(commandTag, server);
    return value;
  }

  /** Rolls back, and releases the connection if it still works. */
  function rollBack(connection: Connection, error: unknown): void {
    if ((!(error instanceof StoreError) || error instanceof fault.ConfigurationFault) && fault.endsConnection(error)) {
      releaseAfter(connection, error);
      return;
    }
    connection.run('ROLLBACK').then(
      () => connections.release(connection),
      () => connection.release(false),
    );
  }

  /** Resolves to the status of a transaction whose commit had no response, or to undefined if it is unknown. */
  async function findTransactionStatus({ xid, history }: BegunTransaction, pid: number): Promise<unknown> {
    const deadline = performance.now() + MAX_STATUS_CHECK_MS;
    while (history !== null && performance.now() < deadline) {
      const answer = query(RESOLVE_TRANSACTION, [xid, pid, history]).catch(() => null);
      const timeout = sleep(deadline - performance.now(), [] as readonly Row[], { ref: false });
      const rows = await Promise.race([answer, timeout]);
      if (rows !== null && rows[0]?.status !== 'in progress') return rows[0]?.status;
      await sleep(STATUS_POLL_MS);
    }
    return undefined;
  }

  const transaction: Database['transaction'] = (work, checkStored = async () => true) =>
    withRetries(() => runTransaction(work, checkStored));
  return { dialect: 'postgres' as const, slot: 0, withConnection, query, transaction };
}

/**
 * Begins a transaction, while the caller already sends its statements. A `single` one consists of one statement, or its
 * fate does not matter, so it needs no transaction id. If the settings on which durability depends are not in force
 * (`isSafe`), no message may be acknowledged.
 */
export async function beginTransaction(connection: Omit<Connection, 'release'>, kind: 'single' | 'transaction') {
  const { pid, history, prologue } = connection;
  if (prologue !== null) {
    const columns = [
      `pg_backend_pid() AS pid, ${IS_SAFE} AS safe`,
      ...(kind === 'single' ? [] : ['pg_current_xact_id()::text AS xid']),
      ...(kind === 'single' || history === null ? [] : [`${WRITE_HISTORY} AS history`]),
    ];
    connection.pid = 0;
    const { rows } = await connection.run(`${prologue}; SELECT ${columns.join(', ')}`);
    const row: Row = rows[0] ?? {};
    connection.pid = Number(row.pid);
    const toText = (value: unknown) => (value === undefined ? null : String(value));
    return { xid: toText(row.xid), history: toText(row.history), isSafe: row.safe === true };
  }
  const [begun, read] = await Promise.allSettled([
    connection.query('BEGIN ISOLATION LEVEL READ COMMITTED'),
    connection.query(READ_XID, [pid]),
  ]);
  if (begun.status === 'rejected') throw begun.reason;
  if (read.status === 'rejected') throw read.reason;
  return { xid: String(read.value[0]?.xid), history, isSafe: read.value[0]?.safe === true };
}

async function runSingleStatement(
  connection: Connection,
  statement: Statement | string,
  values: readonly unknown[] = [],
): Promise<readonly Row[]> {
  if (connection.prologue === null) return connection.query(statement, values);
  const [begun, result, commit] = await Promise.allSettled([
    beginTransaction(connection, 'single'),
    connection.query(statement, values),
    connection.run('COMMIT'),
  ]);
  if (begun.status === 'rejected') throw begun.reason;
  if (result.status === 'rejected') throw result.reason;
  if (commit.status === 'rejected') throw commit.reason;
  requireCommit(commit.value.command, connection.server);
  requireSafe(begun.value, connection.server);
  return result.value;
}

function requireSafe({ isSafe }: BegunTransaction, server: string): void {
  if (!isSafe) throw new StoreError(`${server}: the settings of the connection have changed. ${fault.SESSION_POOLING}`);
}

/** Throws if the transaction was rolled back: COMMIT of an aborted transaction returns ROLLBACK instead of an error. */
function requireCommit(commandTag: string, server: string): void {
  if (commandTag !== 'COMMIT') throw new StoreError(`${server}: the transaction was rolled back.`);
}

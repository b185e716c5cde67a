/**
 * The connection pool of this process, and the execution of statements and transactions. Connections are opened on
 * demand and reopened with exponential backoff and jitter.
 *
 * Guarantees: while the database is unavailable, a call fails within two seconds with an error message of one line. The
 * host that was used last is tried first. A statement or commit without a response fails within its time limit. If the
 * response to a commit is lost, a query determines whether the transaction was committed. A commit fails if its wait
 * for the synchronous standby was cancelled. Transient errors are retried. Calls reject with a StoreError.
 */
import type { PostgresSetting } from '../../config/settings.ts';
import type { HostPort } from '../../model/listen-address.ts';
import { StoreError } from '../error.ts';
import { type Connection, connectToServer, describeServer, WRITE_HISTORY } from './connection.ts';
import {
  ConfigurationFault,
  describeUndeclaredPooler,
  endsConnection,
  isConfigurationError,
  isServerError,
  isStalePlan,
  isStatementTimeout,
  isTransient,
  toStoreError,
  UnknownCommitResult,
} from './fault.ts';
import {
  type Database,
  forceDurableCommit,
  type Row,
  type Session,
  type Statement,
  type Transaction,
} from './session.ts';
import {
  beginTransaction,
  createSettingsError,
  requireCommit,
  runOnOneServer,
  runSingleStatement,
} from './transaction-start.ts';

/**
 * Maximum number of connections of a process. The following run at the same time: two batches of accepted messages, two
 * batches of settlements, a claim, the retention work, and reads.
 */
const MAX_CONNECTIONS = 8;
/** Maximum time that a call waits for a connection if none can be opened. */
const MAX_CONNECT_WAIT_MS = 2_000;
/** Maximum time that a call waits for a connection if all are busy. */
const MAX_BUSY_WAIT_MS = 10_000;
/** Exponential backoff between connection attempts: the first and the maximum delay. Half of each delay is random. */
const MIN_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 3_000;
/** After more than this many consecutive failed connection attempts, waiting calls fail immediately. */
const MAX_FAILURES = 3;

interface PoolOptions {
  readonly setting: PostgresSetting;
  /** The application name that the server shows for this process. */
  readonly application: string;
  /** Returns a random number in [0, 1). */
  readonly random: () => number;
  /** Time limit of one statement; default 15 s. */
  readonly statementTimeoutMs?: number;
}

interface Connections {
  /** The hosts and the database for error messages. */
  readonly server: string;
  /** Resolves to a connection for exclusive use until `release` or `drop`. Rejects with a StoreError. */
  acquire(): Promise<Connection>;
  release(connection: Connection): void;
  /** Ends the connection. */
  drop(connection: Connection): void;
  /** Replaces all open connections: idle connections immediately, and all others when they are released. */
  replaceAll(): void;
  /**
   * Replaces all open connections after `connection` has found a prepared statement that is not valid for a changed
   * schema. New connections share no prepared statement with the replaced ones.
   */
  renewPlans(connection: Connection): void;
  /**
   * Opens a connection outside the pool, and without the pooler if POSTRIDER_DATABASE_DIRECT is set.
   * `statementTimeoutMs` is the time limit of one statement. Rejects with a StoreError.
   */
  connectAlone(statementTimeoutMs?: number): Promise<Connection>;
  /** Waits until no connection is in use, and then closes all connections. */
  close(): Promise<void>;
}

interface Waiter {
  readonly resolve: (connection: Connection) => void;
  readonly reject: (error: StoreError) => void;
  timer: NodeJS.Timeout;
}

function isSameBackend(one: Connection, other: Connection): boolean {
  return one.pid === other.pid && one.host === other.host && one.history === other.history;
}

/** Opens no connection before the first call. */
function createConnections({ random, ...options }: PoolOptions): Connections {
  const { setting } = options;
  const server = describeServer(setting.hosts, setting.database);
  const openConnections = new Set<Connection>();
  const outdatedConnections = new WeakSet<Connection>();
  const idleConnections: Connection[] = [];
  const waiters: Waiter[] = [];
  let connectingCount = 0;
  let planGeneration = 0;
  let failureCount = 0;
  let backoffUntil = 0;
  let lastFault: StoreError | null = null;
  let preferredHost: HostPort | null = null;
  let retryTimer: NodeJS.Timeout | null = null;
  let closeCompletion: PromiseWithResolvers<void> | null = null;

  const now = () => performance.now();

  function acquire(): Promise<Connection> {
    if (closeCompletion !== null) return Promise.reject(new StoreError('the store is closed.'));
    const idleConnection = idleConnections.pop();
    if (idleConnection !== undefined) return Promise.resolve(idleConnection);
    return new Promise((resolve, reject) => {
      const startedAt = now();
      const onTimeout = () => {
        // A call waits longer for a busy connection than for a new connection.
        if (openConnections.size > 0 && now() - startedAt < MAX_BUSY_WAIT_MS) {
          waiter.timer = setTimeout(onTimeout, MAX_CONNECT_WAIT_MS);
          return;
        }
        waiters.splice(waiters.indexOf(waiter), 1);
        const busyText = `${server}: every connection was busy for ${MAX_BUSY_WAIT_MS / 1_000} s. Check the server for slow or blocked statements.`;
        const noConnectionText = `${server}: no connection within ${MAX_CONNECT_WAIT_MS / 1_000} s. Check the server, the network and its firewalls.`;
        reject(lastFault ?? new StoreError(openConnections.size > 0 ? busyText : noConnectionText));
      };
      const waiter: Waiter = { resolve, reject, timer: setTimeout(onTimeout, MAX_CONNECT_WAIT_MS) };
      waiters.push(waiter);
      growPool();
    });
  }

  /** Opens connections for waiting calls, up to the maximum number. Opens none during the backoff. */
  function growPool(): void {
    while (
      closeCompletion === null &&
      waiters.length > connectingCount &&
      openConnections.size + connectingCount < MAX_CONNECTIONS
    ) {
      const delayMs = backoffUntil - now();
      if (delayMs > 0) {
        retryTimer ??= setTimeout(() => {
          retryTimer = null;
          growPool();
        }, delayMs);
        return;
      }
      // After a failure only one connection attempt runs at a time.
      if (failureCount > 0 && connectingCount > 0) return;
      connectingCount += 1;
      connectToServer({ ...options, preferredHost, planGeneration }).then(addConnection, recordFailure);
    }
  }

  function addConnection(connection: Connection): void {
    // Two open connections use the same server connection only behind a pooler in transaction mode.
    if (setting.pooler === null && [...openConnections].some((other) => isSameBackend(other, connection))) {
      connection.destroy();
      recordFailure(new ConfigurationFault(describeUndeclaredPooler(server)));
      rejectWaiters(new ConfigurationFault(describeUndeclaredPooler(server)));
      return;
    }
    connectingCount -= 1;
    failureCount = 0;
    lastFault = null;
    preferredHost = connection.host;
    openConnections.add(connection);
    void connection.whenEnded.then(() => removeConnection(connection));
    release(connection);
    growPool();
  }

  function recordFailure(error: unknown): void {
    connectingCount -= 1;
    failureCount += 1;
    lastFault = toStoreError(error, server);
    const maxDelayMs = Math.min(MAX_BACKOFF_MS, MIN_BACKOFF_MS * 2 ** Math.min(failureCount - 1, 10));
    backoffUntil = now() + maxDelayMs * (0.5 + random() / 2);
    // If the error is a configuration error, or more than `MAX_FAILURES` consecutive attempts have failed, waiting
    // calls fail immediately.
    if (openConnections.size === 0 && (failureCount > MAX_FAILURES || isConfigurationError(error)))
      rejectWaiters(lastFault);
    growPool();
    resolveClose();
  }

  function rejectWaiters(error: StoreError): void {
    for (const { reject, timer } of waiters.splice(0)) {
      clearTimeout(timer);
      reject(error);
    }
  }

  function release(connection: Connection): void {
    if (!openConnections.has(connection)) return;
    if (outdatedConnections.has(connection)) {
      drop(connection);
      return;
    }
    const waiter = waiters.shift();
    if (waiter !== undefined) {
      clearTimeout(waiter.timer);
      waiter.resolve(connection);
    } else if (closeCompletion === null) idleConnections.push(connection);
    else void connection.close();
  }

  function drop(connection: Connection): void {
    connection.destroy();
    removeConnection(connection);
  }

  function removeConnection(connection: Connection): void {
    if (!openConnections.delete(connection)) return;
    const index = idleConnections.indexOf(connection);
    if (index >= 0) idleConnections.splice(index, 1);
    growPool();
    resolveClose();
  }

  function resolveClose(): void {
    if (openConnections.size === 0 && connectingCount === 0) closeCompletion?.resolve();
  }

  function replaceAll(): void {
    for (const connection of openConnections) outdatedConnections.add(connection);
    for (const connection of idleConnections.splice(0)) drop(connection);
  }

  return {
    server,
    acquire,
    release,
    drop,
    replaceAll,
    renewPlans(connection) {
      if (connection.planGeneration === planGeneration) planGeneration += 1;
      replaceAll();
    },
    async connectAlone(statementTimeoutMs) {
      const { direct } = setting;
      const timeLimit = statementTimeoutMs === undefined ? {} : { statementTimeoutMs };
      if (direct === null) {
        try {
          return await connectToServer({ ...options, preferredHost, ...timeLimit });
        } catch (error) {
          throw toStoreError(error, server);
        }
      }
      try {
        return await connectToServer({ ...options, ...timeLimit, setting: direct });
      } catch (error) {
        const { message } = toStoreError(error, describeServer(direct.hosts, direct.database));
        throw new StoreError(message.replaceAll('POSTRIDER_DATABASE', 'POSTRIDER_DATABASE_DIRECT'));
      }
    },
    close() {
      if (closeCompletion !== null) return closeCompletion.promise;
      closeCompletion = Promise.withResolvers<void>();
      if (retryTimer !== null) clearTimeout(retryTimer);
      rejectWaiters(new StoreError('the store is closed.'));
      for (const connection of idleConnections.splice(0)) void connection.close();
      resolveClose();
      return closeCompletion.promise;
    },
  };
}

/** Maximum number of attempts of a transaction that fails because of a deadlock or a concurrent change. */
const MAX_ATTEMPTS = 6;
/**
 * If the connection is lost before the commit, the transaction is retried once, but only within this time after its
 * start.
 */
const MAX_RETRY_AFTER_LOSS_MS = 2_000;
/** Maximum time for the queries that determine the result of a commit without a response. */
const MAX_STATUS_CHECK_MS = 6_000;
const STATUS_POLL_MS = 100;

const COMMIT = 'COMMIT';
const ROLLBACK = 'ROLLBACK';
const TRANSACTION_STATUS: Statement = {
  name: 'transaction_status',
  text: 'SELECT pg_xact_status($1::text::xid8) AS status',
};
const TRACKING_PROBE: Statement = { name: 'tracking_probe', text: 'SELECT 1 AS one' };
const READ_HISTORY: Statement = { name: 'write_history', text: `SELECT ${WRITE_HISTORY} AS history` };
const TERMINATE_TRANSACTION: Statement = {
  name: 'terminate_transaction',
  text: 'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND backend_xid = $2::text::xid8::xid',
};
/**
 * Ends server connections that wait for the standby. The statement timeout does not apply to a commit, so an abandoned
 * connection would otherwise wait for the standby, hold its locks, and count towards max_connections.
 */
const TERMINATE_WAITS: Statement = {
  name: 'terminate_waits',
  text: `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE pid = ANY($1::int[]) AND usename = current_user AND wait_event = 'SyncRep'`,
};

export interface Pool extends Database {
  /**
   * Opens a connection outside the pool, and without the pooler if POSTRIDER_DATABASE_DIRECT is set.
   * `statementTimeoutMs` is the time limit of one statement.
   */
  connect(statementTimeoutMs?: number): Promise<Connection>;
  /** Runs a synced commit that changes no data. */
  sync(): Promise<void>;
  /** The hosts, the ports and the database for error messages. */
  readonly server: string;
  /** The setting with which the connections are opened. */
  readonly setting: Pick<PostgresSetting, 'schema' | 'pooler' | 'direct'>;
  /**
   * Rejects with a StoreError if a pooler in transaction mode was not declared, or does not track prepared statements
   * although the setting states that it does. Opens no further connection if there is no pooler.
   */
  requireDeclaredPooler(): Promise<void>;
  /** Waits for calls in progress, then closes every connection. */
  close(): Promise<void>;
}

type TransactionResult<T> =
  | { readonly kind: 'done'; readonly value: T }
  /** `connectionLost`: the connection was lost before the commit, so nothing is stored. */
  | { readonly kind: 'failed'; readonly error: unknown; readonly connectionLost: boolean };

/** Opens no connection before the first call. */
export function createPool(options: PoolOptions): Pool {
  const connections = createConnections(options);
  const { server } = connections;
  /** Process ids of abandoned server connections that may still be waiting for the standby. */
  const abandonedPids = new Set<number>();

  /**
   * Ends abandoned server connections that wait for the standby. If the query fails, it is repeated when the next
   * connection is abandoned.
   */
  function terminateWaits(pid: number): void {
    abandonedPids.add(pid);
    const pids = [...abandonedPids];
    withConnection((connection) =>
      runSingleStatement(connection, server, TERMINATE_WAITS, [pids], () => undefined),
    ).then(
      () => {
        for (const abandonedPid of pids) abandonedPids.delete(abandonedPid);
      },
      () => undefined,
    );
  }

  /**
   * Releases a connection after `error`, or ends the connection if it can no longer be used. `pid` is the process id of
   * the server connection; null if this id is unknown.
   */
  function releaseAfter(connection: Connection, error: unknown, pid: number | null): void {
    // Prepared statements of existing connections are not valid for a changed schema. After a timeout on one
    // connection, the other connections probably use the same broken network path.
    if (isStalePlan(error)) connections.renewPlans(connection);
    else if (isStatementTimeout(error)) connections.replaceAll();
    if (endsConnection(error)) connections.drop(connection);
    else connections.release(connection);
    if (isStatementTimeout(error) && pid !== null) terminateWaits(pid);
  }

  async function withConnection<T>(
    work: (connection: Connection, onBegun: (pid: number) => void) => Promise<T>,
  ): Promise<T> {
    const connection = await connections.acquire();
    let pid = connection.prologue === null ? connection.pid : null;
    try {
      const value = await work(connection, (connectionPid) => {
        pid = connectionPid;
      });
      connections.release(connection);
      return value;
    } catch (error) {
      releaseAfter(connection, error, pid);
      throw error;
    }
  }

  async function requireDeclaredPooler(): Promise<void> {
    if (options.setting.tracksStatements) return requireStatementTracking();
    if (options.setting.pooler !== null) return;
    await withConnection(async (connection) => {
      if (!connection.isPooled) return;
      const [row] = await connection.query({ name: '', text: 'SELECT pg_backend_pid() AS pid' }, []);
      if (row?.pid !== connection.pid) throw new ConfigurationFault(describeUndeclaredPooler(server));
      // The first connection is idle. A pooler in transaction mode assigns the server connection of the first
      // connection to the second connection, and `addConnection` detects this.
      await withConnection(async () => undefined).catch((error: unknown) => {
        if (error instanceof ConfigurationFault) throw error;
      });
    });
  }

  /**
   * Rejects if the pooler does not track prepared statements. Two connections prepare a statement with the same name.
   * Without tracking, both use the same server connection, which refuses the second statement.
   */
  async function requireStatementTracking(): Promise<void> {
    await withConnection(async (connection) => {
      await runSingleStatement(connection, server, TRACKING_PROBE, [], () => undefined);
      await withConnection((other) => runSingleStatement(other, server, TRACKING_PROBE, [], () => undefined));
    });
  }

  /** Runs `tryTransaction` until it succeeds or fails permanently. */
  async function withRetries<T>(tryTransaction: () => Promise<TransactionResult<T>>): Promise<T> {
    const startedAt = performance.now();
    for (let attempt = 1; ; attempt += 1) {
      const result = await tryTransaction();
      if (result.kind === 'done') return result.value;
      const isRetryable =
        isTransient(result.error) ||
        (result.connectionLost && attempt === 1 && performance.now() - startedAt < MAX_RETRY_AFTER_LOSS_MS);
      if (attempt >= MAX_ATTEMPTS || !isRetryable) throw toStoreError(result.error, server);
      await sleep(isTransient(result.error) ? options.random() * 10 * 2 ** attempt : 0);
    }
  }

  function query(statement: Statement | string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    return withRetries(async () => {
      try {
        return {
          kind: 'done',
          value: await withConnection((connection, onBegun) =>
            runSingleStatement(connection, server, statement, values, onBegun),
          ),
        };
      } catch (error) {
        // If the connection is lost, it is unknown whether a single statement was executed, so the statement is not
        // repeated.
        return { kind: 'failed', error, connectionLost: false };
      }
    });
  }

  async function runOnce<T>(
    work: (transaction: Transaction) => Promise<T>,
    checkStored: ((session: Session, value: T) => Promise<boolean>) | undefined,
  ): Promise<TransactionResult<T>> {
    let connection: Connection;
    try {
      connection = await connections.acquire();
    } catch (error) {
      return { kind: 'failed', error, connectionLost: false };
    }
    const { slot } = connection;
    let hasTransactionEnded = false;
    const session: Transaction = {
      dialect: 'postgres',
      slot,
      query: (statement, values) =>
        hasTransactionEnded
          ? Promise.reject(new StoreError('a statement was sent after its transaction had ended.'))
          : connection.query(statement, values),
    };
    const beginResult = beginTransaction(connection, 'transaction');
    const workResult = (async () => work(session))();
    // Waits until both the start of the transaction and `work` have completed, so that no statement of this transaction
    // is sent on the connection after the transaction has ended.
    const [begun, settledWork] = await Promise.allSettled([beginResult, workResult]);
    hasTransactionEnded = true;
    if (begun.status === 'fulfilled' && settledWork.status === 'fulfilled' && !begun.value.isSafe) {
      connections.drop(connection);
      return { kind: 'failed', error: createSettingsError(server), connectionLost: false };
    }
    if (begun.status === 'rejected' || settledWork.status === 'rejected') {
      const reason: unknown =
        begun.status === 'rejected' ? begun.reason : settledWork.status === 'rejected' ? settledWork.reason : null;
      rollBack(connection, reason, begun.status === 'fulfilled' ? begun.value.pid : null);
      return {
        kind: 'failed',
        error: reason,
        connectionLost: !isServerError(reason) && !(reason instanceof StoreError),
      };
    }
    const { xid, pid, history } = begun.value;
    try {
      const commandTag = await connection.runCommand(COMMIT);
      connections.release(connection);
      requireCommit(commandTag, server);
      return { kind: 'done', value: settledWork.value };
    } catch (error) {
      if (error instanceof StoreError && !(error instanceof UnknownCommitResult))
        return { kind: 'failed', error, connectionLost: false };
      releaseAfter(connection, error, pid);
      if (error instanceof UnknownCommitResult) return { kind: 'failed', error, connectionLost: false };
      if (isServerError(error) && !endsConnection(error)) return { kind: 'failed', error, connectionLost: false };
      const status = history === null || xid === null ? 'unknown' : await findTransactionStatus(xid, pid, history);
      if (status !== 'committed') return { kind: 'failed', error, connectionLost: status === 'aborted' };
      const isStored =
        checkStored === undefined ||
        (await withConnection((statusConnection) =>
          runOnOneServer(statusConnection, server, (statusSession) => checkStored(statusSession, settledWork.value)),
        ).catch(() => false));
      return isStored ? { kind: 'done', value: settledWork.value } : { kind: 'failed', error, connectionLost: false };
    }
  }

  /** Rolls back, and releases the connection if it still works. */
  function rollBack(connection: Connection, error: unknown, pid: number | null): void {
    if ((!(error instanceof StoreError) || error instanceof ConfigurationFault) && endsConnection(error)) {
      releaseAfter(connection, error, pid);
      return;
    }
    connection.runCommand(ROLLBACK).then(
      () => connections.release(connection),
      () => connections.drop(connection),
    );
  }

  /** Queries the server for the result of a transaction whose commit had no response. */
  async function findTransactionStatus(
    xid: string,
    pid: number,
    history: string,
  ): Promise<'committed' | 'aborted' | 'unknown'> {
    const deadline = performance.now() + MAX_STATUS_CHECK_MS;
    while (performance.now() < deadline) {
      try {
        // The check ends with a durable commit, which waits for the standby as the original commit did. The check must
        // complete within the remaining time.
        const status = await withTimeout(
          deadline - performance.now(),
          withConnection((connection) =>
            runOnOneServer(connection, server, async (session) => {
              const isSameHistory = (await readHistory(connection, session)) === history;
              // On another timeline (after a failover or a restore), the id may be that of another transaction, so the
              // result is unknown.
              return isSameHistory ? queryStatus(session, xid, pid) : 'unknown';
            }),
          ),
        );
        if (status === undefined) return 'unknown';
        if (status !== 'in progress') return status;
      } catch {
        // The loop repeats the query until the deadline.
      }
      await sleep(STATUS_POLL_MS);
    }
    return 'unknown';
  }

  return {
    dialect: 'postgres',
    server,
    setting: options.setting,
    requireDeclaredPooler,
    query,
    transaction: (work, stored) => withRetries(() => runOnce(work, stored)),
    connect: connections.connectAlone,
    sync: () => forceDurableCommit({ dialect: 'postgres', query }),
    close: connections.close,
  };
}

/** Reads the write history of the server on which `session` runs. */
async function readHistory({ prologue, history }: Connection, session: Session): Promise<unknown> {
  if (prologue === null) return history;
  const [row] = await session.query(READ_HISTORY, []);
  return row?.history;
}

async function queryStatus(
  session: Session,
  xid: string,
  pid: number,
): Promise<'committed' | 'aborted' | 'in progress' | 'unknown'> {
  const [row] = await session.query(TRANSACTION_STATUS, [xid]);
  switch (row?.status) {
    case 'committed':
      // The connection may have been lost during the wait for the standby, so a durable commit waits for the standby
      // again.
      await forceDurableCommit(session);
      return 'committed';
    case 'aborted':
      return 'aborted';
    case 'in progress':
      // The connection of the transaction is lost. The transaction cannot complete, but still holds locks, so its
      // server process is terminated.
      await session.query(TERMINATE_TRANSACTION, [pid, xid]);
      return 'in progress';
    default:
      return 'unknown';
  }
}

/** Resolves to the result of `work`, or to undefined after `ms` milliseconds. */
async function withTimeout<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(resolve, Math.max(0, ms), undefined);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

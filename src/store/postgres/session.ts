/**
 * Defines the interfaces that execute statements: sessions, transactions and the pool. database.ts implements them. The
 * other files of this folder contain the SQL.
 */

/** One row. `bigint` columns are numbers, `uuid` and `text` columns are strings, and `boolean` columns are booleans. */
export type Row = Readonly<Record<string, unknown>>;

/** A statement, which each connection prepares once under its name. */
export interface Statement {
  /** Two statements with different texts have different names. */
  readonly name: string;
  readonly text: string;
}

export interface Session {
  /**
   * Runs a statement. Concurrent calls share a round trip (the pipeline mode of libpq), so a transaction needs one
   * round trip each time it waits for results.
   */
  query(statement: Statement, values: readonly unknown[]): Promise<readonly Row[]>;
}

export interface Transaction extends Session {
  /**
   * The number of the counter slot of the connection. Most connections that are open at the same time have different
   * slots. Transactions that count in different slots do not wait for each other.
   */
  readonly slot: number;
}

export interface Database extends Session {
  /**
   * Runs `work` in one READ COMMITTED transaction with synchronous commit. Resolves after the commit is on disk.
   * Rejects with a StoreError if the commit is not confirmed. If the connection is lost during the commit, the result
   * is determined by `pg_xact_status` and, if given, by `checkStored`. After a crash the server may reuse the
   * transaction id, so a caller that acknowledges messages must provide `checkStored`, which checks that the rows
   * exist. If the wait for the synchronous standby was cancelled, the call rejects although the rows are visible to
   * other transactions. A caller whose result depends on rows of another transaction must therefore call
   * `forceDurableCommit`. Serialization failures and deadlocks are retried.
   */
  transaction<T>(
    work: (transaction: Transaction) => Promise<T>,
    checkStored?: (session: Session, value: T) => Promise<boolean>,
  ): Promise<T>;
}

// The commit of a transaction without writes does not wait for the disk or the standby, even if the transaction has an
// id (RecordTransactionCommit in xact.c). This statement writes to the WAL but to no table, so that concurrent callers
// do not wait for the lock of a row.
const WRITE_WAL_MESSAGE: Statement = {
  name: 'write_wal_message',
  text: "SELECT pg_logical_emit_message(true, 'postrider', ''::text)",
};

/**
 * Makes the commit of the transaction wait for the disk and the synchronous standby, even if the transaction changes no
 * row. Outside a transaction, the statement is a transaction by itself. After the commit, all rows that were previously
 * read on the same connection are durable.
 */
export async function forceDurableCommit(session: Session): Promise<void> {
  await session.query(WRITE_WAL_MESSAGE, []);
}

/**
 * The interfaces on which the statements of this store run: sessions, transactions and the pool. database.ts implements
 * them; the other files of this folder contain the SQL.
 */

/** One row. `bigint` columns are numbers, `uuid` and `text` columns strings, `boolean` columns booleans. */
export type Row = Readonly<Record<string, unknown>>;

/** A statement, prepared once per connection under its name. */
export interface Statement {
  /** Unique for its text. */
  readonly name: string;
  readonly text: string;
}

export interface Session {
  /**
   * Runs a statement. Concurrent calls share a round trip (libpq's pipeline mode), so a transaction has as many round
   * trips as times it waits.
   */
  query(statement: Statement, values: readonly unknown[]): Promise<readonly Row[]>;
}

export interface Transaction extends Session {
  /**
   * A small number, different for all connections of this process and distributed over processes. Counters kept per
   * slot need no waiting.
   */
  readonly slot: number;
}

export interface Database extends Session {
  /**
   * Runs `work` in one READ COMMITTED transaction with synchronous commit. Resolves after the commit is on disk.
   * Rejects with a StoreError if the commit is not confirmed. If the connection is lost during the commit, the server's
   * report of the transaction decides (`pg_xact_status`), and `stored`, if given: after a crash the server may reuse
   * the transaction id, so a caller that acknowledges messages checks for the rows themselves. If the wait for the
   * synchronous standby was cancelled, it rejects although the rows are visible: an answer that relies on rows of
   * another transaction calls `forceDurableCommit`. Serialization failures and deadlocks are retried.
   */
  transaction<T>(
    work: (transaction: Transaction) => Promise<T>,
    checkStored?: (session: Session, value: T) => Promise<boolean>,
  ): Promise<T>;
}

// The commit of a transaction without writes does not wait, even if it has an id (RecordTransactionCommit in xact.c).
// This statement writes to the WAL but to no table, so concurrent callers do not wait for one row.
const WRITE_WAL_MESSAGE: Statement = {
  name: 'prove',
  text: "SELECT pg_logical_emit_message(true, 'postrider', ''::text)",
};

/**
 * Makes the commit of the transaction wait for the disk and the synchronous standby, even if it changes no row. Outside
 * a transaction it is its own transaction. It covers everything read before on the same connection.
 */
export async function forceDurableCommit(session: Session): Promise<void> {
  await session.query(WRITE_WAL_MESSAGE, []);
}

/**
 * What the statements of this store run on: a pool of few connections, seen as single statements and transactions.
 * database.ts makes it; the other files of this folder take it and hold the SQL.
 */

/** One row: `bigint` columns arrive as numbers, `uuid` and `text` as strings, `boolean` as booleans. */
export type Row = Readonly<Record<string, unknown>>;

/** A statement, prepared once on each connection under its name. */
export interface Statement {
  /** Unique for its text. */
  readonly name: string;
  readonly text: string;
}

export interface Session {
  /**
   * Runs a statement. Calls made without waiting for one another travel together (libpq's pipeline mode), so a
   * transaction costs as many round trips as it waits for.
   */
  query(statement: Statement, values: readonly unknown[]): Promise<readonly Row[]>;
}

export interface Transaction extends Session {
  /** Small number of the connection, different for all connections of this process and spread over processes: counters kept by slot are never waited for. */
  readonly slot: number;
}

export interface Database extends Session {
  /**
   * Runs `work` in one READ COMMITTED transaction with synchronous commit. Resolves once the commit is on disk, rejects
   * with a StoreError where nothing of it is known to be stored. A connection lost during the commit is answered by what
   * the server says became of the transaction (`pg_xact_status`), and by `stored`, where it is given: after a crash the
   * server may give the same number to another transaction, so whoever tells the outside world looks for the rows
   * themselves. Where the wait for the synchronous standby was cancelled it rejects, although the rows are visible: an answer
   * that rests on rows of another transaction calls `prove` (proof.ts). Serialization faults and deadlocks are tried again.
   */
  transaction<T>(
    work: (transaction: Transaction) => Promise<T>,
    stored?: (session: Session, value: T) => Promise<boolean>,
  ): Promise<T>;
}

// A transaction that writes nothing waits for nothing, even where it has a number (RecordTransactionCommit of xact.c). This
// writes to the log and to no table, so that no two callers wait for one row.
const PROVE: Statement = { name: 'prove', text: "SELECT pg_logical_emit_message(true, 'postrider', ''::text)" };

/**
 * Makes the commit of the transaction wait for the disk and for the synchronous standby, even where it changes no row. Run
 * alone, it is a transaction of its own. The proof holds for what was read on the same connection.
 */
export async function forceDurableCommit(session: Session): Promise<void> {
  await session.query(PROVE, []);
}

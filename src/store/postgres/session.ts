/** Defines the interfaces that execute statements: sessions, transactions and the pool. */
import type { Row } from '../transaction.ts';

export { forceDurableCommit, type Row } from '../transaction.ts';

/** A statement, which each connection prepares once under its name. */
export interface Statement {
  /** Two statements with different texts have different names. */
  readonly name: string;
  readonly text: string;
}

/** The statements of the shared modules by their text. Their names are unique within the process. */
const SHARED_STATEMENTS = new Map<string, Statement>();

export function toStatement(statement: Statement | string): Statement {
  if (typeof statement !== 'string') return statement;
  let named = SHARED_STATEMENTS.get(statement);
  if (named === undefined) {
    named = { name: `shared_${SHARED_STATEMENTS.size}`, text: statement };
    SHARED_STATEMENTS.set(statement, named);
  }
  return named;
}

export interface Session {
  readonly dialect: 'postgres';
  /**
   * Runs a statement. Concurrent calls share a round trip (the pipeline mode of libpq), so a transaction needs one
   * round trip each time it waits for results.
   */
  query(statement: Statement | string, values?: readonly unknown[]): Promise<readonly Row[]>;
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

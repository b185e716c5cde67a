/** Defines the interfaces that execute statements: sessions, transactions and the pool. */
import type { Row } from '../transaction.ts';

export { forceDurableCommit, type Row } from '../transaction.ts';

/** A statement, which each connection prepares once under its name. Without a name it is prepared for each use. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

/** By their text. Their names are unique within the process. */
const STATEMENTS = new Map<string, Statement>();

export function toStatement(statement: Statement | string): Statement {
  if (typeof statement !== 'string') return statement;
  const named = STATEMENTS.get(statement) ?? { name: `s${STATEMENTS.size}`, text: statement };
  STATEMENTS.set(statement, named);
  return named;
}

export interface Session {
  readonly dialect: 'postgres';
  /** Concurrent calls share a round trip (the pipeline mode of libpq). */
  query(statement: Statement | string, values?: readonly unknown[]): Promise<readonly Row[]>;
}

export interface Transaction extends Session {
  /**
   * The counter slot of the connection. Transactions that count in different slots do not wait for each other, and most
   * connections that are open at the same time have different slots.
   */
  readonly slot: number;
}

export interface Database extends Session {
  /**
   * Runs `work` in one READ COMMITTED transaction, again after a serialization failure or a deadlock. Rejects with a
   * StoreError if the commit is not confirmed. After a crash the server may reuse the id of a transaction whose commit
   * had no response, so a caller that acknowledges messages must check in `checkStored` that the rows exist. If the wait
   * for the standby was cancelled, the call rejects although others see the rows. A caller whose result depends on rows
   * of another transaction must therefore call `forceDurableCommit`.
   */
  transaction<T>(
    work: (transaction: Transaction) => Promise<T>,
    checkStored?: (session: Session, value: T) => Promise<boolean>,
  ): Promise<T>;
}

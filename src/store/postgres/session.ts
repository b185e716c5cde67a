/** Defines the interfaces that execute statements: sessions, transactions and the pool. */
import type { Row, Statement, Transaction as StoreTransaction } from '../transaction.ts';

export { forceDurableCommit, type Row, type Statement } from '../transaction.ts';

/** By their text. Their names are unique within the process. */
const STATEMENTS = new Map<string, Statement>();

export function toStatement(statement: Statement | string): Statement {
  if (typeof statement !== 'string') return statement;
  const named = STATEMENTS.get(statement) ?? { name: `s${STATEMENTS.size}`, text: statement };
  STATEMENTS.set(statement, named);
  return named;
}

/** Returns the array parameters of a statement, one for each column of the rows. */
export function toColumns<Item>(items: readonly Item[], toRow: (item: Item) => readonly unknown[]): unknown[][] {
  const found = items.map(toRow);
  return (found[0] ?? []).map((_, column) => found.map((row) => row[column]));
}

export interface Session {
  readonly dialect: 'postgres';
  /** Concurrent calls share a round trip (the pipeline mode of libpq). */
  query(statement: Statement | string, values?: readonly unknown[]): Promise<readonly Row[]>;
}

export type Transaction = Session & Pick<StoreTransaction, 'slot'>;

export interface Database extends Transaction {
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

/** One row. `bigint` columns are numbers; `uuid` and `text` columns are strings; SQLite reads booleans as 0 and 1. */
export type Row = Readonly<Record<string, unknown>>;

/** A statement, which each connection prepares once under its name. Without a name it is prepared for each use. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

/** The transaction in which the modules of both databases run. */
export interface Transaction {
  readonly dialect: 'sqlite' | 'postgres';
  /**
   * The counter slot of the connection. Transactions that count in different slots do not wait for each other, and most
   * connections that are open at the same time have different slots. 0 on SQLite.
   */
  readonly slot: number;
  /**
   * Runs a statement with parameters `$1`, `$2`. The SQL is PostgreSQL's; `toSqlite` lists what is translated. Of the
   * array functions only `= ANY($1::type[])` exists in both. Statements that do not depend on each other are sent
   * together (`Promise.all`), because PostgreSQL answers them in one round trip. On SQLite a module may await nothing
   * but statements, so that no other operation runs in its transaction.
   */
  query(statement: Statement | string, values?: readonly unknown[]): Promise<readonly Row[]>;
}

/** SQL for the time of the store: the parameter, or if it is null, the clock of the database server, in ms. */
export function formatStoreTime({ dialect }: Pick<Transaction, 'dialect'>, parameter: string): string {
  return dialect === 'sqlite'
    ? parameter
    : `coalesce(${parameter}::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)`;
}

/**
 * Makes the commit of the transaction wait for the disk and the synchronous standby, even if the transaction changes no
 * row. After the commit, all rows that were previously read on the same connection are durable. PostgreSQL commits a
 * transaction without writes at once, even if it has an id (RecordTransactionCommit in xact.c). The statement writes to
 * the WAL but to no table, so that concurrent callers do not wait for the lock of a row.
 */
export async function forceDurableCommit({ dialect, query }: Pick<Transaction, 'dialect' | 'query'>): Promise<void> {
  if (dialect === 'postgres') await query("SELECT pg_logical_emit_message(true, 'postrider', ''::text)");
}

/** One row. `bigint` columns are numbers; `uuid` and `text` columns are strings; SQLite reads booleans as 0 and 1. */
export type Row = Readonly<Record<string, unknown>>;

/** The transaction in which the modules of both databases run. */
export interface Transaction {
  readonly dialect: 'sqlite' | 'postgres';
  /**
   * Runs a statement with parameters `$1`, `$2`. The SQL is PostgreSQL's; `toSqlite` lists what is translated. Of the
   * array functions only `= ANY($1::type[])` exists in both. Statements that do not depend on each other are sent
   * together (`Promise.all`), because PostgreSQL answers them in one round trip. On SQLite a module may await nothing
   * but statements, so that no other operation runs in its transaction.
   */
  query(sql: string, values?: readonly unknown[]): Promise<readonly Row[]>;
}

/**
 * Makes the commit of the transaction wait for the disk and the synchronous standby, even if the transaction changes no
 * row. After the commit, all rows that were previously read on the same connection are durable. PostgreSQL commits a
 * transaction without writes at once, even if it has an id (RecordTransactionCommit in xact.c). The statement writes to
 * the WAL but to no table, so that concurrent callers do not wait for the lock of a row.
 */
export async function forceDurableCommit({ dialect, query }: Transaction): Promise<void> {
  if (dialect === 'postgres') await query("SELECT pg_logical_emit_message(true, 'postrider', ''::text)");
}

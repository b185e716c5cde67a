import { type Row, readInteger } from './rules/rows.ts';

export type { Row } from './rules/rows.ts';

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

/** The channel on which PostgreSQL notifies the nodes of a committed change. */
export const DIRECTORY_CHANNEL = 'postrider_directory';

/** Increments the revision of the directory. Returns the new one, which the transaction writes to the rows that it changes. */
export async function incrementRevision(tx: Transaction): Promise<number> {
  const [[row = {}]] = await Promise.all([
    tx.query('UPDATE installation SET revision = revision + 1 RETURNING revision'),
    tx.dialect === 'postgres' ? tx.query(`SELECT pg_notify('${DIRECTORY_CHANNEL}', '')`) : null,
  ]);
  return readInteger(row, 'revision');
}

/**
 * Deletes the rows of `table` with the keys that `clauses` selects, without those that another transaction has locked.
 * Resolves to their number.
 */
export async function deleteRows(
  tx: Pick<Transaction, 'query'>,
  table: string,
  key: string,
  clauses: string,
  values: readonly unknown[],
): Promise<number> {
  const deleted = await tx.query(
    `DELETE FROM ${table} WHERE (${key}) IN (SELECT ${key} FROM ${table} ${clauses} FOR UPDATE SKIP LOCKED) RETURNING 1 AS one`,
    values,
  );
  return deleted.length;
}

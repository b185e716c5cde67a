import { readInteger } from './rules/rows.ts';
import type { Transaction } from './transaction.ts';

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

/**
 * The directory: the accounts, keys, domains and holds that running nodes keep in memory. Every change increments one revision;
 * its row stays locked until the commit, so the order of revisions is the order of commits, and a node reads only rows
 * with a revision after its last.
 */
import type { DirectoryChanges, FoundKeys } from '../model/account.ts';
import { readDomainsSince } from './domains.ts';
import { readHoldsSince } from './holds.ts';
import { readRoutingSince } from './routes.ts';
import * as rows from './rules/rows.ts';
import type { Transaction } from './transaction.ts';

/** On PostgreSQL, the messages of an account without limits are counted per connection slot (account_usage). */
export const SELECT_ACCOUNTS = {
  sqlite: 'SELECT * FROM account a',
  postgres: `SELECT a.*, (a.volume_used + coalesce((SELECT sum(u.emails) FROM account_usage u
    WHERE u.account_id = a.id), 0))::bigint AS volume_used FROM account a`,
} as const;

export async function selectAccounts(tx: Transaction, clause: string, values: readonly unknown[] = []) {
  return (await tx.query(`${SELECT_ACCOUNTS[tx.dialect]} ${clause}`, values)).map(rows.toAccount);
}

/** Returns the changes after `revision`, or null if there is none. */
export async function readDirectorySince(tx: Transaction, revision: number): Promise<DirectoryChanges | null> {
  const [row = {}] = await tx.query('SELECT revision FROM installation');
  const latestRevision = rows.readInteger(row, 'revision');
  if (latestRevision <= revision) return null;
  const [accounts, keys, domains, holds, routing] = await Promise.all([
    selectAccounts(tx, 'WHERE a.revision > $1 ORDER BY a.id', [revision]),
    tx.query('SELECT * FROM api_key WHERE revision > $1 ORDER BY id', [revision]),
    readDomainsSince(tx, revision),
    readHoldsSince(tx, revision),
    readRoutingSince(tx, revision),
  ]);
  // A change that is committed after the revision was read may be included. The next poll then reads it again.
  return { revision: latestRevision, accounts, keys: keys.map(rows.toApiKey), ...domains, holds, routing };
}

/** Returns the keys that have these hashes, and their accounts. */
export async function findKeys(tx: Transaction, hashes: readonly string[]): Promise<FoundKeys> {
  // One statement reads one state of the database, so no key is newer than the revision.
  const found = await tx.query(
    `SELECT k.*, p.revision AS directory_revision FROM installation p, api_key k
     WHERE k.hash = ANY($1::text[]) ORDER BY k.id`,
    [hashes],
  );
  const [first] = found;
  if (first === undefined) return { revision: 0, accounts: [], keys: [] };
  const keys = found.map(rows.toApiKey);
  const ids = [...new Set(keys.map(({ accountId }) => accountId))];
  const accounts = await selectAccounts(tx, 'WHERE a.id = ANY($1::int[]) ORDER BY a.id', [ids]);
  return { revision: rows.readInteger(first, 'directory_revision'), accounts, keys };
}

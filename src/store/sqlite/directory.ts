/**
 * Reads the directory: the accounts, keys and domains that running nodes cache. Every change increments one revision
 * counter, so that a node reads only the changes after the last revision that it has read.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { DirectoryChanges, FoundKeys } from '../../model/account.ts';
import * as rows from '../rules/rows.ts';
import type { DomainChanges } from './domains.ts';

export function prepareDirectory(database: DatabaseSync, readDomainsSince: (revision: number) => DomainChanges) {
  const incrementRevision = database.prepare('UPDATE installation SET revision = revision + 1 RETURNING revision');
  const selectRevision = database.prepare('SELECT revision FROM installation');
  const selectChangedAccounts = database.prepare('SELECT * FROM account WHERE revision > ? ORDER BY id');
  const selectChangedKeys = database.prepare('SELECT * FROM api_key WHERE revision > ? ORDER BY id');
  const selectKeysByHash = database.prepare(
    'SELECT * FROM api_key WHERE hash IN (SELECT value FROM json_each(?)) ORDER BY id',
  );
  const selectAccount = database.prepare('SELECT * FROM account WHERE id = ?');

  return {
    incrementRevision: (): number => rows.readInteger(incrementRevision.get() ?? {}, 'revision'),
    /** Returns the changes after `revision`, or null if there is no change. */
    readChangesSince(revision: number): DirectoryChanges | null {
      const latestRevision = rows.readInteger(selectRevision.get() ?? {}, 'revision');
      if (latestRevision <= revision) return null;
      return {
        revision: latestRevision,
        accounts: selectChangedAccounts.all(revision).map(rows.toAccount),
        keys: selectChangedKeys.all(revision).map(rows.toApiKey),
        ...readDomainsSince(revision),
      };
    },
    /** Returns the keys that have these hashes, and the accounts of these keys. */
    findKeys(hashes: readonly string[]): FoundKeys {
      // The revision is read first. Another process may commit between the statements; the rows are then newer than the
      // revision, which is safe.
      const revision = rows.readInteger(selectRevision.get() ?? {}, 'revision');
      const foundKeys = selectKeysByHash.all(JSON.stringify(hashes)).map(rows.toApiKey);
      const accounts = [...new Set(foundKeys.map(({ accountId }) => accountId))].map((id) =>
        rows.toAccount(selectAccount.get(id) ?? {}),
      );
      return { revision, accounts, keys: foundKeys };
    },
  };
}

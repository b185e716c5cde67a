/**
 * The directory: accounts, keys and domains that running nodes keep by heart. One counter grows with every change of any
 * of them, so that a node asks only for what it has not seen.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { DirectoryChanges } from '../store.ts';
import type { DomainChanges } from './domains.ts';
import * as rows from './rows.ts';

export function prepareDirectory(database: DatabaseSync, domainsSince: (revision: number) => DomainChanges) {
  const bump = database.prepare('UPDATE meta SET revision = revision + 1 RETURNING revision');
  const read = database.prepare('SELECT revision FROM meta');
  const accounts = database.prepare('SELECT * FROM account WHERE revision > ? ORDER BY id');
  const keys = database.prepare('SELECT * FROM api_key WHERE revision > ? ORDER BY id');

  return {
    nextRevision: (): number => rows.int(bump.get() ?? {}, 'revision'),
    /** What changed after `revision`, or null where nothing did. */
    since(revision: number): DirectoryChanges | null {
      const newest = rows.int(read.get() ?? {}, 'revision');
      if (newest <= revision) return null;
      return {
        revision: newest,
        accounts: accounts.all(revision).map(rows.account),
        keys: keys.all(revision).map(rows.apiKey),
        ...domainsSince(revision),
      };
    },
  };
}

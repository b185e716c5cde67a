/** Sending domains and their DKIM keys. A removed domain leaves a tombstone, so that every node hears of it. */
import type { DatabaseSync } from 'node:sqlite';
import { isDeepStrictEqual } from 'node:util';
import type { Changed } from '../../model/account.ts';
import { type Actor, domainDiffers, domainShown } from '../../model/audit.ts';
import type { DkimKey, RecordCheck, SendingDomain } from '../../model/domain.ts';
import { type DomainUpdate, lastAnswers, publishedSelectors } from '../../model/domain.ts';
import { StoreError } from '../error.ts';
import type { Audit } from './audit.ts';
import * as rows from './rows.ts';

export interface DomainChanges {
  readonly domains: readonly SendingDomain[];
  readonly removed: readonly string[];
}

/** `nextRevision` is the directory's counter. */
export function prepareDomains(database: DatabaseSync, nextRevision: () => number, audit: Audit) {
  const accountId = database.prepare('SELECT id FROM account WHERE name = ?');
  const byName = database.prepare('SELECT * FROM domain WHERE name = ?');
  const byId = database.prepare('SELECT * FROM domain WHERE id = ? AND removed = 0');
  const all = database.prepare('SELECT * FROM domain WHERE removed = 0 ORDER BY name');
  const since = database.prepare('SELECT * FROM domain WHERE revision > ? ORDER BY id');
  const insert = database.prepare(
    `INSERT INTO domain (account_id, name, subdomains, status, created_at, checks, revision) VALUES (?, ?, ?, 'pending', ?, '[]', ?)`,
  );
  const forget = database.prepare('DELETE FROM domain WHERE id = ?');
  const update = database.prepare(
    `UPDATE domain SET status = ?, checked_at = ?, authenticated_at = ?, failing_since = ?, checks = ?, revision = ? WHERE id = ? AND removed = 0`,
  );
  const share = database.prepare('UPDATE domain SET subdomains = ?, revision = ? WHERE id = ?');
  const bury = database.prepare('UPDATE domain SET removed = 1, revision = ? WHERE id = ?');
  const keysOf = database.prepare(
    'SELECT * FROM dkim_key WHERE domain_id = ? ORDER BY created_at, algorithm DESC, selector',
  );
  const dropKeys = database.prepare('DELETE FROM dkim_key WHERE domain_id = ?');
  const insertKey = database.prepare(
    `INSERT INTO dkim_key (domain_id, selector, algorithm, public_key, sealed, state, created_at, activated_at, retire_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );

  function domain(row: rows.Row): SendingDomain {
    const id = rows.int(row, 'id');
    const name = rows.text(row, 'name');
    const keys = keysOf.all(id).map(dkimKey);
    return {
      id,
      revision: rows.int(row, 'revision'),
      accountId: rows.int(row, 'account_id'),
      name,
      subdomains: rows.int(row, 'subdomains') === 1,
      status: oneOf(row, 'status', ['pending', 'authenticated', 'failing'] as const),
      createdAt: rows.int(row, 'created_at'),
      checkedAt: rows.intOrNull(row, 'checked_at'),
      authenticatedAt: rows.intOrNull(row, 'authenticated_at'),
      failingSince: rows.intOrNull(row, 'failing_since'),
      published: publishedSelectors(name, keys, checksOf(row)),
      keys,
    };
  }

  function live(name: string): rows.Row | null {
    const row = byName.get(name);
    return row === undefined || rows.int(row, 'removed') === 1 ? null : row;
  }

  function reread(name: string): Changed<SendingDomain> {
    const row = live(name);
    return row === null ? { kind: 'missing' } : { kind: 'done', value: domain(row) };
  }

  function noted(
    by: Actor | undefined,
    action: string,
    before: SendingDomain | null,
    changed: Changed<SendingDomain>,
  ): Changed<SendingDomain> {
    if (changed.kind !== 'done') return changed;
    const shown = before === null ? null : domainShown(before);
    audit.note(by, action, changed.value.name, shown, domainShown(changed.value));
    return changed;
  }

  function writeKeys(id: number | bigint, keys: readonly DkimKey[]): void {
    dropKeys.run(id);
    for (const { selector, algorithm, publicKey, sealed, state, createdAt, activatedAt, retireAt } of keys) {
      insertKey.run(id, selector, algorithm, publicKey, sealed, state, createdAt, activatedAt, retireAt);
    }
  }

  return {
    addDomain(
      accountName: string,
      {
        name,
        subdomains,
        keys,
      }: { readonly name: string; readonly subdomains: boolean; readonly keys: readonly DkimKey[] },
      now: number,
      by?: Actor,
    ): Changed<SendingDomain> {
      const account = accountId.get(accountName);
      if (account === undefined) return { kind: 'missing' };
      const old = byName.get(name);
      if (old !== undefined) {
        if (rows.int(old, 'removed') === 0) return { kind: 'exists' };
        dropKeys.run(rows.int(old, 'id'));
        forget.run(rows.int(old, 'id'));
      }
      const { lastInsertRowid } = insert.run(rows.int(account, 'id'), name, subdomains ? 1 : 0, now, nextRevision());
      writeKeys(lastInsertRowid, keys);
      return noted(by, 'domain.add', null, reread(name));
    },
    findDomain(name: string): SendingDomain | null {
      const row = live(name);
      return row === null ? null : domain(row);
    },
    listDomains: (): SendingDomain[] => all.all().map(domain),
    domainChecks(name: string): RecordCheck[] {
      const row = live(name);
      return row === null ? [] : checksOf(row);
    },
    updateDomain(
      { id, status, checkedAt, authenticatedAt, failingSince, revision, checks, keys }: DomainUpdate,
      by?: Actor,
    ): Changed<SendingDomain> | { readonly kind: 'stale' } {
      const row = byId.get(id);
      if (row === undefined) return { kind: 'missing' };
      if (rows.int(row, 'revision') !== revision) return { kind: 'stale' };
      const before = domain(row);
      const answers = lastAnswers(checksOf(row), checks);
      const published = publishedSelectors(before.name, keys, answers);
      // Nodes read a domain anew for each revision: a look that brings nothing new must not make them. While it fails,
      // the time of the look says whether it is blocked.
      const same =
        status !== 'failing' &&
        isDeepStrictEqual(
          { status, authenticatedAt, failingSince, published, keys },
          {
            status: before.status,
            authenticatedAt: before.authenticatedAt,
            failingSince: before.failingSince,
            published: before.published,
            keys: before.keys,
          },
        );
      const next = same ? revision : nextRevision();
      update.run(status, checkedAt, authenticatedAt, failingSince, JSON.stringify(answers), next, id);
      if (!same) writeKeys(id, keys);
      const after = reread(before.name);
      // A check that found everything as it was is no change.
      if (after.kind !== 'done' || !domainDiffers(before, after.value)) return after;
      return noted(by, 'domain.update', before, after);
    },
    setSubdomains(name: string, subdomains: boolean, by?: Actor): Changed<SendingDomain> {
      const row = live(name);
      if (row === null) return { kind: 'missing' };
      const before = domain(row);
      share.run(subdomains ? 1 : 0, nextRevision(), before.id);
      return noted(by, 'domain.set', before, reread(name));
    },
    removeDomain(name: string, by?: Actor): Changed<SendingDomain> {
      const row = live(name);
      if (row === null) return { kind: 'missing' };
      const gone = domain(row);
      dropKeys.run(gone.id);
      bury.run(nextRevision(), gone.id);
      audit.note(by, 'domain.remove', name, domainShown(gone), null);
      return { kind: 'done', value: gone };
    },
    /** Domains changed after `revision`, and the names of those removed. */
    domainsSince(revision: number): DomainChanges {
      const changed = since.all(revision);
      return {
        domains: changed.filter((row) => rows.int(row, 'removed') === 0).map(domain),
        removed: changed.filter((row) => rows.int(row, 'removed') === 1).map((row) => rows.text(row, 'name')),
      };
    },
  };
}

function checksOf(row: rows.Row): RecordCheck[] {
  return JSON.parse(rows.text(row, 'checks')) as RecordCheck[];
}

function dkimKey(row: rows.Row): DkimKey {
  return {
    selector: rows.text(row, 'selector'),
    algorithm: oneOf(row, 'algorithm', ['rsa', 'ed25519'] as const),
    publicKey: rows.text(row, 'public_key'),
    sealed: rows.text(row, 'sealed'),
    state: oneOf(row, 'state', ['staged', 'active', 'retiring'] as const),
    createdAt: rows.int(row, 'created_at'),
    activatedAt: rows.intOrNull(row, 'activated_at'),
    retireAt: rows.intOrNull(row, 'retire_at'),
  };
}

function oneOf<Value extends string>(row: rows.Row, column: string, values: readonly Value[]): Value {
  const found = values.find((value) => value === row[column]);
  if (found === undefined) throw new StoreError(`column ${column} holds something unknown: the database is damaged.`);
  return found;
}

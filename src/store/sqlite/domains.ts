/**
 * Stores sending domains and their DKIM keys. The row of a removed domain is marked as removed instead of deleted, so
 * that every node reads the removal.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { ChangeResult, DirectoryChanges } from '../../model/account.ts';
import { type Actor, hasAuditedDomainChanged, toAuditedDomain } from '../../model/audit.ts';
import type { DkimKey, DomainChange, DomainUpdate, RecordCheck, SendingDomain } from '../../model/domain.ts';
import { buildDomainData } from '../../model/webhook-payload.ts';
import type { DomainNameResult } from '../contract.ts';
import { decideDomainChange, decideDomainUpdate, findStatusChange } from '../rules/directory.ts';
import * as rows from '../rules/rows.ts';
import type { Audit } from './audit.ts';
import type { Outbox } from './outbox.ts';

/** The domain changes after a revision of the directory. */
export type DomainChanges = Pick<DirectoryChanges, 'domains' | 'removedDomains'>;

/** An id that no domain has. The ids of domains begin at 1. */
const NO_DOMAIN_ID = 0;

/** Creates the operations on domains. `incrementRevision` increments the revision of the directory. */
export function prepareDomains(database: DatabaseSync, incrementRevision: () => number, audit: Audit, outbox: Outbox) {
  const selectAccountId = database.prepare('SELECT id FROM account WHERE name = ?');
  const selectAccountName = database.prepare('SELECT name FROM account WHERE id = ?');
  const selectByName = database.prepare('SELECT * FROM domain WHERE name = ?');
  const selectById = database.prepare('SELECT * FROM domain WHERE id = ? AND removed = 0');
  const selectAll = database.prepare('SELECT * FROM domain WHERE removed = 0 ORDER BY name');
  const selectChanged = database.prepare('SELECT * FROM domain WHERE revision > ? ORDER BY id');
  const insertDomain = database.prepare(
    `INSERT INTO domain (account_id, name, subdomains, status, created_at, checks, revision) VALUES (?, ?, ?, 'pending', ?, '[]', ?)`,
  );
  const deleteRow = database.prepare('DELETE FROM domain WHERE id = ?');
  const updateStatus = database.prepare(
    `UPDATE domain SET status = ?, checked_at = ?, authenticated_at = ?, failing_since = ?, checks = ?, revision = ? WHERE id = ? AND removed = 0`,
  );
  const updateDomainRow = database.prepare(
    'UPDATE domain SET subdomains = ?, return_path = ?, checks = ?, revision = ? WHERE id = ?',
  );
  const selectReturnPathOwner = database.prepare(
    'SELECT name FROM domain WHERE return_path = ? AND id <> ? AND removed = 0',
  );
  const markDomainRemoved = database.prepare('UPDATE domain SET removed = 1, revision = ? WHERE id = ?');
  const selectKeys = database.prepare(
    'SELECT * FROM dkim_key WHERE domain_id = ? ORDER BY created_at, algorithm DESC, selector',
  );
  const deleteKeys = database.prepare('DELETE FROM dkim_key WHERE domain_id = ?');
  const insertKey = database.prepare(
    `INSERT INTO dkim_key (domain_id, selector, algorithm, public_key, sealed, state, created_at, activated_at, retire_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );

  const readDomain = (row: rows.Row): SendingDomain => rows.toDomain(row, selectKeys.all(rows.readInteger(row, 'id')));

  function readRow(name: string): rows.Row | null {
    const row = selectByName.get(name);
    return row === undefined || rows.readBoolean(row, 'removed') ? null : row;
  }

  function readChangedDomain(name: string): ChangeResult<SendingDomain> {
    const row = readRow(name);
    return row === null ? { kind: 'missing' } : { kind: 'done', value: readDomain(row) };
  }

  /**
   * Returns the name of the domain whose return path is `name`, or null if there is none. The domain with the id
   * `exceptId` is ignored.
   */
  function findReturnPathOwner(name: string, exceptId: number): string | null {
    const row = selectReturnPathOwner.get(name, exceptId);
    return row === undefined ? null : rows.readText(row, 'name');
  }

  function auditChange(
    actor: Actor | undefined,
    action: string,
    before: SendingDomain | null,
    changeResult: ChangeResult<SendingDomain>,
  ): ChangeResult<SendingDomain> {
    if (changeResult.kind !== 'done') return changeResult;
    const auditedBefore = before === null ? null : toAuditedDomain(before);
    audit.writeChange(actor, action, changeResult.value.name, auditedBefore, toAuditedDomain(changeResult.value));
    return changeResult;
  }

  function writeKeys(id: number | bigint, keys: readonly DkimKey[]): void {
    deleteKeys.run(id);
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
      actor?: Actor,
    ): DomainNameResult {
      const account = selectAccountId.get(accountName);
      if (account === undefined) return { kind: 'missing' };
      const existingRow = selectByName.get(name);
      if (existingRow !== undefined) {
        if (!rows.readBoolean(existingRow, 'removed')) return { kind: 'exists' };
        deleteKeys.run(rows.readInteger(existingRow, 'id'));
        deleteRow.run(rows.readInteger(existingRow, 'id'));
      }
      const owner = findReturnPathOwner(name, NO_DOMAIN_ID);
      if (owner !== null) return { kind: 'used', by: owner };
      const { lastInsertRowid } = insertDomain.run(
        rows.readInteger(account, 'id'),
        name,
        subdomains ? 1 : 0,
        now,
        incrementRevision(),
      );
      writeKeys(lastInsertRowid, keys);
      return auditChange(actor, 'domain.add', null, readChangedDomain(name));
    },
    findDomain(name: string): SendingDomain | null {
      const row = readRow(name);
      return row === null ? null : readDomain(row);
    },
    listDomains: (): SendingDomain[] => selectAll.all().map(readDomain),
    findDomainChecks(name: string): readonly RecordCheck[] {
      const row = readRow(name);
      return row === null ? [] : rows.toDomainChecks(row);
    },
    updateDomain(update: DomainUpdate, actor?: Actor): ChangeResult<SendingDomain> | { readonly kind: 'stale' } {
      const { id, status, checkedAt, authenticatedAt, failingSince, revision, keys } = update;
      const row = selectById.get(id);
      if (row === undefined) return { kind: 'missing' };
      if (rows.readInteger(row, 'revision') !== revision) return { kind: 'stale' };
      const before = readDomain(row);
      const { answeredChecks, needsNewRevision } = decideDomainUpdate(before, rows.toDomainChecks(row), update);
      const newRevision = needsNewRevision ? incrementRevision() : revision;
      updateStatus.run(
        status,
        checkedAt,
        authenticatedAt,
        failingSince,
        JSON.stringify(answeredChecks),
        newRevision,
        id,
      );
      if (needsNewRevision) writeKeys(id, keys);
      const newStatus = findStatusChange(before.status, status);
      if (newStatus !== null) {
        const account = rows.readText(selectAccountName.get(before.accountId) ?? {}, 'name');
        outbox.recordResource(`domain.${newStatus}`, before.accountId, checkedAt ?? 0, () =>
          buildDomainData(before, account, newStatus, answeredChecks),
        );
      }
      const after = readChangedDomain(before.name);
      // A check without a new result writes no audit log entry.
      if (after.kind !== 'done' || !hasAuditedDomainChanged(before, after.value)) return after;
      return auditChange(actor, 'domain.update', before, after);
    },
    setDomain(name: string, change: DomainChange, actor?: Actor): DomainNameResult {
      const row = readRow(name);
      if (row === null) return { kind: 'missing' };
      const before = readDomain(row);
      const { subdomains, returnPath, checks } = decideDomainChange(before, rows.toDomainChecks(row), change);
      if (returnPath !== null) {
        const owner = readRow(returnPath) === null ? findReturnPathOwner(returnPath, before.id) : returnPath;
        if (owner !== null) return { kind: 'used', by: owner };
      }
      updateDomainRow.run(subdomains ? 1 : 0, returnPath, JSON.stringify(checks), incrementRevision(), before.id);
      return auditChange(actor, 'domain.set', before, readChangedDomain(name));
    },
    removeDomain(name: string, actor?: Actor): ChangeResult<SendingDomain> {
      const row = readRow(name);
      if (row === null) return { kind: 'missing' };
      const removedDomain = readDomain(row);
      deleteKeys.run(removedDomain.id);
      markDomainRemoved.run(incrementRevision(), removedDomain.id);
      audit.writeChange(actor, 'domain.remove', name, toAuditedDomain(removedDomain), null);
      return { kind: 'done', value: removedDomain };
    },
    /** Returns the domains that changed after `revision`, and the names of the domains that were removed after it. */
    readDomainsSince(revision: number): DomainChanges {
      const changedRows = selectChanged.all(revision);
      return {
        domains: changedRows.filter((row) => !rows.readBoolean(row, 'removed')).map(readDomain),
        removedDomains: changedRows
          .filter((row) => rows.readBoolean(row, 'removed'))
          .map((row) => rows.readText(row, 'name')),
      };
    },
  };
}

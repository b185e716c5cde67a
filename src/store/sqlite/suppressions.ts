/** Stores the suppression lists: one list for each account, and the list of account 0 for the whole service (`*`). */
import type { DatabaseSync } from 'node:sqlite';
import type { ChangeResult } from '../../model/account.ts';
import { type Actor, type ImportStep, toAuditedRemoval, toAuditedSuppressions } from '../../model/audit.ts';
import type { ListedSuppression, ProviderRemoval, Suppression, SuppressionSearch } from '../../model/suppression.ts';
import { toSeq } from '../rules/messages.ts';
import * as rows from '../rules/rows.ts';
import type { Audit } from './audit.ts';
import type { Outbox } from './outbox.ts';

const SERVICE_LIST_ID = 0;
/**
 * SQL expression for the text after the last @. A quoted local part may also contain an @. The index of migration 0006
 * uses the same expression.
 */
const DOMAIN_EXPRESSION = "substr(recipient, length(rtrim(recipient, replace(recipient, '@', ''))) + 1)";
/** A prefix with this character appended is greater than every text that begins with the prefix. */
const PREFIX_END = '\u{10FFFF}';
/**
 * A text with this character appended is greater than the text, and less than every longer text that begins with the
 * text.
 */
const TEXT_END = '\u0001';

export function prepareSuppressions(database: DatabaseSync, audit: Audit, outbox: Outbox) {
  const selectAccountId = database.prepare('SELECT id FROM account WHERE name = ?');
  const insertEntry = database.prepare(
    'INSERT OR IGNORE INTO suppression (recipient, account_id, reason, source, at) VALUES (?, ?, ?, ?, ?)',
  );
  const deleteEntry = database.prepare(
    'DELETE FROM suppression WHERE recipient = ? AND account_id = ? RETURNING recipient, reason, source, at',
  );
  const selectPage = database.prepare(
    `SELECT recipient, reason, source, at FROM suppression INDEXED BY suppression_account
     WHERE account_id = ? AND recipient > ? ORDER BY recipient LIMIT ?`,
  );

  // The range starts at the greater of the prefix and the cursor, so that the query of a later page does not read the
  // rows of the earlier pages again.
  const selectByAddress = database.prepare(
    `SELECT recipient, reason, source, at FROM suppression INDEXED BY suppression_account
     WHERE account_id = ?1 AND recipient >= max(?2, ?3) AND recipient < ?4 AND recipient <> ?3 ORDER BY recipient LIMIT ?5`,
  );
  // A search by domain needs two statements. If one statement compared the domain and the recipient as a row value,
  // SQLite would use the index only for the account.
  const selectInDomain = database.prepare(
    `SELECT recipient, reason, source, at FROM suppression INDEXED BY suppression_domain
     WHERE account_id = ? AND ${DOMAIN_EXPRESSION} = ? AND recipient > ? ORDER BY recipient LIMIT ?`,
  );
  const selectInDomains = database.prepare(
    `SELECT recipient, reason, source, at FROM suppression INDEXED BY suppression_domain
     WHERE account_id = ? AND ${DOMAIN_EXPRESSION} >= ? AND ${DOMAIN_EXPRESSION} < ? ORDER BY ${DOMAIN_EXPRESSION}, recipient LIMIT ?`,
  );
  const selectAllLists = database.prepare(
    `SELECT recipient, reason, source, at, coalesce(a.name, '*') AS list FROM suppression s LEFT JOIN account a ON a.id = s.account_id
     WHERE recipient = ? ORDER BY s.account_id`,
  );
  const selectAny = database.prepare('SELECT 1 AS one FROM suppression WHERE recipient = ? LIMIT 1');
  const selectUnsuppressed = database.prepare(
    `SELECT 1 AS free FROM mail_request m WHERE m.seq = ? AND NOT EXISTS (
       SELECT 1 FROM suppression s WHERE s.recipient = coalesce(m.recipient, m."to") AND s.account_id IN (m.account_id, 0))`,
  );

  function searchDomains(id: number, prefix: string, after: string | null, limit: number): rows.Row[] {
    if (after === null) return selectInDomains.all(id, prefix, prefix + PREFIX_END, limit);
    const domain = getDomain(after);
    const domainRows = selectInDomain.all(id, domain, after, limit);
    return [
      ...domainRows,
      ...selectInDomains.all(id, domain + TEXT_END, prefix + PREFIX_END, limit - domainRows.length),
    ];
  }

  function findListId(name: string): number | null {
    if (name === '*') return SERVICE_LIST_ID;
    const row = selectAccountId.get(name);
    return row === undefined ? null : rows.readInteger(row, 'id');
  }

  /** Adds entries to a list. Returns the number of entries that the list did not contain. */
  function addEntries(id: number, entries: readonly Suppression[], actor: Actor | undefined): number {
    let addedCount = 0;
    for (const entry of entries) {
      const { address, reason, source, at } = entry;
      if (insertEntry.run(address, id, reason, source, at).changes === 0) continue;
      addedCount += 1;
      outbox.recordSuppression('suppression.added', id, actor?.at ?? at, entry);
    }
    return addedCount;
  }

  return {
    checkSuppression: (batch: readonly { readonly id: string }[]): boolean[] =>
      batch.map(({ id }) => selectUnsuppressed.get(toSeq(id)) !== undefined),
    addSuppressions(name: string, entries: readonly Suppression[], actor?: Actor): ChangeResult<number> {
      const id = findListId(name);
      if (id === null) return { kind: 'missing' };
      const addedCount = addEntries(id, entries, actor);
      audit.writeChange(actor, 'suppression.add', name, null, toAuditedSuppressions(addedCount, entries));
      return { kind: 'done', value: addedCount };
    },
    importSuppressions(
      name: string,
      entries: readonly Suppression[],
      step: ImportStep,
      actor?: Actor,
    ): ChangeResult<{ readonly added: number; readonly entry: number | null }> {
      const id = findListId(name);
      if (id === null) return { kind: 'missing' };
      const addedCount = addEntries(id, entries, actor);
      return { kind: 'done', value: { added: addedCount, entry: audit.recordImport(actor, name, step, addedCount) } };
    },
    removeSuppression(
      ...[name, address, providerRemoval, actor]: [string, string, ProviderRemoval?, Actor?]
    ): ChangeResult<boolean> {
      const id = findListId(name);
      if (id === null) return { kind: 'missing' };
      const row = deleteEntry.get(address, id);
      const isRemoved = row !== undefined;
      if (isRemoved) {
        const entry = rows.toSuppression(row);
        outbox.recordSuppression('suppression.removed', id, actor?.at ?? entry.at, entry);
      }
      if (isRemoved || providerRemoval?.removed === true)
        audit.writeChange(actor, 'suppression.remove', name, toAuditedRemoval(address, providerRemoval), null);
      return { kind: 'done', value: isRemoved };
    },
    listSuppressions(name: string, after: string | null, limit: number): ChangeResult<readonly Suppression[]> {
      const id = findListId(name);
      if (id === null) return { kind: 'missing' };
      return { kind: 'done', value: selectPage.all(id, after ?? '', limit).map(rows.toSuppression) };
    },
    searchSuppressions(
      ...[name, { of, prefix }, after, limit]: [string, SuppressionSearch, string | null, number]
    ): ChangeResult<readonly Suppression[]> {
      const id = findListId(name);
      if (id === null) return { kind: 'missing' };
      const suppressionRows =
        of === 'address'
          ? selectByAddress.all(id, prefix, after ?? '', prefix + PREFIX_END, limit)
          : searchDomains(id, prefix, after, limit);
      return { kind: 'done', value: suppressionRows.map(rows.toSuppression) };
    },
    findSuppressed: (addresses: readonly string[]): string[] =>
      addresses.filter((address) => selectAny.get(address) !== undefined),
    findSuppression: (address: string): ListedSuppression[] =>
      selectAllLists.all(address).map((row) => ({ ...rows.toSuppression(row), list: rows.readText(row, 'list') })),
  };
}

function getDomain(address: string): string {
  return address.slice(address.lastIndexOf('@') + 1);
}

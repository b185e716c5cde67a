/** Suppression lists: one for each account, and account 0 for the whole service (`*`). */
import type { DatabaseSync } from 'node:sqlite';
import type { Changed } from '../store.ts';
import { StoreError } from '../store.ts';
import type { Suppression, SuppressionReason } from '../trust.ts';
import * as rows from './rows.ts';
import { seqOf } from './seq.ts';

const SERVICE = 0;

export function prepareSuppressions(database: DatabaseSync) {
  const accountId = database.prepare('SELECT id FROM account WHERE name = ?');
  const insert = database.prepare(
    'INSERT OR IGNORE INTO suppression (recipient, account_id, reason, source, at) VALUES (?, ?, ?, ?, ?)',
  );
  const remove = database.prepare('DELETE FROM suppression WHERE recipient = ? AND account_id = ?');
  const list = database.prepare(
    `SELECT recipient, reason, source, at FROM suppression INDEXED BY suppression_account
     WHERE account_id = ? AND recipient > ? ORDER BY recipient LIMIT ?`,
  );

  const free = database.prepare(
    `SELECT 1 AS free FROM mail_request m WHERE m.seq = ? AND NOT EXISTS (
       SELECT 1 FROM suppression s WHERE s.recipient = coalesce(m.recipient, m."to") AND s.account_id IN (m.account_id, 0))`,
  );

  function listId(name: string): number | null {
    if (name === '*') return SERVICE;
    const row = accountId.get(name);
    return row === undefined ? null : rows.int(row, 'id');
  }

  return {
    screen: (batch: readonly { readonly id: string }[]): boolean[] =>
      batch.map(({ id }) => free.get(seqOf(id)) !== undefined),
    addSuppressions(name: string, entries: readonly Suppression[]): Changed<number> {
      const id = listId(name);
      if (id === null) return { kind: 'missing' };
      let added = 0;
      for (const { address, reason, source, at } of entries)
        added += Number(insert.run(address, id, reason, source, at).changes);
      return { kind: 'done', value: added };
    },
    removeSuppression(name: string, address: string): Changed<boolean> {
      const id = listId(name);
      if (id === null) return { kind: 'missing' };
      return { kind: 'done', value: remove.run(address, id).changes === 1 };
    },
    listSuppressions(name: string, after: string | null, limit: number): Changed<readonly Suppression[]> {
      const id = listId(name);
      if (id === null) return { kind: 'missing' };
      return { kind: 'done', value: list.all(id, after ?? '', limit).map(suppression) };
    },
  };
}

const REASONS: readonly SuppressionReason[] = ['bounce', 'complaint', 'manual'];

function suppression(row: rows.Row): Suppression {
  const reason = REASONS.find((known) => known === rows.text(row, 'reason'));
  if (reason === undefined) throw new StoreError('unknown suppression reason: the database is damaged.');
  return {
    address: rows.text(row, 'recipient'),
    reason,
    source: rows.textOrNull(row, 'source'),
    at: rows.int(row, 'at'),
  };
}

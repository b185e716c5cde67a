/** Writes and lists audit log entries. An entry is written in the transaction of its change. */
import {
  type Actor,
  type AuditEntry,
  BULK_AUDIT_ACTION,
  createAuditEntry,
  type ImportStep,
  type NewAuditEntry,
  toAuditedImport,
  toAuditedRun,
} from '../model/audit.ts';
import type { BulkStep } from '../model/message.ts';
import * as rows from './rules/rows.ts';
import type { Transaction } from './transaction.ts';

/** Writes the entry of a change. Writes nothing if no operator made the change. */
export async function writeAudit(
  tx: Transaction,
  actor: Actor | undefined,
  action: string,
  target: string,
  before: unknown,
  after: unknown,
): Promise<void> {
  if (actor !== undefined) await insertAuditEntry(tx, createAuditEntry(actor, action, target, before, after));
}

/**
 * Writes the entry of an import with its first batch, and updates the counts of the entry with each later batch.
 * Resolves to the id of the entry, or to null if no operator started the import.
 */
export async function auditImport(
  tx: Transaction,
  actor: Actor | undefined,
  list: string,
  step: ImportStep,
  added: number,
): Promise<number | null> {
  return countInEntry(tx, actor, null, 'suppression.import', list, step.entry, (after) =>
    toAuditedImport(after, step, added),
  );
}

/** Does the same for an action on all messages that match a filter. The client names the entry of the earlier batches. */
export async function auditRun(
  tx: Transaction,
  actor: Actor | undefined,
  step: BulkStep,
  counts: { readonly done: number; readonly refused: number },
): Promise<number | null> {
  return countInEntry(tx, actor, actor?.name ?? null, BULK_AUDIT_ACTION, step.filter, step.entry, (after) =>
    toAuditedRun(after, step, counts),
  );
}

/** An entry of another actor, action or target is not changed: a new entry is written. */
async function countInEntry(
  tx: Transaction,
  actor: Actor | undefined,
  requiredActor: string | null,
  action: string,
  target: string,
  id: number | null,
  count: (after: string | null) => object,
): Promise<number | null> {
  if (actor === undefined) return null;
  const [row] =
    id === null
      ? []
      : await tx.query(
          'SELECT after FROM audit WHERE id = $1 AND coalesce($2, who) = who AND action = $3 AND subject = $4 FOR UPDATE',
          [id, requiredActor, action, target],
        );
  if (row === undefined) return insertAuditEntry(tx, createAuditEntry(actor, action, target, null, count(null)));
  await tx.query('UPDATE audit SET after = $1 WHERE id = $2', [JSON.stringify(count(rows.readText(row, 'after'))), id]);
  return id;
}

export async function insertAuditEntry(
  tx: Transaction,
  { at, actor, action, target, before, after }: NewAuditEntry,
): Promise<number> {
  const [row = {}] = await tx.query(
    'INSERT INTO audit (at, who, action, subject, before, after) VALUES ($1, $2, $3, $4, $5, $6) RETURNING id',
    [at, actor, action, target, before, after],
  );
  return rows.readInteger(row, 'id');
}

export async function listAudit(tx: Transaction, before: number | null, limit: number): Promise<readonly AuditEntry[]> {
  const entries = await tx.query('SELECT * FROM audit WHERE id < $1 ORDER BY id DESC LIMIT $2', [
    before ?? Number.MAX_SAFE_INTEGER,
    limit,
  ]);
  return entries.map(rows.toAuditEntry);
}

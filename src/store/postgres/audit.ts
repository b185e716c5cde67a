/**
 * Writes audit log entries in the transaction of the change, so that the entry and the change are stored together or
 * not at all.
 */
import {
  type Actor,
  BULK_AUDIT_ACTION,
  createAuditEntry,
  type ImportStep,
  type NewAuditEntry,
  toAuditedImport,
  toAuditedRun,
} from '../../model/audit.ts';
import type { BulkStep } from '../../model/message.ts';
import * as rows from '../rules/rows.ts';
import type { Session, Statement } from './session.ts';

const INSERT_ENTRY: Statement = {
  name: 'audit_insert',
  text: 'INSERT INTO audit (at, who, action, subject, before, after) VALUES ($1, $2, $3, $4, $5, $6) RETURNING id',
};
const SELECT_AFTER: Statement = {
  name: 'audit_select_after',
  text: 'SELECT after FROM audit WHERE id = $1 FOR UPDATE',
};
/**
 * Selects the entry of an action on many messages only if the batch has the same actor and filter as the first batch.
 */
const SELECT_RUN: Statement = {
  name: 'audit_select_run',
  text: 'SELECT after FROM audit WHERE id = $1 AND who = $2 AND action = $3 AND subject = $4 FOR UPDATE',
};
const UPDATE_AFTER: Statement = { name: 'audit_update_after', text: 'UPDATE audit SET after = $1 WHERE id = $2' };

export async function writeAuditEntry(
  transaction: Session,
  { at, actor, action, target, before, after }: NewAuditEntry,
): Promise<number> {
  const [row = {}] = await transaction.query(INSERT_ENTRY, [at, actor, action, target, before, after]);
  return rows.readInteger(row, 'id');
}

/** Writes the entry of a change. Writes nothing if `actor` is undefined. */
export async function writeChange(
  transaction: Session,
  actor: Actor | undefined,
  action: string,
  target: string,
  before: unknown,
  after: unknown,
): Promise<void> {
  if (actor !== undefined) await writeAuditEntry(transaction, createAuditEntry(actor, action, target, before, after));
}

/**
 * Writes the entry of an import, or updates the counts of the entry. Resolves to the id of the entry, or to null if
 * `actor` is undefined.
 */
export async function writeImport(
  transaction: Session,
  actor: Actor | undefined,
  list: string,
  step: ImportStep,
  addedCount: number,
): Promise<number | null> {
  if (actor === undefined) return null;
  const [row] = step.entry === null ? [] : await transaction.query(SELECT_AFTER, [step.entry]);
  if (step.entry === null || row === undefined) {
    return writeAuditEntry(
      transaction,
      createAuditEntry(actor, 'suppression.import', list, null, toAuditedImport(null, step, addedCount)),
    );
  }
  await transaction.query(UPDATE_AFTER, [
    JSON.stringify(toAuditedImport(rows.readText(row, 'after'), step, addedCount)),
    step.entry,
  ]);
  return step.entry;
}

/**
 * Writes the entry of a run, or updates the counts of the entry. A run changes all messages that match a filter.
 * Resolves to the id of the entry, or to null if `actor` is undefined.
 */
export async function writeRun(
  transaction: Session,
  actor: Actor | undefined,
  step: BulkStep,
  counts: { readonly done: number; readonly refused: number },
): Promise<number | null> {
  if (actor === undefined) return null;
  const [row] =
    step.entry === null
      ? []
      : await transaction.query(SELECT_RUN, [step.entry, actor.name, BULK_AUDIT_ACTION, step.filter]);
  if (step.entry === null || row === undefined) {
    const content = toAuditedRun(null, step, counts);
    return writeAuditEntry(transaction, createAuditEntry(actor, BULK_AUDIT_ACTION, step.filter, null, content));
  }
  const content = toAuditedRun(rows.readText(row, 'after'), step, counts);
  await transaction.query(UPDATE_AFTER, [JSON.stringify(content), step.entry]);
  return step.entry;
}

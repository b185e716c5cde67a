/**
 * Writes the audit log. Each operation of the store runs in its own transaction or savepoint, so that a change and its
 * audit log entry are either both stored or both rolled back.
 */
import type { DatabaseSync } from 'node:sqlite';
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

export type Audit = ReturnType<typeof prepareAudit>;

export function prepareAudit(database: DatabaseSync) {
  const insertEntry = database.prepare(
    'INSERT INTO audit (at, who, action, subject, before, after) VALUES (?, ?, ?, ?, ?, ?)',
  );
  const selectAfter = database.prepare('SELECT after FROM audit WHERE id = ?');
  const updateAfter = database.prepare('UPDATE audit SET after = ? WHERE id = ?');
  const writeEntry = ({ at, actor, action, target, before, after }: NewAuditEntry): number =>
    Number(insertEntry.run(at, actor, action, target, before, after).lastInsertRowid);
  const selectRun = database.prepare('SELECT after FROM audit WHERE id = ? AND who = ? AND action = ? AND subject = ?');
  return {
    write: writeEntry,
    /** Writes the audit log entry of a change. Writes nothing if no operator made the change. */
    writeChange(actor: Actor | undefined, action: string, target: string, before: unknown, after: unknown): void {
      if (actor !== undefined) writeEntry(createAuditEntry(actor, action, target, before, after));
    },
    /**
     * Writes the audit log entry of a run for the first batch, or updates the counts of this entry for a later batch. A
     * run changes all messages that match a filter. If a later batch does not have the actor and the filter of the
     * first batch, a new entry is written. Returns the id of the entry, or null if no operator started the run.
     */
    recordRun(actor: Actor | undefined, step: BulkStep, counts: { done: number; refused: number }): number | null {
      if (actor === undefined) return null;
      const row =
        step.entry === null ? undefined : selectRun.get(step.entry, actor.name, BULK_AUDIT_ACTION, step.filter);
      if (step.entry === null || row === undefined)
        return writeEntry(
          createAuditEntry(actor, BULK_AUDIT_ACTION, step.filter, null, toAuditedRun(null, step, counts)),
        );
      updateAfter.run(JSON.stringify(toAuditedRun(rows.readText(row, 'after'), step, counts)), step.entry);
      return step.entry;
    },
    /**
     * Writes the audit log entry of an import for the first batch, or updates the counts of this entry for a later
     * batch. Returns the id of the entry, or null if no operator started the import.
     */
    recordImport(actor: Actor | undefined, list: string, step: ImportStep, added: number): number | null {
      if (actor === undefined) return null;
      const row = step.entry === null ? undefined : selectAfter.get(step.entry);
      if (step.entry === null || row === undefined) {
        return writeEntry(
          createAuditEntry(actor, 'suppression.import', list, null, toAuditedImport(null, step, added)),
        );
      }
      updateAfter.run(JSON.stringify(toAuditedImport(rows.readText(row, 'after'), step, added)), step.entry);
      return step.entry;
    },
  };
}

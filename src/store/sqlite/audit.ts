/**
 * Writes the audit log. Each operation runs in its own transaction or savepoint, so that the entry and the change are
 * either both stored or both rolled back.
 */
import type { DatabaseSync } from 'node:sqlite';
import {
  type Actor,
  createAuditEntry,
  type ImportStep,
  type NewAuditEntry,
  toAuditedImport,
} from '../../model/audit.ts';
import * as rows from '../rules/rows.ts';

export type Audit = ReturnType<typeof prepareAudit>;

export function prepareAudit(database: DatabaseSync) {
  const insert = database.prepare(
    'INSERT INTO audit (at, who, action, subject, before, after) VALUES (?, ?, ?, ?, ?, ?)',
  );
  const selectAfter = database.prepare('SELECT after FROM audit WHERE id = ?');
  const updateAfter = database.prepare('UPDATE audit SET after = ? WHERE id = ?');
  const write = ({ at, actor, action, target, before, after }: NewAuditEntry): number =>
    Number(insert.run(at, actor, action, target, before, after).lastInsertRowid);
  return {
    write,
    /** Writes the entry of a change. Writes nothing if no operator made the change. */
    writeChange(actor: Actor | undefined, action: string, target: string, before: unknown, after: unknown): void {
      if (actor !== undefined) write(createAuditEntry(actor, action, target, before, after));
    },
    /**
     * Writes the entry of an import, or updates its counts. Returns the id of the entry, or null if no operator started
     * the import.
     */
    recordImport(actor: Actor | undefined, list: string, step: ImportStep, added: number): number | null {
      if (actor === undefined) return null;
      const row = step.entry === null ? undefined : selectAfter.get(step.entry);
      if (step.entry === null || row === undefined) {
        return write(createAuditEntry(actor, 'suppression.import', list, null, toAuditedImport(null, step, added)));
      }
      updateAfter.run(JSON.stringify(toAuditedImport(rows.readText(row, 'after'), step, added)), step.entry);
      return step.entry;
    },
  };
}

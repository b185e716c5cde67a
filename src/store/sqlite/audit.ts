/** The audit log's writer. Each operation has a transaction or savepoint of its own, so that an entry and its change stand together. */
import type { DatabaseSync } from 'node:sqlite';
import { type Actor, auditEntry, type NewAuditEntry } from '../../model/audit.ts';

export type Audit = ReturnType<typeof prepareAudit>;

export function prepareAudit(database: DatabaseSync) {
  const insert = database.prepare(
    'INSERT INTO audit (at, who, action, subject, before, after) VALUES (?, ?, ?, ?, ?, ?)',
  );
  const write = ({ at, who, action, subject, before, after }: NewAuditEntry): void => {
    insert.run(at, who, action, subject, before, after);
  };
  return {
    write,
    /** Writes the entry of a change; nothing where no operator makes it. */
    note(by: Actor | undefined, action: string, subject: string, before: unknown, after: unknown): void {
      if (by !== undefined) write(auditEntry(by, action, subject, before, after));
    },
  };
}

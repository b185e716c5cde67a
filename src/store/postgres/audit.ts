/** The audit log's writer. It takes the transaction of the change, so that an entry and its change stand together. */
import { type Actor, auditEntry, type NewAuditEntry } from '../../model/audit.ts';
import type { Session, Statement } from './session.ts';

const WRITE: Statement = {
  name: 'audit_write',
  text: 'INSERT INTO audit (at, who, action, subject, before, after) VALUES ($1, $2, $3, $4, $5, $6)',
};

export async function writeEntry(
  transaction: Session,
  { at, who, action, subject, before, after }: NewAuditEntry,
): Promise<void> {
  await transaction.query(WRITE, [at, who, action, subject, before, after]);
}

/** Writes the entry of a change; nothing where no operator makes it. */
export async function note(
  transaction: Session,
  by: Actor | undefined,
  action: string,
  subject: string,
  before: unknown,
  after: unknown,
): Promise<void> {
  if (by !== undefined) await writeEntry(transaction, auditEntry(by, action, subject, before, after));
}

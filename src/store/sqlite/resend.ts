/**
 * Submits an ended message again as a new message and writes both history entries and the audit log entry, in one
 * transaction.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { Actor } from '../../model/audit.ts';
import {
  type AcceptResult,
  createResentEntry,
  type NewMessage,
  type ResendRequest,
  type ResendResult,
} from '../../model/message.ts';
import { createResendAudit, decideResend, getMinIdOfSeq, toResendResult, toSeq } from '../rules/messages.ts';
import * as rows from '../rules/rows.ts';
import type { Audit } from './audit.ts';
import { prepareAppend } from './history.ts';
import type { Outbox } from './outbox.ts';

/** `accept` accepts messages in the current transaction. */
export function prepareResend(
  database: DatabaseSync,
  accept: (batch: readonly NewMessage[]) => readonly AcceptResult[],
  audit: Audit,
  outbox: Outbox,
) {
  const selectSource = database.prepare(
    `SELECT m.id, m.account_id, m.key_id, m.state, m."to", m.recipient, m."from", m.subject, b.message,
       (SELECT e.by FROM event e WHERE e.seq = m.seq AND e.verb = 'suppressed' AND e.by <> 'store' LIMIT 1) AS suppressed_by
     FROM mail_request m LEFT JOIN body b ON b.seq = m.seq WHERE m.seq = ? AND m.id = ?`,
  );
  const selectSeq = database.prepare('SELECT 1 AS one FROM mail_request WHERE seq = ?');
  const appendEntry = prepareAppend(database, outbox);

  /**
   * Returns `newId` with a sequence number that no message has. The transaction holds the write lock of the database,
   * so no other transaction can use the number.
   */
  function toUnusedId(newId: string): string {
    let seq = toSeq(newId);
    while (selectSeq.get(seq) !== undefined) seq -= 1;
    return getMinIdOfSeq(seq).slice(0, 18) + newId.slice(18);
  }

  return {
    resendMessage({ id, newId }: ResendRequest, now: number, actor?: Actor): ResendResult {
      const row = selectSource.get(toSeq(id), id);
      if (row === undefined) return { kind: 'missing' };
      const source = rows.toResendSource(row);
      const decision = decideResend(source, toUnusedId(newId), now);
      if (decision.kind !== 'submit') return decision;
      const [accepted = { kind: 'locked' as const }] = accept([decision.message]);
      const result = toResendResult(decision.message, accepted);
      if (result.kind !== 'done') return result;
      appendEntry(toSeq(id), createResentEntry(result.message.id, now), source.state);
      const entry = createResendAudit(actor, id, source.state, result.message.id);
      if (entry !== null) audit.write(entry);
      return result;
    },
  };
}

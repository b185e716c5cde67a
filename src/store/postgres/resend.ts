/**
 * Submits an ended message again as a new message and writes both history entries and the audit log entry, in one
 * transaction. The row of the ended message is locked, so that two operators cannot submit it at the same time.
 */
import type { Actor } from '../../model/audit.ts';
import { createResentEntry, type ResendRequest, type ResendResult } from '../../model/message.ts';
import { isUuid } from '../../model/uuid.ts';
import { insertAuditEntry } from '../audit.ts';
import type { Store } from '../contract.ts';
import { createResendAudit, decideResend, toResendResult } from '../rules/messages.ts';
import * as rows from '../rules/rows.ts';
import { acceptInTransaction } from './accept.ts';
import { appendEvents } from './history.ts';
import { type Database, forceDurableCommit, type Session, type Statement, type Transaction } from './session.ts';

const LOCK_SOURCE: Statement = {
  name: 'resend_lock_source',
  text: 'SELECT account_id, state FROM mail_request WHERE id = $1::uuid FOR NO KEY UPDATE',
};
const SELECT_SOURCE: Statement = {
  name: 'resend_source',
  text: `SELECT m.id, m.account_id, m.key_id, coalesce(q.state, m.state) AS state, m."to", m.recipient, m."from", m.subject, b.message,
      (SELECT e.by FROM event e WHERE e.id = $1::uuid AND e.verb = 'suppressed' AND e.by <> 'store' LIMIT 1) AS suppressed_by
    FROM mail_request m LEFT JOIN queue q ON q.id = m.id AND q.account_id = m.account_id
      LEFT JOIN body b ON b.id = m.id AND b.account_id = m.account_id AND b.id = $1::uuid WHERE m.id = $1::uuid`,
};
const SELECT_STORED: Statement = {
  name: 'resend_stored',
  text: 'SELECT 1 AS one FROM mail_request WHERE id = ANY($1::uuid[])',
};

/** Submits an ended message again in the transaction of the caller. `id` is a UUID. */
export async function resendInTransaction(
  transaction: Transaction,
  { id, newId }: ResendRequest,
  now: number,
  actor: Actor | undefined,
): Promise<ResendResult> {
  const [, [row]] = await Promise.all([transaction.query(LOCK_SOURCE, [id]), transaction.query(SELECT_SOURCE, [id])]);
  if (row === undefined) {
    await forceDurableCommit(transaction);
    return { kind: 'missing' };
  }
  const source = rows.toResendSource(row);
  const decision = decideResend(source, newId, now);
  if (decision.kind !== 'submit') {
    await forceDurableCommit(transaction);
    return decision;
  }
  const [accepted = { kind: 'locked' as const }] = await acceptInTransaction(transaction, [decision.message], false);
  const result = toResendResult(decision.message, accepted);
  if (result.kind !== 'done') return result;
  const auditEntry = createResendAudit(actor, id, source.state, newId);
  const { accountId, state } = source;
  await Promise.all([
    appendEvents(transaction, [{ ...createResentEntry(newId, now), id, accountId, state, suppresses: false }]),
    auditEntry === null ? undefined : insertAuditEntry(transaction, auditEntry),
  ]);
  return result;
}

/** Resolves to true if all messages are stored. */
export async function areMessagesStored(session: Session, ids: readonly string[]): Promise<boolean> {
  return ids.length === 0 || (await session.query(SELECT_STORED, [ids])).length === ids.length;
}

/** `requireStandby` rejects if a synchronous standby is required and not configured. */
export function prepareResend(
  database: Database,
  requireStandby: (session: Session) => Promise<void>,
): Pick<Store, 'resendMessage'> {
  return {
    resendMessage: async (request, now, actor) => {
      if (!isUuid(request.id)) return { kind: 'missing' };
      return database.transaction(
        async (transaction) => {
          const [, result] = await Promise.all([
            requireStandby(transaction),
            resendInTransaction(transaction, request, now, actor),
          ]);
          return result;
        },
        (session, result) => areMessagesStored(session, result.kind === 'done' ? [result.message.id] : []),
      );
    },
  };
}

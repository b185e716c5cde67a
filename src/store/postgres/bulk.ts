/**
 * Performs one batch of an action on many messages and writes the counts to the audit log, in one transaction. The
 * messages are locked before the first change, so that only one of two concurrent transactions resends a message.
 */
import {
  type BulkOutcome,
  type BulkStep,
  RESENT_VERB,
  type ResendRequest,
  toBulkOutcome,
} from '../../model/message.ts';
import { isUuid } from '../../model/uuid.ts';
import { auditRun } from '../audit.ts';
import type { Store } from '../contract.ts';
import { lockMessages } from './message-locks.ts';
import { changeMessageInTransaction } from './messages.ts';
import { areMessagesStored, resendInTransaction } from './resend.ts';
import { type Database, forceDurableCommit, type Session, type Statement, type Transaction } from './session.ts';

const SELECT_RESENT: Statement = {
  name: 'bulk_resent',
  text: `SELECT 1 AS one FROM event WHERE id = $1::uuid AND verb = '${RESENT_VERB}' LIMIT 1`,
};

/** `requireStandby` rejects if a synchronous standby is required and not configured. */
export function prepareBulk(
  database: Database,
  requireStandby: (session: Session) => Promise<void>,
): Pick<Store, 'changeMessages'> {
  return {
    changeMessages: (step, now, actor) =>
      database.transaction(
        async (transaction) => {
          if (step.action === 'resend') await requireStandby(transaction);
          const ids = step.targets.map(({ id }) => id).filter(isUuid);
          await lockMessages(transaction, ids);
          const outcomes: BulkOutcome[] = [];
          for (const target of step.targets) outcomes.push(await changeMessage(transaction, step, target, now));
          const doneCount = outcomes.filter(({ kind }) => kind === 'done').length;
          const refusedCount = outcomes.length - doneCount + step.refused;
          const entry = await auditRun(transaction, actor, step, { done: doneCount, refused: refusedCount });
          if (doneCount === 0) await forceDurableCommit(transaction);
          return { outcomes, entry };
        },
        (session, { outcomes }) =>
          areMessagesStored(
            session,
            outcomes.flatMap((outcome) => (outcome.kind === 'done' && outcome.resent ? [outcome.resent.id] : [])),
          ),
      ),
  };
}

async function changeMessage(
  transaction: Transaction,
  { action }: BulkStep,
  target: ResendRequest,
  now: number,
): Promise<BulkOutcome> {
  const { id } = target;
  if (!isUuid(id)) return { kind: 'refused', id, reason: 'missing' };
  switch (action) {
    case 'retry':
      return toBulkOutcome(id, await changeMessageInTransaction(transaction, id, 'queued', now, undefined));
    case 'cancel':
      return toBulkOutcome(id, await changeMessageInTransaction(transaction, id, 'cancelled', now, undefined));
    case 'resend': {
      const resent = await transaction.query(SELECT_RESENT, [id]);
      if (resent.length > 0) return { kind: 'refused', id, reason: 'already-resent' };
      return toBulkOutcome(id, await resendInTransaction(transaction, target, now, undefined));
    }
  }
}

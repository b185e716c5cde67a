/** Performs one batch of an action on many messages and writes the counts to the audit log, in one transaction. */
import type { DatabaseSync } from 'node:sqlite';
import type { Actor } from '../../model/audit.ts';
import {
  type BulkOutcome,
  type BulkResult,
  type BulkStep,
  type OperatorChangeResult,
  RESENT_VERB,
  type ResendRequest,
  type ResendResult,
  toBulkOutcome,
} from '../../model/message.ts';
import { toSeq } from '../rules/messages.ts';
import type { Audit } from './audit.ts';

/** The operations that change one message. They write no audit log entry. */
export interface MessageChanges {
  retryMessage(id: string, now: number): OperatorChangeResult;
  cancelMessage(id: string, now: number): OperatorChangeResult;
  resendMessage(request: ResendRequest, now: number): ResendResult;
}

export function prepareBulk(database: DatabaseSync, changes: MessageChanges, audit: Audit) {
  const selectResent = database.prepare(`SELECT 1 AS one FROM event WHERE seq = ? AND verb = '${RESENT_VERB}' LIMIT 1`);

  function changeMessage({ action }: BulkStep, target: ResendRequest, now: number): BulkOutcome {
    const { id } = target;
    switch (action) {
      case 'retry':
        return toBulkOutcome(id, changes.retryMessage(id, now));
      case 'cancel':
        return toBulkOutcome(id, changes.cancelMessage(id, now));
      case 'resend':
        if (selectResent.get(toSeq(id)) !== undefined) return { kind: 'refused', id, reason: 'already-resent' };
        return toBulkOutcome(id, changes.resendMessage(target, now));
    }
  }

  return {
    changeMessages(step: BulkStep, now: number, actor?: Actor): BulkResult {
      const outcomes = step.targets.map((target) => changeMessage(step, target, now));
      const doneCount = outcomes.filter(({ kind }) => kind === 'done').length;
      const refusedCount = outcomes.length - doneCount + step.refused;
      return { outcomes, entry: audit.recordRun(actor, step, { done: doneCount, refused: refusedCount }) };
    },
  };
}

/** What an operator may do to one message, decided for both databases. Pure. */
import { type Actor, auditEntry, mailShown, type NewAuditEntry } from '../../model/audit.ts';
import { allowed, type State } from '../../model/state-machine.ts';
import { type EntryWithoutAttempt, operatorEntry } from '../../model/stored-entries.ts';

/** `queued` makes a message due now; `cancelled` withdraws it. */
export type OperatorGoal = 'queued' | 'cancelled';

export type OperatorChange =
  | { readonly kind: 'wrong-state'; readonly state: State }
  | {
      readonly kind: 'change';
      readonly entry: EntryWithoutAttempt;
      /** The entry of the audit log, or null where no operator is named. */
      readonly audit: NewAuditEntry | null;
    };

/** `from` and `dueAt` are those of the message `id` as it is stored. */
export function operatorChange(
  { id, from, dueAt }: { readonly id: string; readonly from: State; readonly dueAt: number | null },
  to: OperatorGoal,
  now: number,
  by: Actor | undefined,
): OperatorChange {
  const again = from === 'queued' && to === 'queued';
  if (!again && !allowed(from, to, 'operator')) return { kind: 'wrong-state', state: from };
  const [event, action] =
    to === 'queued'
      ? (['message.retried', 'message.retry'] as const)
      : (['message.cancelled', 'message.cancel'] as const);
  const after = mailShown(to, to === 'queued' ? now : null);
  return {
    kind: 'change',
    entry: operatorEntry(event, now),
    audit: by === undefined ? null : auditEntry(by, action, id, mailShown(from, dueAt), after),
  };
}

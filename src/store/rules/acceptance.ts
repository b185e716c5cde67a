/** Whether one message is accepted, decided for both databases in the transaction that writes it. Pure but for the counts given. */
import { type Counts, countOne, limitsLeft, refusal } from '../../model/limits.ts';
import type { AcceptAnswer, NewMail } from '../../model/message.ts';
import { transition } from './transition.ts';

/** What a store has found about messages: in its tables, and of those before them in the same batch. */
export interface Lookups {
  /** The message accepted under the same idempotency key that still holds, or null. */
  earlier(mail: NewMail): { readonly id: string; readonly fingerprint: string } | null;
  /** True where the recipient is on the account's or the service's suppression list. */
  isSuppressed(mail: NewMail): boolean;
}

/** The state in which a message begins. */
export type AcceptedState = Extract<AcceptAnswer, { kind: 'accepted' }>['state'];

const QUEUED = transition(null, 'queued', 'accept');
const SENDING = transition(null, 'sending', 'accept');
const SUPPRESSED = transition(null, 'suppressed', 'accept');

/** Decides, and counts an accepted message. `counts` is null for an account that is gone. */
export function acceptance(mail: NewMail, counts: Counts | null, lookups: Lookups): AcceptAnswer {
  if (counts === null || counts.account.locked !== null) return { kind: 'locked' };
  const { idempotency, acceptedAt } = mail;
  const earlier = idempotency === null ? null : lookups.earlier(mail);
  if (idempotency !== null && earlier !== null) {
    return earlier.fingerprint === idempotency.fingerprint
      ? { kind: 'replayed', id: earlier.id }
      : { kind: 'idempotency-conflict' };
  }
  const reason = refusal(counts, acceptedAt);
  if (reason !== null) return { kind: 'refused', reason, limits: limitsLeft(counts, acceptedAt) };
  countOne(counts);
  const suppressed = mail.suppressed || lookups.isSuppressed(mail);
  const state = suppressed ? SUPPRESSED : mail.lease === null ? QUEUED : SENDING;
  return { kind: 'accepted', state, limits: limitsLeft(counts, acceptedAt) };
}

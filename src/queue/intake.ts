/**
 * Takes a message from the listener into the store: asks the dispatcher for a lease where this node can send it at once,
 * commits it in a batch with others, and offers it to the dispatcher straight from memory.
 *
 * Guarantees: `submit` resolves after the sync. The dispatcher has the message before `submit` resolves, so its attempt may
 * begin before the client has the 201. Fails: rejects where the batch was not committed; the lease is then returned.
 */
import { IDEMPOTENCY_MS } from '../model/limits.ts';
import type { AcceptAnswer, NewMail } from '../model/message.ts';
import type { Ages } from './ages.ts';
import type { Dispatcher } from './dispatcher.ts';
import { sizeOf } from './held.ts';

export interface IntakeParts {
  /** Group commit over the store's `accept`. */
  readonly commit: (mail: NewMail) => Promise<AcceptAnswer>;
  readonly ages: Pick<Ages, 'datedBefore'>;
  /** Null on a node that does not deliver. */
  readonly dispatcher: Pick<Dispatcher, 'leaseForNew' | 'returnLease' | 'offer' | 'wake'> | null;
  /** True for an address that the transport itself says is always on the suppression list (`answersItself`). */
  readonly suppressed: (recipient: string) => boolean;
}

/** Makes the listener's `submit`; a rejection means that nothing is known to be stored. */
export function createIntake({
  commit,
  ages,
  dispatcher,
  suppressed,
}: IntakeParts): (mail: NewMail) => Promise<AcceptAnswer> {
  return async function submit(given) {
    const lease = dispatcher === null ? null : dispatcher.leaseForNew(given.acceptedAt, sizeOf(given));
    const { idempotency: key } = given;
    const idempotency = key === null ? null : { ...key, overAt: ages.datedBefore(IDEMPOTENCY_MS) };
    const mail: NewMail = { ...given, idempotency, lease, suppressed: suppressed(given.recipient) };
    let answer: AcceptAnswer | null = null;
    try {
      answer = await commit(mail);
      return answer;
    } finally {
      if (dispatcher !== null) handOn(dispatcher, mail, answer);
    }
  };
}

function handOn(dispatcher: NonNullable<IntakeParts['dispatcher']>, mail: NewMail, answer: AcceptAnswer | null): void {
  const state = answer?.kind === 'accepted' ? answer.state : null;
  if (mail.lease === null) {
    if (state === 'queued') dispatcher.wake();
    return;
  }
  if (state !== 'sending') {
    dispatcher.returnLease(sizeOf(mail));
    return;
  }
  const { id, accountId, to, from, subject, message, acceptedAt, lease } = mail;
  dispatcher.offer({ id, accountId, to, from, subject, message, acceptedAt, attempts: 1, lease });
}

/** History entries of events that a transaction of the store finds out by itself; the same for both databases. */
import { RECORDED, type RecordedType } from './events.ts';
import type { MailEvent } from './message.ts';

/** An entry that no attempt caused. */
export type EntryWithoutAttempt = MailEvent & { readonly attempt: null };

function entryOf(type: RecordedType, at: number, by: string, detail: string | null): EntryWithoutAttempt {
  return { at, verb: RECORDED[type].verb, by, detail, attempt: null };
}

/** The recipient was on the suppression list, or (`simulator`) is the simulator's address that always is. */
export function suppressedEntry(at: number, by: 'store' | 'simulator'): EntryWithoutAttempt {
  return entryOf('message.suppressed', at, by, 'the recipient is on the suppression list');
}

/** A queued message past its maximum age. */
export function overAgeEntry(at: number, by: string): EntryWithoutAttempt {
  return entryOf('message.expired', at, by, 'still not delivered at its maximum age');
}

export function operatorEntry(type: 'message.retried' | 'message.cancelled', at: number): EntryWithoutAttempt {
  return entryOf(type, at, 'operator', null);
}

/**
 * What becomes of a lease that ended without an answer: the state, the entry, and whether the attempt is given back. Only under
 * `hold` do marks (`marked`) tell whether the lease was used.
 */
export function lostLease(
  onUncertain: 'resend' | 'hold',
  marked: boolean,
  at: number,
  by: string,
): { readonly to: 'queued' | 'uncertain'; readonly entry: EntryWithoutAttempt; readonly uncount: boolean } {
  if (onUncertain === 'hold' && marked) {
    const detail = 'the lease ended while the message was handed over; no answer is recorded';
    return { to: 'uncertain', entry: entryOf('message.uncertain', at, by, detail), uncount: false };
  }
  const uncount = onUncertain === 'hold';
  const detail = uncount
    ? 'the lease ended before the message was sent'
    : 'the lease ended without an answer; whether the message was sent is not known';
  return { to: 'queued', entry: entryOf('message.recovered', at, by, detail), uncount };
}

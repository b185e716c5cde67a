/**
 * The one place where an outcome becomes a change of state. Pure: state and outcome in, next state and event out.
 * Unknown failure is temporary; nothing here ever drops a mail request.
 */

import type { Change } from './message.ts';
import type { Attempt, Reply } from './outcome.ts';
import { retryDelayMs } from './retry-schedule.ts';

export interface Policy {
  readonly maxAgeMs: number;
  readonly onUncertain: 'resend' | 'hold';
}

/** What `record` has to know of the mail request. */
export interface Recorded {
  readonly acceptedAt: number;
  readonly attempts: number;
}

/** The change that an attempt's outcome makes to a leased mail request. `random` in [0, 1) is the retry's jitter. */
export function afterAttempt(
  mail: Recorded,
  attempt: Attempt,
  policy: Policy,
  by: string,
  now: number,
  random: number,
): Change {
  const { outcome } = attempt;
  const event = (verb: string, detail: string) => ({ at: now, verb, by, detail, attempt });
  switch (outcome.kind) {
    case 'delivered':
      return ended('delivered', event('delivered', replyLine(outcome.reply)), null);
    case 'bounced':
      return ended('bounced', event('bounced', replyLine(outcome.reply)), outcome.suppress ? 'bounce' : null);
    case 'deferred':
      return deferred(mail, policy, now, random, event, replyLine(outcome.reply));
    case 'unanswered': {
      const detail = `handed over, but no answer: ${replyLine(outcome.reply)}`;
      if (policy.onUncertain === 'hold') {
        return { to: 'uncertain', dueAt: null, event: event('uncertain', detail), suppress: null };
      }
      return deferred(mail, policy, now, random, event, detail);
    }
  }
}

/** The change for a leased mail request found past its maximum age before an attempt. */
export function expiredBeforeAttempt(by: string, now: number): Change {
  const detail = 'older than its maximum age (POSTRIDER_MAX_AGE)';
  return ended('expired', { at: now, verb: 'expired', by, detail, attempt: null }, null);
}

/** The simulator's complaint: what feedback does to a delivered mail request, without touching any reputation. */
export function simulatedComplaint(now: number): Change {
  const detail = 'complaint of the mailbox simulator';
  return ended('complained', { at: now, verb: 'complained', by: 'simulator', detail, attempt: null }, null);
}

/** True once a mail request accepted then is past its maximum age now. */
export function isPastMaxAge(acceptedAt: number, policy: Policy, now: number): boolean {
  return now >= acceptedAt + policy.maxAgeMs;
}

function ended(
  to: 'delivered' | 'bounced' | 'complained' | 'expired',
  event: Change['event'],
  suppress: Change['suppress'],
): Change {
  return { to, dueAt: null, event, suppress };
}

function deferred(
  mail: Recorded,
  policy: Policy,
  now: number,
  random: number,
  event: (verb: string, detail: string) => Change['event'],
  detail: string,
): Change {
  if (isPastMaxAge(mail.acceptedAt, policy, now)) {
    return ended('expired', event('expired', detail), null);
  }
  // Never due after its maximum age: the sweep that ends it finds it in time also when retries are hours apart.
  const dueAt = Math.min(now + retryDelayMs(mail.attempts, random), mail.acceptedAt + policy.maxAgeMs);
  return { to: 'queued', dueAt, event: event('deferred', detail), suppress: null };
}

/** A reply on one line, as an event tells it: `550 5.1.1 no such user`. */
export function replyLine(reply: Reply): string {
  const parts = [reply.code === null ? null : String(reply.code), reply.enhanced, reply.text];
  return parts.filter((part) => part !== null && part !== '').join(' ');
}

/**
 * The one place where an attempt's outcome becomes a change of state; what reports change is in feedback.ts. Pure: outcome in,
 * next state and event out. The dispatcher calls it after each attempt, the store writes what it answers (`settle`).
 * Unknown failure is temporary; nothing here ever drops a mail request.
 */

import { changeOf, type TypedChange } from './events.ts';
import type { MailEvent } from './message.ts';
import type { Attempt, Reply } from './outcome.ts';

export interface Policy {
  readonly maxAgeMs: number;
  readonly onUncertain: 'resend' | 'hold';
}

/** What `afterAttempt` has to know of the message. */
export interface AttemptedMessage {
  readonly acceptedAt: number;
  readonly attempts: number;
}

/** The change that an attempt's outcome makes to a leased mail request. `random` in [0, 1) is the retry's jitter. */
export function afterAttempt(
  mail: AttemptedMessage,
  attempt: Attempt,
  policy: Policy,
  by: string,
  now: number,
  random: number,
): TypedChange {
  const { outcome } = attempt;
  const entry = (detail: string) => ({ at: now, by, detail, attempt });
  switch (outcome.kind) {
    case 'delivered':
      return changeOf('message.delivered', entry(replyLine(outcome.reply)));
    case 'bounced':
      return changeOf('message.bounced', entry(replyLine(outcome.reply)), null, outcome.suppress ? 'bounce' : null);
    case 'deferred':
      return deferred(mail, policy, random, entry(replyLine(outcome.reply)));
    case 'unanswered': {
      const what = entry(`handed over, but no answer: ${replyLine(outcome.reply)}`);
      return policy.onUncertain === 'hold' ? changeOf('message.uncertain', what) : deferred(mail, policy, random, what);
    }
  }
}

/** The change for a leased mail request found past its maximum age before an attempt. */
export function expiredBeforeAttempt(by: string, now: number): TypedChange {
  const detail = 'older than its maximum age (POSTRIDER_MAX_AGE)';
  return changeOf('message.expired', { at: now, by, detail, attempt: null });
}

/** The simulator's complaint: what feedback does to a delivered mail request, without touching any reputation. */
export function simulatedComplaint(now: number): TypedChange {
  const detail = 'complaint of the mailbox simulator';
  return changeOf('message.complained', { at: now, by: 'simulator', detail, attempt: null });
}

/** True once a mail request accepted then is past its maximum age now. */
export function isPastMaxAge(acceptedAt: number, policy: Policy, now: number): boolean {
  return now >= acceptedAt + policy.maxAgeMs;
}

function deferred(mail: AttemptedMessage, policy: Policy, random: number, entry: Omit<MailEvent, 'verb'>): TypedChange {
  const now = entry.at;
  if (isPastMaxAge(mail.acceptedAt, policy, now)) return changeOf('message.expired', entry);
  // Never due after its maximum age: the sweep that ends it finds it in time also when retries are hours apart.
  const dueAt = Math.min(now + retryDelayMs(mail.attempts, random), mail.acceptedAt + policy.maxAgeMs);
  return changeOf('message.deferred', entry, dueAt);
}

/** A reply on one line, as an event tells it: `550 5.1.1 no such user`. */
function replyLine(reply: Reply): string {
  const parts = [reply.code === null ? null : String(reply.code), reply.enhanced, reply.text];
  return parts.filter((part) => part !== null && part !== '').join(' ');
}

// When a deferred mail request is tried again.

const MINUTE = 60_000;

/** Delay after the first, second, … attempt; the last one repeats until the maximum age. */
const DELAYS_MS = [1 * MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE, 60 * MINUTE, 120 * MINUTE] as const;

/** Part of the delay by which a retry may come earlier or later, so that mail deferred together does not return together. */
const JITTER = 0.15;

/** No retry is due later than this after its attempt. */
export const LONGEST_RETRY_MS = Math.ceil(120 * MINUTE * (1 + JITTER));

/** Milliseconds to wait after attempt number `attempts` (1 for the first); `random` is in [0, 1). */
export function retryDelayMs(attempts: number, random: number): number {
  const delay = DELAYS_MS[Math.min(Math.max(attempts, 1), DELAYS_MS.length) - 1] ?? 120 * MINUTE;
  return Math.round(delay * (1 - JITTER + 2 * JITTER * random));
}

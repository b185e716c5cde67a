/**
 * The states of a mail request and the one table of transitions between them. Every change of state,
 * whoever causes it, is looked up here; docs/states.md is held equal to this file by a test.
 */
import type { Attempt, Reply } from './outcome.ts';

export const STATES = [
  'queued',
  'sending',
  'delivered',
  'bounced',
  'complained',
  'suppressed',
  'expired',
  'cancelled',
  'uncertain',
] as const;

export type State = (typeof STATES)[number];

/** One true sentence per state, as docs/states.md prints it, and the operator’s views where nothing closer is known. */
export const STATE_MEANING: Readonly<Record<State, string>> = {
  queued: 'accepted and due at a known time',
  sending: 'leased by one node until a known time; a dead node’s lease runs out and another takes over',
  delivered: 'the next hop (provider, relay or mail server) took responsibility for it',
  bounced: 'permanently refused, at once or by a later bounce message',
  complained: 'delivered, and the recipient reported it as spam',
  suppressed: 'never handed over: the recipient is on the suppression list',
  expired: 'still temporarily refused at its maximum age',
  cancelled: 'withdrawn by an operator while queued',
  uncertain: 'handed over, and the connection or the node was lost before the answer; the operator has chosen hold',
};

/** Who may cause a transition: the accepting request, the queue, an operator, or a later notice. */
export type Cause = 'accept' | 'queue' | 'operator' | 'feedback';

/** The only transitions there are. `from: null` is a mail request that does not exist yet. */
export const TRANSITIONS: readonly { readonly from: State | null; readonly to: State; readonly by: Cause }[] = [
  { from: null, to: 'queued', by: 'accept' },
  { from: null, to: 'sending', by: 'accept' },
  { from: null, to: 'suppressed', by: 'accept' },
  { from: 'queued', to: 'sending', by: 'queue' },
  { from: 'queued', to: 'suppressed', by: 'queue' },
  { from: 'queued', to: 'expired', by: 'queue' },
  { from: 'queued', to: 'cancelled', by: 'operator' },
  { from: 'sending', to: 'delivered', by: 'queue' },
  { from: 'sending', to: 'bounced', by: 'queue' },
  { from: 'sending', to: 'queued', by: 'queue' },
  { from: 'sending', to: 'expired', by: 'queue' },
  { from: 'sending', to: 'uncertain', by: 'queue' },
  { from: 'uncertain', to: 'queued', by: 'operator' },
  { from: 'uncertain', to: 'cancelled', by: 'operator' },
  { from: 'uncertain', to: 'bounced', by: 'feedback' },
  { from: 'uncertain', to: 'complained', by: 'feedback' },
  { from: 'delivered', to: 'bounced', by: 'feedback' },
  { from: 'delivered', to: 'complained', by: 'feedback' },
];

const ALLOWED: ReadonlySet<string> = new Set(TRANSITIONS.map((t) => `${t.from}>${t.to}:${t.by}`));

/** True when the table has the transition. */
export function allowed(from: State | null, to: State, by: Cause): boolean {
  return ALLOWED.has(`${from}>${to}:${by}`);
}

/** States from which the queue never takes a mail request again; a body may be erased after one of them. */
export const TERMINAL: ReadonlySet<State> = new Set([
  'delivered',
  'bounced',
  'complained',
  'suppressed',
  'expired',
  'cancelled',
]);

// The one place where an outcome becomes a change of state. Pure: state and outcome in, next state and event out.
// Unknown failure is temporary; nothing here ever drops a mail request.

/** What happened, as the history of a mail request tells it. */
export interface MailEvent {
  readonly at: number;
  /** Domain verb, such as `delivered`, `deferred`, `bounced`, `recovered`, `retried`. */
  readonly verb: string;
  /** Who or what caused it: a node's name, `operator`, `simulator`. */
  readonly by: string;
  /** One line for people: the reply, the reason. */
  readonly detail: string | null;
  readonly attempt: Attempt | null;
}

/** A change of state to be written, computed by `record`. */
export interface Change {
  readonly to: State;
  /** When it is next tried; present when `to` is `queued`. */
  readonly dueAt: number | null;
  readonly event: MailEvent;
  /** Put the recipient on the account's suppression list in the same transaction. */
  readonly suppress: 'bounce' | 'complaint' | null;
}

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

/**
 * A message (the public interface calls it mail request): accepted, leased for one attempt at a time, settled, and shown to
 * operators; its states and their transitions. Pure. Times are milliseconds since the epoch.
 *
 * Guarantees: every change of state is one of `TRANSITIONS`, whatever its cause; an unknown failure is temporary; no function drops a
 * message. feedback.ts decides what reports change.
 */
import type { Attempt, Reply } from './outcome.ts';

/** A valid message that is about to be stored. */
export interface NewMessage {
  /** Lower-case UUIDv7 made by `MessageIdGenerator`; greater than every id this store has seen. */
  readonly id: string;
  readonly accountId: number;
  readonly keyId: number;
  readonly acceptedAt: number;
  readonly to: string;
  /** Canonical recipient for the suppression list (`canonicalAddress`). */
  readonly recipient: string;
  readonly from: string;
  readonly subject: string;
  readonly message: string;
  /**
   * Fingerprint is a SHA-256 over the four fields, in hexadecimal. A key that is stored with a time up to `expiredBefore` is free
   * again; without it, one stored 24 hours before `acceptedAt`.
   */
  readonly idempotency: { readonly key: string; readonly fingerprint: string; readonly expiredBefore?: number } | null;
  /** Set if this node sends the message from memory. Null: it is queued and due at once. */
  readonly lease: Lease | null;
  /** Set where the transport suppresses it by a local answer, whatever the list says: the source that the history records. */
  readonly suppressedBy: string | null;
}

export interface Lease {
  /** The node's name, unique for each start of a process. */
  readonly owner: string;
  readonly until: number;
}

export type AcceptResult =
  | { readonly kind: 'accepted'; readonly state: 'queued' | 'sending' | 'suppressed'; readonly limits: RemainingLimits }
  | { readonly kind: 'replayed'; readonly id: string }
  | { readonly kind: 'idempotency-conflict' }
  | {
      readonly kind: 'refused';
      readonly reason: 'volume-exhausted' | 'volume-expired' | 'rate-limit-exceeded';
      readonly limits: RemainingLimits;
    }
  /** The account was locked or removed after the caller's cache was updated. */
  | { readonly kind: 'locked' };

/** A message that is leased for one attempt. */
export interface LeasedMessage {
  readonly id: string;
  readonly accountId: number;
  readonly to: string;
  readonly from: string;
  readonly subject: string;
  readonly message: string;
  readonly acceptedAt: number;
  /** Leases so far, this one included, without those that were released unused: 1 for the first. */
  readonly attempts: number;
  readonly lease: Lease;
}

/** Identifies one lease. Owner and attempt count fence off settlements of an earlier lease. */
export interface LeaseRef {
  readonly id: string;
  readonly owner: string;
  readonly attempts: number;
}

/** One entry in the history of a message. */
export interface HistoryEntry {
  readonly at: number;
  /** What happened: a `verb` of `RECORDED_EVENTS` (events.ts), or what a report says (`ReportEntryType`). */
  readonly verb: string;
  /** The cause: a node's name, `operator`, `simulator`. */
  readonly by: string;
  /** One line of text: the reply or the reason. */
  readonly detail: string | null;
  readonly attempt: Attempt | null;
}

/** A change of state to be written; `recordedChange` makes it. */
export interface StateChange {
  readonly to: State;
  /** When the next attempt is due; set if `to` is `queued`. */
  readonly dueAt: number | null;
  readonly event: HistoryEntry;
  /** Set if the same transaction adds the recipient to the account's suppression list. */
  readonly suppress: 'bounce' | 'complaint' | null;
}

/** The end of a lease. */
export interface Settlement {
  readonly id: string;
  readonly owner: string;
  /** `attempts` of the lease: together with the owner it is the fence. */
  readonly attempts: number;
  /** Applied in order: the attempt's own change, then a complaint of a local answer. */
  readonly changes: readonly StateChange[];
  /** True if no attempt was made, because the message was past its maximum age: the attempt count is reduced again. */
  readonly refundAttempt: boolean;
  /** True where it counts into no reputation: the transport answered by itself, or a test message. */
  readonly excludedFromReputation?: boolean;
}

export type SettleResult = 'settled' | 'lost';

export interface MessageFilter {
  readonly accountId: number | null;
  readonly state: State | null;
  readonly to: string | null;
  readonly since: number | null;
  /** Only messages accepted before the message with this id, for the next page. */
  readonly before?: string | null;
  readonly limit: number;
}

export interface StoredMessageSummary {
  readonly id: string;
  readonly accountId: number;
  readonly state: State;
  readonly to: string;
  readonly from: string;
  readonly subject: string;
  readonly acceptedAt: number;
}

export interface StoredMessage extends StoredMessageSummary {
  readonly keyId: number;
  /** When the next attempt is due (`queued`) or when its lease ends (`sending`). */
  readonly dueAt: number | null;
  readonly owner: string | null;
  readonly attempts: number;
  readonly endedAt: number | null;
  /** Null once the body is erased. */
  readonly message: string | null;
  /** In order, `accepted` first. */
  readonly events: readonly HistoryEntry[];
}

export type MessageHistory = Omit<StoredMessage, 'message'>;

/** The result of an operator's change of one message. `wrong-state` names the state that forbids it. */
export type OperatorChangeResult =
  | { readonly kind: 'done' }
  | { readonly kind: 'missing' }
  | { readonly kind: 'wrong-state'; readonly state: State };

/**
 * What the transaction of an event writes: the stored type of the history entry, and the new state of the message.
 * `message.accepted` has no entry; the row of the message records it. Stored values keep their names.
 */
export const RECORDED_EVENTS = {
  'message.suppressed': { verb: 'suppressed', state: 'suppressed' },
  'message.delivered': { verb: 'delivered', state: 'delivered' },
  'message.deferred': { verb: 'deferred', state: 'queued' },
  'message.bounced': { verb: 'bounced', state: 'bounced' },
  'message.complained': { verb: 'complained', state: 'complained' },
  'message.expired': { verb: 'expired', state: 'expired' },
  'message.uncertain': { verb: 'uncertain', state: 'uncertain' },
  'message.cancelled': { verb: 'cancelled', state: 'cancelled' },
  'message.retried': { verb: 'retried', state: 'queued' },
  /** Its lease was recovered. `node.leases_recovered` is published once for all leases of a round. */
  'message.recovered': { verb: 'recovered', state: 'queued' },
} as const satisfies Readonly<Record<string, { readonly verb: string; readonly state: State }>>;
type RecordedType = keyof typeof RECORDED_EVENTS;

/** The history entry of the acceptance, which the message's own row records. */
export const ACCEPTED_VERB = 'accepted';

/** What the queue may record of a leased message. */
export type SettledEventType =
  | 'message.delivered'
  | 'message.deferred'
  | 'message.bounced'
  | 'message.complained'
  | 'message.expired'
  | 'message.uncertain';

/** A change that is published as an event after its commit. */
export interface RecordedChange extends StateChange {
  readonly type: SettledEventType;
}

/** Makes the change that records an event, with the entry type and state of `RECORDED_EVENTS`. */
export function recordedChange(
  type: SettledEventType,
  entry: Omit<HistoryEntry, 'verb'>,
  dueAt: number | null = null,
  suppress: StateChange['suppress'] = null,
): RecordedChange {
  const { verb, state } = RECORDED_EVENTS[type];
  const { at, by, detail, attempt } = entry;
  return { type, to: state, dueAt, event: { at, verb, by, detail, attempt }, suppress };
}

/** What remains of the account's limits, for the RateLimit headers. */
export interface RemainingLimits {
  readonly rate: {
    readonly limit: number;
    readonly periodMs: number;
    readonly remaining: number;
    readonly resetMs: number;
  } | null;
}

/** How long idempotency keys are valid (guaranteed by the public interface). */
export const IDEMPOTENCY_KEY_TTL_MS = 24 * 3_600_000;

/** Stored idempotency keys up to this time have expired and can be used again by this message. */
export function idempotencyKeysExpiredBefore({
  idempotency,
  acceptedAt,
}: Pick<NewMessage, 'idempotency' | 'acceptedAt'>): number {
  return idempotency?.expiredBefore ?? acceptedAt - IDEMPOTENCY_KEY_TTL_MS;
}

// The states and the one table of transitions between them; docs/states.md is held equal to them by a test.

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

/** One sentence per state, which docs/states.md prints, and operators see if no more specific text is known. */
export const STATE_DESCRIPTIONS: Readonly<Record<State, string>> = {
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

/** The cause of a transition: the accepting request, the queue, an operator, or a report. */
export type Cause = 'accept' | 'queue' | 'operator' | 'feedback';

/** All allowed transitions. `from: null` is a message that does not exist yet. */
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

const ALLOWED_TRANSITIONS: ReadonlySet<string> = new Set(TRANSITIONS.map((t) => `${t.from}>${t.to}:${t.by}`));

/** True if `TRANSITIONS` contains the transition. */
export function isAllowedTransition(from: State | null, to: State, by: Cause): boolean {
  return ALLOWED_TRANSITIONS.has(`${from}>${to}:${by}`);
}

/** States in which the queue no longer handles a message. Its body can be erased in these states. */
export const TERMINAL_STATES: ReadonlySet<State> = new Set([
  'delivered',
  'bounced',
  'complained',
  'suppressed',
  'expired',
  'cancelled',
]);

// The change that an attempt's outcome causes. The dispatcher calls `decideAttemptChange` after each attempt; the store writes the result (`settle`).

export interface DeliveryPolicy {
  readonly maxAgeMs: number;
  readonly onUncertain: 'resend' | 'hold';
}

/** The properties of the message that `decideAttemptChange` needs. */
interface AttemptedMessage {
  readonly acceptedAt: number;
  readonly attempts: number;
}

/** The change that an attempt's outcome causes to a leased message. `random` in [0, 1) is the jitter of the retry. */
export function decideAttemptChange(
  message: AttemptedMessage,
  attempt: Attempt,
  policy: DeliveryPolicy,
  by: string,
  now: number,
  random: number,
): RecordedChange {
  const { outcome } = attempt;
  const entry = (detail: string) => ({ at: now, by, detail, attempt });
  switch (outcome.kind) {
    case 'delivered':
      return recordedChange('message.delivered', entry(formatReply(outcome.reply)));
    case 'bounced':
      return recordedChange(
        'message.bounced',
        entry(formatReply(outcome.reply)),
        null,
        outcome.suppress ? 'bounce' : null,
      );
    case 'deferred':
      return deferredChange(message, policy, random, entry(formatReply(outcome.reply)));
    case 'unanswered': {
      const uncertainEntry = entry(`handed over, but no answer: ${formatReply(outcome.reply)}`);
      return policy.onUncertain === 'hold'
        ? recordedChange('message.uncertain', uncertainEntry)
        : deferredChange(message, policy, random, uncertainEntry);
    }
  }
}

/** The change of a leased message that is past its maximum age before an attempt. */
export function expiredBeforeAttempt(by: string, now: number): RecordedChange {
  const detail = 'older than its maximum age (POSTRIDER_MAX_AGE)';
  return recordedChange('message.expired', { at: now, by, detail, attempt: null });
}

/** The complaint of a local answer after its delivery. It suppresses no recipient. */
export function localComplaint(at: number, by: string, detail: string): RecordedChange {
  return recordedChange('message.complained', { at, by, detail, attempt: null });
}

/** True if a message accepted at `acceptedAt` is past its maximum age at `now`. */
export function isPastMaxAge(acceptedAt: number, policy: DeliveryPolicy, now: number): boolean {
  return now >= acceptedAt + policy.maxAgeMs;
}

function deferredChange(
  message: AttemptedMessage,
  policy: DeliveryPolicy,
  random: number,
  entry: Omit<HistoryEntry, 'verb'>,
): RecordedChange {
  const now = entry.at;
  if (isPastMaxAge(message.acceptedAt, policy, now)) return recordedChange('message.expired', entry);
  // Never due after its maximum age, so the sweeper expires it on time even if retries are hours apart.
  const dueAt = Math.min(now + retryDelayMs(message.attempts, random), message.acceptedAt + policy.maxAgeMs);
  return recordedChange('message.deferred', entry, dueAt);
}

/** A reply on one line, for example `550 5.1.1 no such user`. */
function formatReply(reply: Reply): string {
  const parts = [reply.code === null ? null : String(reply.code), reply.enhanced, reply.text];
  return parts.filter((part) => part !== null && part !== '').join(' ');
}

// The retry schedule of deferred messages.

const MINUTE_MS = 60_000;

/** The delays after the first, second, … attempt. The last delay repeats until the maximum age. */
const RETRY_DELAYS_MS = [
  1 * MINUTE_MS,
  5 * MINUTE_MS,
  15 * MINUTE_MS,
  30 * MINUTE_MS,
  60 * MINUTE_MS,
  120 * MINUTE_MS,
] as const;

/** Jitter as a fraction of the delay, so messages that were deferred together are not retried together. */
const JITTER_FRACTION = 0.15;

/** The longest delay between an attempt and its retry. */
export const MAX_RETRY_DELAY_MS = Math.ceil(120 * MINUTE_MS * (1 + JITTER_FRACTION));

/** Milliseconds to wait after attempt number `attempts` (1 for the first); `random` is in [0, 1). */
export function retryDelayMs(attempts: number, random: number): number {
  const delay = RETRY_DELAYS_MS[Math.min(Math.max(attempts, 1), RETRY_DELAYS_MS.length) - 1] ?? 120 * MINUTE_MS;
  return Math.round(delay * (1 - JITTER_FRACTION + 2 * JITTER_FRACTION * random));
}

// History entries of changes that a transaction of the store decides. Both databases use them.

/** An entry that no attempt caused. */
export type EntryWithoutAttempt = HistoryEntry & { readonly attempt: null };

function createEntry(type: RecordedType, at: number, by: string, detail: string | null): EntryWithoutAttempt {
  return { at, verb: RECORDED_EVENTS[type].verb, by, detail, attempt: null };
}

/** The recipient was on the suppression list (`by` is `store`), or the transport suppressed the message by a local answer. */
export function suppressedEntry(at: number, by: string): EntryWithoutAttempt {
  return createEntry('message.suppressed', at, by, 'the recipient is on the suppression list');
}

/** A queued message past its maximum age. */
export function expiredEntry(at: number, by: string): EntryWithoutAttempt {
  return createEntry('message.expired', at, by, 'still not delivered at its maximum age');
}

export function operatorEntry(type: 'message.retried' | 'message.cancelled', at: number): EntryWithoutAttempt {
  return createEntry(type, at, 'operator', null);
}

/**
 * Decides how a lease that expired without an outcome is resolved: the state, the entry, and whether the attempt is not counted.
 * Marks (`marked`) exist only under `hold`; they show whether the lease was used.
 */
export function resolveLostLease(
  onUncertain: 'resend' | 'hold',
  isMarked: boolean,
  at: number,
  by: string,
): { readonly to: 'queued' | 'uncertain'; readonly entry: EntryWithoutAttempt; readonly refundAttempt: boolean } {
  if (onUncertain === 'hold' && isMarked) {
    const detail = 'the lease ended while the message was handed over; no answer is recorded';
    return { to: 'uncertain', entry: createEntry('message.uncertain', at, by, detail), refundAttempt: false };
  }
  const refundAttempt = onUncertain === 'hold';
  const detail = refundAttempt
    ? 'the lease ended before the message was sent'
    : 'the lease ended without an answer; whether the message was sent is not known';
  return { to: 'queued', entry: createEntry('message.recovered', at, by, detail), refundAttempt };
}

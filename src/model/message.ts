/**
 * A message (called "mail request" in the public interface), its states and their transitions. A message is accepted,
 * leased for one attempt at a time, and settled. Pure. All times are in milliseconds since the epoch.
 *
 * Guarantees: every change of state is one of `TRANSITIONS`. An unknown failure counts as temporary. No function
 * discards a message. feedback.ts decides the changes that reports cause.
 */
import {
  type Failure,
  type FailureCategory,
  type FailureClass,
  MAX_DIAGNOSTIC_LENGTH,
  type RecordedFailure,
} from './failure.ts';
import type { Attempt, Reply } from './outcome.ts';

/**
 * The key id of a notification to operators. API keys have positive ids, and the test message of `doctor --loop` has
 * the key id 0.
 */
export const NOTIFICATION_KEY_ID = -1;

/** Returns the submitter of a message: an API key, such as `key_12`, or `notification`. */
export function formatSubmitter(keyId: number): string {
  return keyId === NOTIFICATION_KEY_ID ? 'notification' : `key_${keyId}`;
}

/** A valid message that is not stored yet. */
export interface NewMessage {
  /** Lower-case UUIDv7 of `MessageIdGenerator`. It is greater than every earlier id of this generator. */
  readonly id: string;
  readonly accountId: number;
  /**
   * The API key. A message with `NOTIFICATION_KEY_ID` is exempt from the limits, and is accepted for a locked account.
   */
  readonly keyId: number;
  readonly acceptedAt: number;
  readonly to: string;
  /** The canonical address of the recipient (`toCanonicalAddress`), which is the key of the suppression list. */
  readonly recipient: string;
  readonly from: string;
  readonly subject: string;
  readonly message: string;
  /**
   * The idempotency key of the request. `fingerprint` is the SHA-256 of `to`, `from`, `subject` and `message` in
   * hexadecimal. A key that was stored at `expiredBefore` or earlier has expired. The default of `expiredBefore` is 24
   * hours before `acceptedAt`.
   */
  readonly idempotency: { readonly key: string; readonly fingerprint: string; readonly expiredBefore?: number } | null;
  /** The lease, if this node sends the message from memory. Null if the message is queued and due at once. */
  readonly lease: Lease | null;
  /**
   * The source of a local answer that suppresses the message, independently of the suppression list. The history
   * records this source as the cause.
   */
  readonly suppressedBy: string | null;
  /** The ended message that this message submits again, or null. The history names the ended message. Default: null. */
  readonly resendOf?: string | null;
}

export interface Lease {
  /** The name of the owning node. A process gets a new, unique name each time that it starts. */
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
  /** The account was locked or removed after the last update of the caller's cache. */
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
  /**
   * The number of leases up to and including this lease, without leases that were released unused. The first lease has
   * number 1.
   */
  readonly attempts: number;
  readonly lease: Lease;
}

/**
 * The identity of one lease. A settlement is valid only for the owner and the attempt count of the lease: the store
 * refuses the settlement of any earlier lease.
 */
export interface LeaseRef {
  readonly id: string;
  readonly owner: string;
  readonly attempts: number;
}

/** One entry in the history of a message. */
export interface HistoryEntry {
  readonly at: number;
  /** The type of the entry: a `verb` of `RECORDED_EVENTS`, or a `ReportEntryType`. */
  readonly verb: string;
  /** The cause of the entry, for example the name of a node, `operator`, `store` or `simulator`. */
  readonly by: string;
  /** The reply of the next hop or the reason, on one line. */
  readonly detail: string | null;
  /**
   * The failure of the attempt or of the reported bounce. The entry `expired` has the last failure of the message. Null
   * if there is no failure.
   */
  readonly failure: RecordedFailure | null;
  readonly attempt: Attempt | null;
}

/** A change of state that is not written yet. `createRecordedChange` creates it. */
export interface StateChange {
  readonly to: State;
  /** The time when the next attempt is due. Null unless `to` is `queued`. */
  readonly dueAt: number | null;
  readonly event: HistoryEntry;
  /**
   * The reason with which the transaction of the change adds the recipient to the account's suppression list, or null.
   */
  readonly suppress: 'bounce' | 'complaint' | null;
}

/** The settlement of a lease: the changes that end it. */
export interface Settlement {
  readonly id: string;
  readonly owner: string;
  /** The attempt count of the lease. A settlement is valid only for the owner and this count. */
  readonly attempts: number;
  /** The changes in order: the change that the attempt causes, then the complaint if a local answer reports one. */
  readonly changes: readonly StateChange[];
  /**
   * True if no attempt was made because the message was past its maximum age. The attempt count is then reduced by one.
   */
  readonly refundAttempt: boolean;
  /** True if the message does not count towards the reputation: a message with a local answer, or a test message. */
  readonly excludedFromReputation?: boolean;
}

export type SettleResult = 'settled' | 'lost';

export interface MessageFilter {
  readonly accountId: number | null;
  readonly state: State | null;
  readonly to: string | null;
  readonly since: number | null;
  /** The class and the category of the last failure of the message. Null or absent selects every message. */
  readonly failureClass?: FailureClass | null;
  readonly failureCategory?: FailureCategory | null;
  /** Selects only messages that were accepted before the message with this id, for the next page. */
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

/** A message in the result of a search, with the last outcome in its history. */
export interface FoundMessage extends StoredMessageSummary {
  /** The number of leases that were not released unused. */
  readonly attempts: number;
  /** The time of the last entry of the history. */
  readonly updatedAt: number;
  /** True for a queued message whose last attempt was deferred. */
  readonly deferred: boolean;
  /** The last entry that reports an outcome (an entry whose type is not in `VERBS_WITHOUT_OUTCOME`), or null. */
  readonly lastOutcome: LastOutcome | null;
}

/** The members of the last outcome that are shown in message lists. The texts are untrusted. */
export type LastOutcome = Pick<HistoryEntry, 'verb' | 'by' | 'detail' | 'failure'>;

/** A state, or `deferred`: a queued message whose last attempt was deferred. */
export type StateFilter = State | 'deferred';

/**
 * The types of the entries that do not report an outcome of the message. Message lists and searches for reply texts
 * ignore these entries.
 */
export const VERBS_WITHOUT_OUTCOME = ['resent', 'resend-of', 'retried', 'recovered', 'confirmed'] as const;

/** Returns the text of the last outcome: the reply of the next hop, the reported diagnostic, or the recorded reason. */
export function getOutcomeText(outcome: Pick<LastOutcome, 'detail' | 'failure'> | null): string | null {
  return outcome?.failure?.diagnostic ?? outcome?.detail ?? null;
}

export interface StoredMessage extends StoredMessageSummary {
  readonly keyId: number;
  /** The time when the next attempt is due (`queued`) or when the lease ends (`sending`). */
  readonly dueAt: number | null;
  readonly owner: string | null;
  readonly attempts: number;
  readonly endedAt: number | null;
  /** Null if the body was erased. */
  readonly message: string | null;
  /**
   * The history entries, oldest first. The first entry is `accepted`. Of a long history, the `SHOWN_ENTRIES` oldest and
   * newest entries.
   */
  readonly events: readonly HistoryEntry[];
  /** The number of history entries that are omitted between the oldest and the newest entries. */
  readonly omittedEvents: number;
  /** The number of feedback reports without an effect that were counted and not recorded. */
  readonly furtherReports: number;
}

/** The numbers of oldest and newest entries that are read of a long history. */
export const SHOWN_ENTRIES = { oldest: 50, newest: 50 } as const;

export type MessageHistory = Omit<StoredMessage, 'message'>;

/**
 * The result of an operator's change of one message. `wrong-state` contains the state that does not allow the change.
 */
export type OperatorChangeResult =
  | { readonly kind: 'done' }
  | { readonly kind: 'missing' }
  | { readonly kind: 'wrong-state'; readonly state: State };

/** The submission of an ended message as a new message. */
export interface ResendRequest {
  /** The ended message. */
  readonly id: string;
  /**
   * The id of the new message (`createOperatorMessageId`). The SQLite store assigns a smaller id if it already contains
   * a message whose id has the same time and counter.
   */
  readonly newId: string;
}

/** The new message of a resend. */
export interface ResentMessage {
  readonly id: string;
  readonly accountId: number;
  readonly keyId: number;
  readonly to: string;
  readonly from: string;
  readonly acceptedAt: number;
  readonly state: 'queued' | 'suppressed';
}

export type ResendResult =
  | {
      readonly kind: 'done';
      /** The new message. */
      readonly message: ResentMessage;
    }
  | { readonly kind: 'missing' }
  | { readonly kind: 'not-ended'; readonly state: State }
  /** The body of the message was erased. */
  | { readonly kind: 'erased' }
  /** The account is locked or does not exist. */
  | { readonly kind: 'locked' }
  | {
      readonly kind: 'refused';
      readonly reason: Extract<AcceptResult, { kind: 'refused' }>['reason'];
    };

/** An action of an operator on many messages. */
export const BULK_ACTIONS = ['retry', 'cancel', 'resend'] as const;
export type BulkAction = (typeof BULK_ACTIONS)[number];

/**
 * One batch of a run. A run performs an action on all messages that match a filter, in batches of one transaction each.
 */
export interface BulkStep {
  readonly action: BulkAction;
  readonly targets: readonly ResendRequest[];
  /** The filter, as the audit log entry names it. */
  readonly filter: string;
  /** The number of messages of the batch that the caller refused. */
  readonly refused: number;
  /** The id of the audit log entry that the first batch created. Null in the first batch. */
  readonly entry: number | null;
  /** True if no batch follows. */
  readonly isLast: boolean;
}

/** The reason why a message of a batch was not changed. */
export type BulkRefusal =
  | Exclude<ResendResult['kind'], 'done' | 'refused'>
  | Extract<ResendResult, { kind: 'refused' }>['reason']
  | 'wrong-state'
  /** The message was already resent, by a run or individually. A run resends only messages that were never resent. */
  | 'already-resent';

export type BulkOutcome =
  | { readonly kind: 'done'; readonly id: string; readonly resent: ResentMessage | null }
  | { readonly kind: 'refused'; readonly id: string; readonly reason: BulkRefusal };

export interface BulkResult {
  /** The outcomes in the order of the targets. */
  readonly outcomes: readonly BulkOutcome[];
  /** The id of the audit log entry, or null if no operator is named. */
  readonly entry: number | null;
}

/** Converts the result of one message to its outcome in a batch. */
export function toBulkOutcome(id: string, result: OperatorChangeResult | ResendResult): BulkOutcome {
  switch (result.kind) {
    case 'done':
      return { kind: 'done', id, resent: 'message' in result ? result.message : null };
    case 'refused':
      return { kind: 'refused', id, reason: result.reason };
    default:
      return { kind: 'refused', id, reason: result.kind };
  }
}

/**
 * The values that the transaction of an event writes: the type of the history entry and the new state of the message.
 * `message.accepted` has no entry, because the row of the message records it. The type and the state are stored, so
 * their names must not change.
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
  /** The lease was recovered. `node.leases_recovered` is published once for all leases that are recovered together. */
  'message.recovered': { verb: 'recovered', state: 'queued' },
} as const satisfies Readonly<Record<string, { readonly verb: string; readonly state: State }>>;
type RecordedType = keyof typeof RECORDED_EVENTS;

/** The type of the first history entry. This entry is derived from the row of the message. */
export const ACCEPTED_VERB = 'accepted';

/**
 * The types of the entries of a message that was submitted again. `resent` is an entry of the ended message, and its
 * detail is the id of the new message. `resend-of` is an entry of the new message, and its detail is the id of the
 * ended message.
 */
export const RESENT_VERB = 'resent';
export const RESEND_OF_VERB = 'resend-of';

/** The events that the queue may record for a leased message. */
export type SettledEventType =
  | 'message.delivered'
  | 'message.deferred'
  | 'message.bounced'
  | 'message.complained'
  | 'message.expired'
  | 'message.uncertain';

/** A change of state that is published as an event after its commit. */
export interface RecordedChange extends StateChange {
  readonly type: SettledEventType;
}

/** Creates the change that records an event, with the entry type and state of `RECORDED_EVENTS`. */
export function createRecordedChange(
  type: SettledEventType,
  entry: Omit<HistoryEntry, 'verb'>,
  dueAt: number | null = null,
  suppress: StateChange['suppress'] = null,
): RecordedChange {
  const { verb, state } = RECORDED_EVENTS[type];
  const { at, by, detail, failure, attempt } = entry;
  return { type, to: state, dueAt, event: { at, verb, by, detail, failure, attempt }, suppress };
}

/** The remaining limits of the account, for the RateLimit headers. */
export interface RemainingLimits {
  readonly rate: {
    readonly limit: number;
    readonly periodMs: number;
    readonly remaining: number;
    readonly resetMs: number;
  } | null;
}

/** The time for which an idempotency key is valid. The public interface guarantees this time. */
export const IDEMPOTENCY_KEY_TTL_MS = 24 * 3_600_000;

/**
 * Returns the expiry cutoff of idempotency keys: a key that was stored at this time or earlier has expired when the
 * message is accepted.
 */
export function getIdempotencyExpiryCutoff({
  idempotency,
  acceptedAt,
}: Pick<NewMessage, 'idempotency' | 'acceptedAt'>): number {
  return idempotency?.expiredBefore ?? acceptedAt - IDEMPOTENCY_KEY_TTL_MS;
}

// The states and the table of all transitions between states. A test checks that docs/states.md lists the same states
// and transitions.

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

/** The meaning of each state, for docs/states.md and for explanations to operators. */
export const STATE_DESCRIPTIONS: Readonly<Record<State, string>> = {
  queued: 'accepted and due at a known time',
  sending:
    'leased by one node until a known time; if the node stops, another node or the next start of the service recovers the message',
  delivered: 'the next hop (provider, relay or mail server) took responsibility for the message',
  bounced: 'permanently refused by the next hop, or reported as undeliverable by a bounce message or a provider event',
  complained: 'delivered, and later reported as spam by the recipient',
  suppressed: 'ended without a further attempt, because the recipient was on a suppression list',
  expired: 'still temporarily refused at its maximum age',
  cancelled: 'ended by an operator while queued or uncertain',
  uncertain:
    'the whole message was sent, the connection or the node was lost before the reply, and POSTRIDER_ON_UNCERTAIN is hold',
};

/** The cause of a transition: the accepting request, the queue, an operator, or a report. */
export type Cause = 'accept' | 'queue' | 'operator' | 'feedback';

/** All allowed transitions. `from` is null for a new message. */
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
  // From `queued` and `uncertain`: the report concerns a copy of the message that was sent in an attempt without a
  // recorded reply.
  { from: 'queued', to: 'delivered', by: 'feedback' },
  { from: 'queued', to: 'bounced', by: 'feedback' },
  { from: 'queued', to: 'complained', by: 'feedback' },
  { from: 'uncertain', to: 'delivered', by: 'feedback' },
  { from: 'uncertain', to: 'bounced', by: 'feedback' },
  { from: 'uncertain', to: 'complained', by: 'feedback' },
  // From `delivered`: the report arrived after the next hop had accepted the message.
  { from: 'delivered', to: 'bounced', by: 'feedback' },
  { from: 'delivered', to: 'complained', by: 'feedback' },
];

const ALLOWED_TRANSITIONS: ReadonlySet<string> = new Set(
  TRANSITIONS.map((transition) => `${transition.from}>${transition.to}:${transition.by}`),
);

/** Returns true if `TRANSITIONS` contains the transition. */
export function isAllowedTransition(from: State | null, to: State, by: Cause): boolean {
  return ALLOWED_TRANSITIONS.has(`${from}>${to}:${by}`);
}

/** The states in which no further attempt is made. In these states, the body of the message can be erased. */
export const TERMINAL_STATES: ReadonlySet<State> = new Set([
  'delivered',
  'bounced',
  'complained',
  'suppressed',
  'expired',
  'cancelled',
]);

// The functions below decide the change that the outcome of an attempt causes. The dispatcher calls
// `decideAttemptChange` after each attempt, and the store writes the result (`settle`).

export interface DeliveryPolicy {
  readonly maxAgeMs: number;
  readonly onUncertain: 'resend' | 'hold';
}

/** The properties of the message that `decideAttemptChange` needs. */
interface AttemptedMessage {
  readonly acceptedAt: number;
  readonly attempts: number;
}

/**
 * Returns the change that the outcome of an attempt causes to a leased message. `failure` is the classification of the
 * outcome, or null. `random` in [0, 1) determines the jitter of the retry.
 */
export function decideAttemptChange(
  message: AttemptedMessage,
  attempt: Attempt,
  failure: Failure | null,
  policy: DeliveryPolicy,
  by: string,
  now: number,
  random: number,
): RecordedChange {
  const { outcome } = attempt;
  const recordedFailure = failure === null ? null : toRecordedFailure(failure, outcome.reply);
  const entry = (detail: string) => ({ at: now, by, detail, failure: recordedFailure, attempt });
  switch (outcome.kind) {
    case 'delivered':
      return createRecordedChange('message.delivered', entry(formatReply(outcome.reply)));
    case 'bounced':
      return createRecordedChange(
        'message.bounced',
        entry(formatReply(outcome.reply)),
        null,
        outcome.suppress ? 'bounce' : null,
      );
    case 'deferred':
      return createDeferredChange(message, policy, random, entry(formatReply(outcome.reply)));
    case 'unanswered': {
      const uncertainEntry = entry(`transmitted, but no reply: ${formatReply(outcome.reply)}`);
      return policy.onUncertain === 'hold'
        ? createRecordedChange('message.uncertain', uncertainEntry)
        : createDeferredChange(message, policy, random, uncertainEntry);
    }
  }
}

/** Returns the change of a leased message that is past its maximum age before its attempt. */
export function createExpiryBeforeAttempt(by: string, now: number): RecordedChange {
  const detail = 'older than its maximum age (POSTRIDER_MAX_AGE)';
  return createRecordedChange('message.expired', { at: now, by, detail, failure: null, attempt: null });
}

/**
 * Returns the complaint that follows a local delivery to a simulator address. The complaint suppresses no recipient.
 */
export function createLocalComplaint(at: number, by: string, detail: string): RecordedChange {
  return createRecordedChange('message.complained', { at, by, detail, failure: null, attempt: null });
}

/** Returns true if a message accepted at `acceptedAt` is past its maximum age at `now`. */
export function isPastMaxAge(acceptedAt: number, policy: DeliveryPolicy, now: number): boolean {
  return now >= acceptedAt + policy.maxAgeMs;
}

function createDeferredChange(
  message: AttemptedMessage,
  policy: DeliveryPolicy,
  random: number,
  entry: Omit<HistoryEntry, 'verb'>,
): RecordedChange {
  const now = entry.at;
  if (isPastMaxAge(message.acceptedAt, policy, now)) return createRecordedChange('message.expired', entry);
  // A message is due at its maximum age at the latest. Otherwise, a message whose next retry is hours later would
  // expire hours after its maximum age.
  const dueAt = Math.min(now + computeRetryDelayMs(message.attempts, random), message.acceptedAt + policy.maxAgeMs);
  return createRecordedChange('message.deferred', entry, dueAt);
}

function toRecordedFailure({ class: failureClass, category }: Failure, reply: Reply): RecordedFailure {
  const diagnostic = formatReply(reply).slice(0, MAX_DIAGNOSTIC_LENGTH);
  return { class: failureClass, category, status: reply.enhanced, diagnostic: diagnostic === '' ? null : diagnostic };
}

/** Formats a reply on one line, for example `550 5.1.1 no such user`. */
function formatReply(reply: Reply): string {
  const parts = [reply.code === null ? null : String(reply.code), reply.enhanced, reply.text];
  return parts.filter((part) => part !== null && part !== '').join(' ');
}

// The retry schedule determines the delay before a deferred message is retried.

const MINUTE_MS = 60_000;

/**
 * The delays after each attempt, in the order of the attempts. The last delay applies to all further attempts until the
 * maximum age.
 */
const RETRY_DELAYS_MS = [
  1 * MINUTE_MS,
  5 * MINUTE_MS,
  15 * MINUTE_MS,
  30 * MINUTE_MS,
  60 * MINUTE_MS,
  120 * MINUTE_MS,
] as const;

/**
 * The jitter as a fraction of the delay. The jitter prevents messages that were deferred together from being retried
 * together.
 */
const JITTER_FRACTION = 0.15;

/** The maximum delay between an attempt and its retry. */
export const MAX_RETRY_DELAY_MS = Math.ceil(120 * MINUTE_MS * (1 + JITTER_FRACTION));

/** Returns the delay in ms after attempt number `attempts` (1 for the first). `random` is in [0, 1). */
export function computeRetryDelayMs(attempts: number, random: number): number {
  const delayMs = RETRY_DELAYS_MS[Math.min(Math.max(attempts, 1), RETRY_DELAYS_MS.length) - 1] ?? 120 * MINUTE_MS;
  return Math.round(delayMs * (1 - JITTER_FRACTION + 2 * JITTER_FRACTION * random));
}

// The functions below create the history entries of changes that are decided in a transaction of the store. The stores
// for SQLite and PostgreSQL both use them.

/** The history entry of a change without an attempt. */
export type EntryWithoutAttempt = HistoryEntry & { readonly attempt: null };

function createEntry(type: RecordedType, at: number, by: string, detail: string | null): EntryWithoutAttempt {
  return { at, verb: RECORDED_EVENTS[type].verb, by, detail, failure: null, attempt: null };
}

/**
 * Creates the entry of a suppressed message. `by` is `store` if the store found the recipient on a suppression list.
 * Otherwise, `by` is the source of a local answer.
 */
export function createSuppressedEntry(at: number, by: string): EntryWithoutAttempt {
  return createEntry('message.suppressed', at, by, 'the recipient is on the suppression list');
}

/** Creates the entry of a queued message that is past its maximum age. */
export function createExpiredEntry(at: number, by: string): EntryWithoutAttempt {
  return createEntry('message.expired', at, by, 'still not delivered at its maximum age');
}

/** Creates the entry of a message that an operator cancelled or made due immediately. */
export function createOperatorEntry(type: 'message.retried' | 'message.cancelled', at: number): EntryWithoutAttempt {
  return createEntry(type, at, 'operator', null);
}

/** Creates the entry of an ended message that was submitted again as `newId`. */
export function createResentEntry(newId: string, at: number): EntryWithoutAttempt {
  return { at, verb: RESENT_VERB, by: 'operator', detail: newId, failure: null, attempt: null };
}

/** Creates the entry of a message that submits the ended message `id` again. */
export function createResendOfEntry(id: string, at: number): EntryWithoutAttempt {
  return { at, verb: RESEND_OF_VERB, by: 'operator', detail: id, failure: null, attempt: null };
}

/**
 * Decides the change of a message whose lease expired without an outcome: the new state, the history entry, and whether
 * the attempt count is reduced. `isMarkedTransmitting` is true if the message may have been sent under the lease.
 * Leases are marked only if POSTRIDER_ON_UNCERTAIN is `hold`.
 */
export function resolveLostLease(
  onUncertain: 'resend' | 'hold',
  isMarkedTransmitting: boolean,
  at: number,
  by: string,
): { readonly to: 'queued' | 'uncertain'; readonly entry: EntryWithoutAttempt; readonly refundAttempt: boolean } {
  if (onUncertain === 'hold' && isMarkedTransmitting) {
    const detail = 'the lease ended during the transmission of the message; no reply is recorded';
    return { to: 'uncertain', entry: createEntry('message.uncertain', at, by, detail), refundAttempt: false };
  }
  const refundAttempt = onUncertain === 'hold';
  const detail = refundAttempt
    ? 'the lease ended before the message was sent'
    : 'the lease ended without a reply; it is unknown whether the message was sent';
  return { to: 'queued', entry: createEntry('message.recovered', at, by, detail), refundAttempt };
}

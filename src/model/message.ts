/**
 * A message ("mail request" in the public interface), its states and their transitions. Every change of state is one of
 * `TRANSITIONS`, an unknown failure counts as temporary, and no function discards a message. Times are in milliseconds
 * since the epoch. Pure.
 */
import {
  type Failure,
  type FailureCategory,
  type FailureClass,
  MAX_DIAGNOSTIC_LENGTH,
  type RecordedFailure,
} from './failure.ts';
import type { Attempt, Reply } from './outcome.ts';
import type { SenderName } from './sender.ts';

/** API keys have positive ids, and the test message of `doctor --loop` has the key id 0. */
export const NOTIFICATION_KEY_ID = -1;

export function formatSubmitter(keyId: number): string {
  return keyId === NOTIFICATION_KEY_ID ? 'notification' : `key_${keyId}`;
}

export interface NewMessage {
  /** UUIDv7 of `MessageIdGenerator`, greater than its earlier ids. */
  readonly id: string;
  readonly accountId: number;
  /** `NOTIFICATION_KEY_ID` is exempt from the limits and from the lock of the account. */
  readonly keyId: number;
  readonly acceptedAt: number;
  readonly to: string;
  /** Canonical: the key of the suppression list. */
  readonly recipient: string;
  readonly from: string;
  readonly subject: string;
  readonly message: string;
  /** `fingerprint`: SHA-256 of the fields. `expiredBefore`: 24 hours before `acceptedAt` by default. */
  readonly idempotency: { readonly key: string; readonly fingerprint: string; readonly expiredBefore?: number } | null;
  /** Set if this node sends the message from memory. Otherwise the message is queued and due at once. */
  readonly lease: Lease | null;
  /** The source of a local answer that suppresses the message, as the history records it. */
  readonly suppressedBy: string | null;
  /** The ended message that this message submits again. */
  readonly resendOf?: string | null;
  /** It is queued and parked by a hold. Then `lease` is null. */
  readonly isHeld?: boolean;
}

export interface Lease {
  /** The name of the node, which is unique for each start of a process. */
  readonly owner: string;
  readonly until: number;
}

export type AcceptResult =
  | ({
      readonly kind: 'accepted';
      readonly state: 'queued' | 'sending' | 'suppressed';
      readonly limits: RemainingLimits;
      /** The cause of the state `suppressed`, as the history records it. */
      readonly suppressedBy?: string;
    } & AcceptedMembers)
  | { readonly kind: 'replayed'; readonly id: string }
  | { readonly kind: 'idempotency-conflict' }
  | {
      readonly kind: 'refused';
      readonly reason: 'volume-exhausted' | 'volume-expired' | 'rate-limit-exceeded';
      readonly limits: RemainingLimits;
    }
  /** Since the last update of the caller's cache. */
  | { readonly kind: 'locked' };

/** What the account adds to a message at acceptance. */
export interface AcceptedMembers {
  /** From the maximum age of the account; absent without one. */
  readonly expiresAt?: number;
  /** Absent if no entry of the account names the sender. */
  readonly sender?: SenderName;
}

export function toAcceptedMembers(expiresAt: number | null, sender: SenderName | null): AcceptedMembers {
  return { ...(expiresAt === null ? {} : { expiresAt }), ...(sender === null ? {} : { sender }) };
}

export interface LeasedMessage extends AcceptedMembers {
  readonly id: string;
  readonly accountId: number;
  readonly to: string;
  readonly from: string;
  readonly subject: string;
  readonly message: string;
  readonly acceptedAt: number;
  /** For how long holds stopped the message, which its age does not include, with `ATTEMPT_OWED`. */
  readonly heldMs: number;
  /** The number of this lease, from 1, without leases that were released unused. */
  readonly attempts: number;
  /** Where it was dealt. Null or absent: not yet, or the installation has one route. */
  readonly route?: string | null;
  readonly lease: Lease;
}

/** A settlement is valid only for the owner and the attempt count of the lease. */
export interface LeaseRef {
  readonly id: string;
  readonly owner: string;
  readonly attempts: number;
  /** Where the message was dealt and not attempted; a parked message keeps it. */
  readonly route?: string | null;
}

export interface HistoryEntry {
  readonly at: number;
  /** A `verb` of `RECORDED_EVENTS`, or a `ReportEntryType`. */
  readonly verb: string;
  /** The cause, for example the name of a node, `operator`, `store` or `simulator`. */
  readonly by: string;
  /** One line. */
  readonly detail: string | null;
  /** The entry `expired` has the last failure of the message. */
  readonly failure: RecordedFailure | null;
  readonly attempt: Attempt | null;
}

export interface StateChange {
  readonly to: State;
  readonly dueAt: number | null;
  readonly event: HistoryEntry;
  /** The transaction of the change suppresses the recipient for this reason. */
  readonly suppress: 'bounce' | 'complaint' | null;
}

export interface Settlement {
  readonly id: string;
  readonly owner: string;
  /** A settlement is valid only for the owner and this count. */
  readonly attempts: number;
  /** In order: what the attempt causes, then the complaint of a local answer. */
  readonly changes: readonly StateChange[];
  /** No attempt was made, because the message was past its maximum age, or a route failed and another one is usable. */
  readonly refundAttempt: boolean;
  /** Where the next attempt is made if the policy and the route allow it. */
  readonly route?: string | null;
  /** A message with a local answer, or a test message. */
  readonly excludedFromReputation?: boolean;
}

export type SettleResult = 'settled' | 'lost';

export interface MessageFilter {
  readonly accountId: number | null;
  readonly state: State | null;
  readonly to: string | null;
  readonly since: number | null;
  /** Of the last failure. Null or absent: every message. */
  readonly failureClass?: FailureClass | null;
  readonly failureCategory?: FailureCategory | null;
  /** For the next page: accepted before the message with this id. */
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

export interface FoundMessage extends StoredMessageSummary {
  /** Leases that were not released unused. */
  readonly attempts: number;
  /** Where it was dealt; null before the first attempt. */
  readonly route: string | null;
  /** The time of the last history entry. */
  readonly updatedAt: number;
  /** Queued, and the last attempt was deferred. */
  readonly deferred: boolean;
  /** Queued, and parked by a hold. */
  readonly held: boolean;
  /** The last entry whose type is not in `VERBS_WITHOUT_OUTCOME`. */
  readonly lastOutcome: LastOutcome | null;
}

/** The texts are untrusted. */
export type LastOutcome = Pick<HistoryEntry, 'verb' | 'by' | 'detail' | 'failure'>;

export type StateFilter = State | 'deferred';

/** Message lists and searches for reply texts ignore these entries. */
export const VERBS_WITHOUT_OUTCOME = ['resent', 'resend-of', 'retried', 'recovered', 'confirmed'] as const;

export function getOutcomeText(outcome: Pick<LastOutcome, 'detail' | 'failure'> | null): string | null {
  return outcome?.failure?.diagnostic ?? outcome?.detail ?? null;
}

export interface StoredMessage extends StoredMessageSummary, AcceptedMembers {
  readonly keyId: number;
  /** The next attempt (`queued`), or the end of the lease (`sending`). Null for a parked message. */
  readonly dueAt: number | null;
  readonly parked: Parking | null;
  /** As `LeasedMessage` has it. */
  readonly heldMs: number;
  readonly owner: string | null;
  readonly attempts: number;
  readonly endedAt: number | null;
  /** Null if the body was erased. */
  readonly message: string | null;
  /** Oldest first. Of a long history, the `SHOWN_ENTRIES` oldest and newest entries. */
  readonly events: readonly HistoryEntry[];
  readonly omittedEvents: number;
  /** Reports without an effect that were counted and not recorded. */
  readonly furtherReports: number;
}

export const SHOWN_ENTRIES = { oldest: 50, newest: 50 } as const;

export type MessageHistory = Omit<StoredMessage, 'message'>;

export type OperatorChangeResult =
  | { readonly kind: 'done' }
  | { readonly kind: 'missing' }
  | { readonly kind: 'wrong-state'; readonly state: State };

export interface ResendRequest {
  readonly id: string;
  /** The SQLite store assigns a smaller id if time and counter of `createOperatorMessageId` are taken. */
  readonly newId: string;
}

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
      readonly message: ResentMessage;
    }
  | { readonly kind: 'missing' }
  | { readonly kind: 'not-ended'; readonly state: State }
  | { readonly kind: 'erased' }
  /** Or the account does not exist. */
  | { readonly kind: 'locked' }
  | {
      readonly kind: 'refused';
      readonly reason: Extract<AcceptResult, { kind: 'refused' }>['reason'];
    };

export const BULK_ACTIONS = ['retry', 'cancel', 'resend'] as const;
export type BulkAction = (typeof BULK_ACTIONS)[number];

/** A batch, in one transaction, of an action on all messages that match a filter. */
export interface BulkStep {
  readonly action: BulkAction;
  readonly targets: readonly ResendRequest[];
  /** As the audit log names it. */
  readonly filter: string;
  /** Messages of the batch that the caller refused. */
  readonly refused: number;
  /** The audit log entry of the first batch; null in the first batch. */
  readonly entry: number | null;
  readonly isLast: boolean;
}

export type BulkRefusal =
  | Exclude<ResendResult['kind'], 'done' | 'refused'>
  | Extract<ResendResult, { kind: 'refused' }>['reason']
  | 'wrong-state'
  /** A run resends only messages that were never resent. */
  | 'already-resent';

export type BulkOutcome =
  | { readonly kind: 'done'; readonly id: string; readonly resent: ResentMessage | null }
  | { readonly kind: 'refused'; readonly id: string; readonly reason: BulkRefusal };

export interface BulkResult {
  /** Null if no operator is named. */
  readonly outcomes: readonly BulkOutcome[];
  readonly entry: number | null;
}

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

/** What the transaction of an event writes. The names are stored, so they never change. */
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
  /** `node.leases_recovered` is published once for all. */
  'message.recovered': { verb: 'recovered', state: 'queued' },
} as const satisfies Readonly<Record<string, { readonly verb: string; readonly state: State }>>;
type RecordedType = keyof typeof RECORDED_EVENTS;

/** This entry is derived from the row of the message. */
export const ACCEPTED_VERB = 'accepted';

/** Entries of the ended message and of the new message. The detail is the id of the other. */
export const RESENT_VERB = 'resent';
export const RESEND_OF_VERB = 'resend-of';

export type SettledEventType =
  | 'message.delivered'
  | 'message.deferred'
  | 'message.bounced'
  | 'message.complained'
  | 'message.expired'
  | 'message.uncertain';

export interface RecordedChange extends StateChange {
  readonly type: SettledEventType;
}

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

export interface RemainingLimits {
  readonly rate: {
    readonly limit: number;
    readonly periodMs: number;
    readonly remaining: number;
    readonly resetMs: number;
  } | null;
}

/** Guaranteed by the public interface. */
export const IDEMPOTENCY_KEY_TTL_MS = 24 * 3_600_000;

export function getIdempotencyExpiryCutoff({
  idempotency,
  acceptedAt,
}: Pick<NewMessage, 'idempotency' | 'acceptedAt'>): number {
  return idempotency?.expiredBefore ?? acceptedAt - IDEMPOTENCY_KEY_TTL_MS;
}

// A test checks that docs/states.md lists the same states and transitions.

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

/** For docs/states.md and for explanations to operators. */
export const STATE_DESCRIPTIONS: Readonly<Record<State, string>> = {
  queued: 'accepted and due at a known time',
  sending:
    'leased by one node until a known time; if the node stops, another node or the next start of the service recovers the message',
  delivered: 'the next hop (provider, relay or mail server) took responsibility for the message',
  bounced: 'permanently refused by the next hop, or reported as undeliverable by a bounce message or a provider event',
  complained: 'delivered, and later reported as spam by the recipient',
  suppressed:
    'ended without a further attempt, because the recipient was on a suppression list or not allowed by the account',
  expired: 'still temporarily refused at its maximum age',
  cancelled: 'ended by an operator while queued or uncertain',
  uncertain:
    'the whole message was sent, the connection or the node was lost before the reply, and POSTRIDER_ON_UNCERTAIN is hold',
};

export type Cause = 'accept' | 'queue' | 'operator' | 'feedback';

export const TRANSITIONS: readonly Transition[] = [
  ...allow('accept', null, ['queued', 'sending', 'suppressed']),
  ...allow('queue', 'queued', ['sending', 'suppressed', 'expired']),
  ...allow('operator', 'queued', ['cancelled']),
  ...allow('queue', 'sending', ['delivered', 'bounced', 'queued', 'expired', 'uncertain']),
  ...allow('operator', 'uncertain', ['queued', 'cancelled']),
  // The report concerns a copy that was sent in an attempt without a recorded reply.
  ...allow('feedback', 'queued', ['delivered', 'bounced', 'complained']),
  ...allow('feedback', 'uncertain', ['delivered', 'bounced', 'complained']),
  ...allow('feedback', 'delivered', ['bounced', 'complained']),
];

interface Transition {
  readonly from: State | null;
  readonly to: State;
  readonly by: Cause;
}

function allow(by: Cause, from: State | null, states: readonly State[]): readonly Transition[] {
  return states.map((to) => ({ from, to, by }));
}

const ALLOWED_TRANSITIONS: ReadonlySet<string> = new Set(
  TRANSITIONS.map((transition) => `${transition.from}>${transition.to}:${transition.by}`),
);

export function isAllowedTransition(from: State | null, to: State, by: Cause): boolean {
  return ALLOWED_TRANSITIONS.has(`${from}>${to}:${by}`);
}

/** No further attempt is made, and the body can be erased. */
export const TERMINAL_STATES: ReadonlySet<State> = new Set([
  'delivered',
  'bounced',
  'complained',
  'suppressed',
  'expired',
  'cancelled',
]);

export interface DeliveryPolicy {
  readonly maxAgeMs: number;
  readonly onUncertain: 'resend' | 'hold';
}

interface AttemptedMessage extends AcceptedMembers {
  readonly acceptedAt: number;
  readonly attempts: number;
}

/** `random` in [0, 1) determines the jitter of the retry. */
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

export function createExpiryBeforeAttempt(by: string, now: number): RecordedChange {
  const detail = 'older than its maximum age';
  return createRecordedChange('message.expired', { at: now, by, detail, failure: null, attempt: null });
}

/** The route failed, not the message: it is due at once at another route, without a step of its retry schedule. */
export function createMovedChange(change: RecordedChange, route: string): RecordedChange {
  const { event } = change;
  return {
    ...change,
    dueAt: event.at,
    event: { ...event, detail: `${event.detail ?? ''}; moves to the route ${route}` },
  };
}

/** The complaint suppresses no recipient. */
export function createLocalComplaint(at: number, by: string, detail: string): RecordedChange {
  return createRecordedChange('message.complained', { at, by, detail, failure: null, attempt: null });
}

/** The earlier of the ends by the maximum age of the installation and by that of the account. */
export function getExpiry(
  { acceptedAt, expiresAt }: Pick<AttemptedMessage, 'acceptedAt' | 'expiresAt'>,
  { maxAgeMs }: Pick<DeliveryPolicy, 'maxAgeMs'>,
): number {
  return Math.min(acceptedAt + maxAgeMs, expiresAt ?? Number.POSITIVE_INFINITY);
}

function createDeferredChange(
  message: AttemptedMessage,
  policy: DeliveryPolicy,
  random: number,
  entry: Omit<HistoryEntry, 'verb'>,
): RecordedChange {
  const now = entry.at;
  const expiresAt = getExpiry(message, policy);
  if (now >= expiresAt) return createRecordedChange('message.expired', entry);
  // Otherwise a message whose next retry is hours later would expire hours after its maximum age.
  const dueAt = Math.min(now + computeRetryDelayMs(message.attempts, random), expiresAt);
  return createRecordedChange('message.deferred', entry, dueAt);
}

function toRecordedFailure({ class: failureClass, category }: Failure, reply: Reply): RecordedFailure {
  const diagnostic = formatReply(reply).slice(0, MAX_DIAGNOSTIC_LENGTH);
  return { class: failureClass, category, status: reply.enhanced, diagnostic: diagnostic === '' ? null : diagnostic };
}

export function formatReply({ code, enhanced, text }: Reply): string {
  return [code, enhanced, text].filter((part) => part !== null && part !== '').join(' ');
}

const MINUTE_MS = 60_000;

/** The last delay applies to all further attempts. */
const RETRY_DELAYS_MS = [
  1 * MINUTE_MS,
  5 * MINUTE_MS,
  15 * MINUTE_MS,
  30 * MINUTE_MS,
  60 * MINUTE_MS,
  120 * MINUTE_MS,
] as const;

/** A fraction of the delay, so that messages that were deferred together are not retried together. */
const JITTER_FRACTION = 0.15;

// A parked message is `queued`, and no claim finds it, because its due time is a base plus the time when it was parked.

export const PARKED_FOR_ROUTE = 2 ** 51;
export const PARKED_BY_HOLD = 2 ** 52;
/** Part of the held time from a release to the end of the next attempt, so that the message does not expire before. */
export const ATTEMPT_OWED = 2 ** 51;

const PARKED_DUE_TIMES = { hold: PARKED_BY_HOLD, route: PARKED_FOR_ROUTE } as const;
export type ParkReason = keyof typeof PARKED_DUE_TIMES;

export interface Parking {
  readonly reason: ParkReason;
  readonly at: number;
}

export interface ParkedMessage extends Pick<StoredMessageSummary, 'id' | 'accountId' | 'from' | 'to'> {
  readonly parked: Parking;
}

export function toParkedDueTime(reason: ParkReason, now: number): number {
  return PARKED_DUE_TIMES[reason] + now;
}

export function findParking(dueAt: number | null): Parking | null {
  if (dueAt === null || dueAt < PARKED_FOR_ROUTE) return null;
  const reason = dueAt < PARKED_BY_HOLD ? 'route' : 'hold';
  return { reason, at: dueAt - PARKED_DUE_TIMES[reason] };
}

/** The time from which the age counts: of acceptance, and later by the time for which holds stopped the message. */
export function getAgeStart({ acceptedAt, heldMs }: Pick<LeasedMessage, 'acceptedAt' | 'heldMs'>): number {
  return acceptedAt + (heldMs % ATTEMPT_OWED);
}

export const MAX_RETRY_DELAY_MS = Math.ceil(120 * MINUTE_MS * (1 + JITTER_FRACTION));

/** Returns the delay in ms after attempt number `attempts` (1 for the first). `random` is in [0, 1). */
export function computeRetryDelayMs(attempts: number, random: number): number {
  const delayMs = RETRY_DELAYS_MS[Math.min(Math.max(attempts, 1), RETRY_DELAYS_MS.length) - 1] ?? 120 * MINUTE_MS;
  return Math.round(delayMs * (1 - JITTER_FRACTION + 2 * JITTER_FRACTION * random));
}

export type EntryWithoutAttempt = HistoryEntry & { readonly attempt: null };

function createEntry(type: RecordedType, at: number, by: string, detail: string | null): EntryWithoutAttempt {
  return { at, verb: RECORDED_EVENTS[type].verb, by, detail, failure: null, attempt: null };
}

/** `by` of a message that was suppressed because of `onlyTo` of its account. */
export const NOT_ALLOWED = 'not-allowed';

/** `by`: `store`, `NOT_ALLOWED`, or the source of a local answer. */
export function createSuppressedEntry(at: number, by: string): EntryWithoutAttempt {
  const detail =
    by === NOT_ALLOWED
      ? 'not-allowed: the account sends only to other recipients (--only-to)'
      : 'the recipient is on the suppression list';
  return createEntry('message.suppressed', at, by, detail);
}

export function createExpiredEntry(at: number, by: string): EntryWithoutAttempt {
  return createEntry('message.expired', at, by, 'still not delivered at its maximum age');
}

export function createOperatorEntry(type: 'message.retried' | 'message.cancelled', at: number): EntryWithoutAttempt {
  return createEntry(type, at, 'operator', null);
}

export function createResentEntry(newId: string, at: number): EntryWithoutAttempt {
  return { at, verb: RESENT_VERB, by: 'operator', detail: newId, failure: null, attempt: null };
}

export function createResendOfEntry(id: string, at: number): EntryWithoutAttempt {
  return { at, verb: RESEND_OF_VERB, by: 'operator', detail: id, failure: null, attempt: null };
}

/** `isMarkedTransmitting`: it may have been sent. Leases are marked only if POSTRIDER_ON_UNCERTAIN is `hold`. */
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

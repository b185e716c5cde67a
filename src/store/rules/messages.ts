/**
 * Rules for messages, shared by both databases: acceptance, the number of messages of an account that one claim leases,
 * the rows that a settlement writes, the changes that an operator may make, and the sequence numbers of ids. The
 * functions have no side effects, except that `decideAcceptance` calls the given lookups and adds to the given counts.
 *
 * Every change of state is checked against the table of transitions (model/message.ts). If the table does not contain
 * the change, an operator's change is refused with `wrong-state`, and every other change throws a StoreError.
 */

import {
  type Account,
  countMessage,
  findExceededLimit,
  getRemainingLimits,
  type LimitUsage,
  mayReceiveFrom,
} from '../../model/account.ts';
import { type Actor, createAuditEntry, type NewAuditEntry, toAuditedMessage } from '../../model/audit.ts';
import type { FailureClass, RecordedFailure } from '../../model/failure.ts';
import type { ReportEntryType } from '../../model/feedback.ts';
import {
  type AcceptResult,
  type Cause,
  createOperatorEntry,
  type EntryWithoutAttempt,
  isAllowedTransition,
  type NewMessage,
  NOT_ALLOWED,
  NOTIFICATION_KEY_ID,
  RECORDED_EVENTS,
  type ResendResult,
  type Settlement,
  type State,
  TERMINAL_STATES,
  toAcceptedMembers,
} from '../../model/message.ts';
import type { Attempt } from '../../model/outcome.ts';
import { findSenderName } from '../../model/sender.ts';
import { getIdCounter, getIdTimestamp } from '../../model/submission.ts';
import type { SuppressionReason } from '../../model/suppression.ts';
import { StoreError } from '../error.ts';

export interface AcceptanceLookups {
  /** Returns the message accepted under the same idempotency key if that key has not expired; otherwise null. */
  findByIdempotencyKey(message: NewMessage): { readonly id: string; readonly fingerprint: string } | null;
  isSuppressed(message: NewMessage): boolean;
}

export type Acceptance = Extract<AcceptResult, { kind: 'accepted' }>;

const QUEUED_STATE = requireTransition(null, 'queued', 'accept');
const SENDING_STATE = requireTransition(null, 'sending', 'accept');
const SUPPRESSED_STATE = requireTransition(null, 'suppressed', 'accept');

/**
 * Adds an accepted message to `counts` (null if the account does not exist). A notification is exempt from the limits
 * and is accepted even if the account is locked; it then stays queued.
 */
export function decideAcceptance(
  message: NewMessage,
  counts: LimitUsage | null,
  lookups: AcceptanceLookups,
): AcceptResult {
  const isNotification = message.keyId === NOTIFICATION_KEY_ID;
  if (counts === null || (counts.account.locked !== null && !isNotification)) return { kind: 'locked' };
  const { idempotency, acceptedAt } = message;
  const earlierMessage = idempotency === null ? null : lookups.findByIdempotencyKey(message);
  if (idempotency !== null && earlierMessage !== null) {
    return earlierMessage.fingerprint === idempotency.fingerprint
      ? { kind: 'replayed', id: earlierMessage.id }
      : { kind: 'idempotency-conflict' };
  }
  const reason = isNotification ? null : findExceededLimit(counts, acceptedAt);
  if (reason !== null) return { kind: 'refused', reason, limits: getRemainingLimits(counts, acceptedAt) };
  if (!isNotification) countMessage(counts);
  const limits = getRemainingLimits(counts, acceptedAt);
  const { maxAgeMs, senders } = counts.account;
  const members = isNotification
    ? {}
    : toAcceptedMembers(maxAgeMs === null ? null : acceptedAt + maxAgeMs, findSenderName(senders, message.from));
  const suppressedBy = findSuppression(message, counts.account, lookups);
  if (suppressedBy !== null) return { kind: 'accepted', state: SUPPRESSED_STATE, limits, suppressedBy, ...members };
  return { kind: 'accepted', state: message.lease === null ? QUEUED_STATE : SENDING_STATE, limits, ...members };
}

function findSuppression(message: NewMessage, account: Account, lookups: AcceptanceLookups): string | null {
  if (message.suppressedBy !== null) return message.suppressedBy;
  if (!mayReceiveFrom(account, message.recipient, message.keyId)) return NOT_ALLOWED;
  return lookups.isSuppressed(message) ? 'store' : null;
}

/** Returns `to` if the table of transitions contains the transition. Otherwise throws a StoreError. */
export function requireTransition<To extends State>(from: State | null, to: To, by: Cause): To {
  if (isAllowedTransition(from, to, by)) return to;
  throw new StoreError(`a message cannot change from ${from ?? 'none'} to ${to} (${by}). See docs/states.md.`);
}

const MAX_ROWS_PER_TURN = 8;
/** Unless the message limit is lower or fewer accounts have due messages. */
const MIN_ACCOUNTS_PER_CLAIM = 64;

/** The number of rows that a claim leases from one account before it continues with the next. */
export function getRowsPerTurn(maxMessages: number): number {
  return Math.min(MAX_ROWS_PER_TURN, Math.max(1, Math.floor(maxMessages / MIN_ACCOUNTS_PER_CLAIM)));
}

/**
 * The first change is the outcome of the attempt; a later one may be a report, such as the complaint of the simulator.
 */
export function getStateAfterChange(from: State, to: State, isFirst: boolean): State {
  return !isFirst && isAllowedTransition(from, to, 'feedback') ? to : requireTransition(from, to, 'queue');
}

export function inheritsFailure(verb: string): boolean {
  return verb === RECORDED_EVENTS['message.expired'].verb;
}

/**
 * A bounced message keeps the failure that ended it, unless a later report is a hard bounce, which suppresses the
 * recipient.
 */
export function setsLastFailure(verb: string, state: State, failureClass: FailureClass): boolean {
  if (state !== 'bounced' || !REPORTS_OF_BOUNCED_MESSAGES.has(verb)) return true;
  return failureClass === 'hard';
}

const REPORTS_OF_BOUNCED_MESSAGES: ReadonlySet<string> = new Set<ReportEntryType>([
  'bounce-reported',
  'soft-bounced',
  'delay-reported',
]);

/** 1 if the attempt was deferred. The stored lane never decreases. */
export function getLane(verb: string): 0 | 1 {
  return verb === RECORDED_EVENTS['message.deferred'].verb ? 1 : 0;
}

/** Attempts are JSON text, because transferring text to a thread costs less than transferring objects. */
export interface PackedSettlement {
  readonly id: string;
  readonly owner: string;
  readonly attempts: number;
  readonly refundAttempt: boolean;
  readonly route: string | null;
  readonly excludedFromReputation: boolean;
  readonly changes: readonly {
    readonly to: State;
    readonly isTerminal: boolean;
    readonly dueAt: number | null;
    readonly at: number;
    readonly verb: string;
    readonly by: string;
    readonly detail: string | null;
    readonly failure: RecordedFailure | null;
    readonly attempt: string | null;
    readonly isUnanswered: boolean;
    readonly suppress: SuppressionReason | null;
    readonly reference: string | null;
  }[];
}

export function packSettlements(batch: readonly Settlement[]): PackedSettlement[] {
  return batch.map(({ id, owner, attempts, refundAttempt, route = null, excludedFromReputation, changes }) => ({
    id,
    owner,
    attempts,
    refundAttempt,
    route,
    excludedFromReputation: excludedFromReputation === true,
    changes: changes.map(({ to, dueAt, event, suppress }) => ({
      to,
      isTerminal: TERMINAL_STATES.has(to),
      dueAt,
      at: event.at,
      verb: event.verb,
      by: event.by,
      detail: event.detail,
      failure: event.failure,
      attempt: event.attempt === null ? null : JSON.stringify(event.attempt),
      isUnanswered: event.attempt?.outcome.kind === 'unanswered',
      suppress,
      reference: findProviderReference(event.attempt),
    })),
  }));
}

function findProviderReference(attempt: Attempt | null): string | null {
  return attempt?.outcome.kind === 'delivered' ? (attempt.outcome.reference ?? null) : null;
}

export type OperatorTargetState = 'queued' | 'cancelled';

export type OperatorChange =
  | { readonly kind: 'wrong-state'; readonly state: State }
  | {
      readonly kind: 'change';
      readonly entry: EntryWithoutAttempt;
      /** The audit log entry, or null if no operator is named. */
      readonly audit: NewAuditEntry | null;
    };

/** `from` and `dueAt` are stored values. */
export function decideOperatorChange(
  { id, from, dueAt }: { readonly id: string; readonly from: State; readonly dueAt: number | null },
  to: OperatorTargetState,
  now: number,
  by: Actor | undefined,
): OperatorChange {
  const isRetry = from === 'queued' && to === 'queued';
  if (!isRetry && !isAllowedTransition(from, to, 'operator')) return { kind: 'wrong-state', state: from };
  const [event, action] =
    to === 'queued'
      ? (['message.retried', 'message.retry'] as const)
      : (['message.cancelled', 'message.cancel'] as const);
  const after = toAuditedMessage(to, to === 'queued' ? now : null);
  return {
    kind: 'change',
    entry: createOperatorEntry(event, now),
    audit: by === undefined ? null : createAuditEntry(by, action, id, toAuditedMessage(from, dueAt), after),
  };
}

export interface ResendSource {
  readonly id: string;
  readonly accountId: number;
  readonly keyId: number;
  readonly state: State;
  readonly to: string;
  /** The canonical recipient, or null if it equals `to`. */
  readonly recipient: string | null;
  readonly from: string;
  readonly subject: string;
  readonly message: string | null;
  /** The source of a local answer that suppressed the message, or null. The same answer applies to the new message. */
  readonly suppressedBy: string | null;
}

/** Returns the new message that resends the content of an ended message, or the reason why the resend is refused. */
export function decideResend(
  source: ResendSource,
  newId: string,
  now: number,
):
  | { readonly kind: 'submit'; readonly message: NewMessage }
  | { readonly kind: 'not-ended'; readonly state: State }
  | { readonly kind: 'erased' } {
  const { id, accountId, keyId, state, to, recipient, from, subject, message, suppressedBy } = source;
  if (!TERMINAL_STATES.has(state)) return { kind: 'not-ended', state };
  if (message === null) return { kind: 'erased' };
  const content = { to, recipient: recipient ?? to, from, subject, message };
  const newMessage = { id: newId, accountId, keyId, acceptedAt: now, ...content, idempotency: null, lease: null };
  return { kind: 'submit', message: { ...newMessage, suppressedBy, resendOf: id } };
}

/** Converts the acceptance result of a new message to the result of the resend. */
export function toResendResult(
  { id, accountId, keyId, to, from, acceptedAt }: NewMessage,
  result: AcceptResult,
): ResendResult {
  switch (result.kind) {
    case 'accepted':
      return {
        kind: 'done',
        message: {
          id,
          accountId,
          keyId,
          to,
          from,
          acceptedAt,
          state: result.state === 'suppressed' ? 'suppressed' : 'queued',
        },
      };
    case 'refused':
      return { kind: 'refused', reason: result.reason };
    case 'locked':
      return { kind: 'locked' };
    case 'replayed':
    case 'idempotency-conflict':
      throw new StoreError(`the resent message ${id} has an idempotency key: this is a bug.`);
  }
}

/** Creates the audit log entry of a resend, or null if no operator is named. */
export function createResendAudit(
  by: Actor | undefined,
  id: string,
  state: State,
  newId: string,
): NewAuditEntry | null {
  return by === undefined ? null : createAuditEntry(by, 'message.resend', id, { state }, { state, resentAs: newId });
}

const SEQUENCE_EPOCH_MS = Date.UTC(2025, 0, 1);
const COUNTERS_PER_MS = 4096;

/** Returns the sequence number of an id: its time and counter, without the random part. */
export function toSeq(id: string): number {
  return (getIdTimestamp(id) - SEQUENCE_EPOCH_MS) * COUNTERS_PER_MS + getIdCounter(id);
}

/** The key of a message: on SQLite the sequence number of its id. */
export const MESSAGE_KEYS = {
  sqlite: { key: 'seq', toKey: toSeq },
  postgres: { key: 'id', toKey: (id: string) => id },
} as const;

/** Returns the greatest sequence number of an id created at `ms`. */
export function getMaxSeqAt(ms: number): number {
  return (ms - SEQUENCE_EPOCH_MS) * COUNTERS_PER_MS + COUNTERS_PER_MS - 1;
}

/** Returns the least id with this sequence number. This id is greater than all ids with a smaller sequence number. */
export function getMinIdOfSeq(seq: number): string {
  const ms = Math.floor(seq / COUNTERS_PER_MS);
  const time = (ms + SEQUENCE_EPOCH_MS).toString(16).padStart(12, '0');
  const counter = (seq - ms * COUNTERS_PER_MS).toString(16).padStart(3, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${counter}-0000-000000000000`;
}

/**
 * Returns the least id with the time `ms`. This id is greater than all ids created before `ms`. A UUIDv7 begins with
 * its time (RFC 9562, section 5.7).
 */
export function getMinIdAt(ms: number): string {
  return toIdAt(ms, '0000-0000-000000000000');
}

/** Returns the greatest id with the time `ms`. This id is less than all ids created after `ms`. */
export function getMaxIdAt(ms: number): string {
  return toIdAt(ms, 'ffff-ffff-ffffffffffff');
}

function toIdAt(ms: number, suffix: string): string {
  const time = Math.min(Math.max(0, Math.floor(ms)), 0xffff_ffff_ffff)
    .toString(16)
    .padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-${suffix}`;
}

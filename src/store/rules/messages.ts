/**
 * What happens to one message, decided for both databases: whether it is accepted, how many of an account are leased in one turn,
 * what a settlement writes, what an operator may do, and the place of a message among all others. Pure but for the lookups given.
 *
 * Every change of state is asked of the table of transitions (model/message.ts); one that it lacks is a StoreError, and
 * nothing is written.
 */

import { countMessage, type LimitUsage, limitRefusal, remainingLimits } from '../../model/account.ts';
import { type Actor, auditEntry, auditedMessage, type NewAuditEntry } from '../../model/audit.ts';
import {
  type AcceptResult,
  type Cause,
  type EntryWithoutAttempt,
  isAllowedTransition,
  type NewMessage,
  operatorEntry,
  RECORDED_EVENTS,
  type Settlement,
  type State,
  TERMINAL_STATES,
} from '../../model/message.ts';
import type { Attempt } from '../../model/outcome.ts';
import { counterOfId, timestampOfId } from '../../model/submission.ts';
import { StoreError } from '../error.ts';

/** What a store has found about messages: in its tables, and of those before them in the same batch. */
export interface Lookups {
  /** The message accepted under the same idempotency key that still holds, or null. */
  earlier(mail: NewMessage): { readonly id: string; readonly fingerprint: string } | null;
  /** True where the recipient is on the account's or the service's suppression list. */
  isSuppressed(mail: NewMessage): boolean;
}

/** The state in which a message begins. */
export type AcceptedState = Extract<AcceptResult, { kind: 'accepted' }>['state'];

const QUEUED = transition(null, 'queued', 'accept');
const SENDING = transition(null, 'sending', 'accept');
const SUPPRESSED = transition(null, 'suppressed', 'accept');

/** Decides, and counts an accepted message. `counts` is null for an account that is gone. */
export function decideAcceptance(mail: NewMessage, counts: LimitUsage | null, lookups: Lookups): AcceptResult {
  if (counts === null || counts.account.locked !== null) return { kind: 'locked' };
  const { idempotency, acceptedAt } = mail;
  const earlier = idempotency === null ? null : lookups.earlier(mail);
  if (idempotency !== null && earlier !== null) {
    return earlier.fingerprint === idempotency.fingerprint
      ? { kind: 'replayed', id: earlier.id }
      : { kind: 'idempotency-conflict' };
  }
  const reason = limitRefusal(counts, acceptedAt);
  if (reason !== null) return { kind: 'refused', reason, limits: remainingLimits(counts, acceptedAt) };
  countMessage(counts);
  const suppressed = mail.suppressedBy !== null || lookups.isSuppressed(mail);
  const state = suppressed ? SUPPRESSED : mail.lease === null ? QUEUED : SENDING;
  return { kind: 'accepted', state, limits: remainingLimits(counts, acceptedAt) };
}

/** The state `to`, where the table has the transition; throws a StoreError where it has not, and nothing is written. */
export function transition<To extends State>(from: State | null, to: To, by: Cause): To {
  if (isAllowedTransition(from, to, by)) return to;
  throw new StoreError(`no mail request goes from ${from ?? 'nothing'} to ${to} (${by}): see docs/states.md.`);
}

const MAX_ROWS = 8;
/** Accounts that one claim serves at least, where so many have something due. */
const MIN_ACCOUNTS = 64;

/** Rows of one account in its turn, in a claim of so many messages. */
export function rowsPerTurn(mails: number): number {
  return Math.min(MAX_ROWS, Math.max(1, Math.floor(mails / MIN_ACCOUNTS)));
}

/**
 * The state `to`, which one change of a settlement enters from `from`. Only the first is the attempt's own; what follows may also be
 * a report about it (the complaint of a local answer). Throws a StoreError where the table of transitions lacks it.
 */
export function settledState(from: State, to: State, isFirst: boolean): State {
  return !isFirst && isAllowedTransition(from, to, 'feedback') ? to : transition(from, to, 'queue');
}

/** The lane in which a message waits after its attempt: 0 for first attempts, 1 for retries. */
export function laneAfter(verb: string): 0 | 1 {
  return verb === RECORDED_EVENTS['message.deferred'].verb ? 1 : 0;
}

/** A settlement as it is written: attempts as JSON, which crosses to a thread for less than what it was made of. */
export interface PackedSettlement {
  readonly id: string;
  readonly owner: string;
  readonly attempts: number;
  readonly uncount: boolean;
  readonly untallied: boolean;
  readonly changes: readonly {
    readonly to: State;
    readonly terminal: boolean;
    readonly dueAt: number | null;
    readonly at: number;
    readonly verb: string;
    readonly by: string;
    readonly detail: string | null;
    readonly attempt: string | null;
    readonly suppress: string | null;
    /** The provider's own id, where it gave one. */
    readonly reference: string | null;
  }[];
}

/** Settlements as they are written. */
export function packSettlements(batch: readonly Settlement[]): PackedSettlement[] {
  return batch.map(({ id, owner, attempts, refundAttempt: uncount, excludedFromReputation: untallied, changes }) => ({
    id,
    owner,
    attempts,
    uncount,
    untallied: untallied === true,
    changes: changes.map(({ to, dueAt, event, suppress }) => ({
      to,
      terminal: TERMINAL_STATES.has(to),
      dueAt,
      at: event.at,
      verb: event.verb,
      by: event.by,
      detail: event.detail,
      attempt: event.attempt === null ? null : JSON.stringify(event.attempt),
      suppress,
      reference: referenceOf(event.attempt),
    })),
  }));
}

/** The provider's own id that an attempt was answered with, or null. */
function referenceOf(attempt: Attempt | null): string | null {
  return attempt?.outcome.kind === 'delivered' ? (attempt.outcome.reference ?? null) : null;
}

/** `queued` makes a message due now; `cancelled` withdraws it. */
export type OperatorTargetState = 'queued' | 'cancelled';

export type OperatorChange =
  | { readonly kind: 'wrong-state'; readonly state: State }
  | {
      readonly kind: 'change';
      readonly entry: EntryWithoutAttempt;
      /** The entry of the audit log, or null where no operator is named. */
      readonly audit: NewAuditEntry | null;
    };

/** `from` and `dueAt` are those of the message `id` as it is stored. */
export function decideOperatorChange(
  { id, from, dueAt }: { readonly id: string; readonly from: State; readonly dueAt: number | null },
  to: OperatorTargetState,
  now: number,
  by: Actor | undefined,
): OperatorChange {
  const again = from === 'queued' && to === 'queued';
  if (!again && !isAllowedTransition(from, to, 'operator')) return { kind: 'wrong-state', state: from };
  const [event, action] =
    to === 'queued'
      ? (['message.retried', 'message.retry'] as const)
      : (['message.cancelled', 'message.cancel'] as const);
  const after = auditedMessage(to, to === 'queued' ? now : null);
  return {
    kind: 'change',
    entry: operatorEntry(event, now),
    audit: by === undefined ? null : auditEntry(by, action, id, auditedMessage(from, dueAt), after),
  };
}

const EPOCH_MS = Date.UTC(2025, 0, 1);
const COUNTERS = 4096;

/** The place of an id. */
export function seqOf(id: string): number {
  return (timestampOfId(id) - EPOCH_MS) * COUNTERS + counterOfId(id);
}

/** The greatest place an id made at `ms` can have. */
export function maxSeqAt(ms: number): number {
  return (ms - EPOCH_MS) * COUNTERS + COUNTERS - 1;
}

/** Not greater than any id in this place, and greater than all in places before. */
export function minIdOfSeq(seq: number): string {
  const ms = Math.floor(seq / COUNTERS);
  const time = (ms + EPOCH_MS).toString(16).padStart(12, '0');
  const counter = (seq - ms * COUNTERS).toString(16).padStart(3, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${counter}-0000-000000000000`;
}

/** Not greater than any id made at `ms` or later, and greater than all before. A UUIDv7 begins with its time (RFC 9562, section 5.7). */
export function minIdAt(ms: number): string {
  return idAt(ms, '0000-0000-000000000000');
}

/** Not less than any id made at `ms` or before, and less than all after. */
export function maxIdAt(ms: number): string {
  return idAt(ms, 'ffff-ffff-ffffffffffff');
}

function idAt(ms: number, rest: string): string {
  const time = Math.min(Math.max(0, Math.floor(ms)), 0xffff_ffff_ffff)
    .toString(16)
    .padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-${rest}`;
}

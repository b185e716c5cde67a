/**
 * Everything that happens to a message, an account, a domain or a node, as one union.
 *
 * Two kinds of consumers derive what they do from it. In the transaction: history, reputation and suppression, by `RECORDED_EVENTS`
 * (message.ts) and `reputationDelta` (account.ts). After the commit: log, metrics, traces, time series, live updates and runtime status,
 * each a subscriber in src/observability. A publisher knows no subscriber, and publishes what a transaction records after its
 * commit. An event holds no secret: its subscribers write it down.
 *
 * To add an event, add one member here. The type checker then asks for its log line (observability/log-events.ts), and for its
 * history entry where its name is one of `RECORDED_EVENTS`.
 */
import type { ReportEntryType } from './feedback.ts';
import type { Attempt, Reason } from './outcome.ts';

/** `type` is what happened, `at` when: milliseconds since the epoch. */
type Event<Type extends string, Members = object> = Type extends Type
  ? { readonly type: Type; readonly at: number } & Readonly<Members>
  : never;

interface Message {
  id: string;
  accountId: number;
  /** The recipient, as the client gave it. */
  to: string;
}

/** A message whose state has changed; what the publisher does not know of it is null. */
interface Changed {
  id: string;
  accountId: number | null;
  to: string | null;
  acceptedAt: number | null;
  /** Attempts so far; null where no attempt of this node caused the change. */
  attempts: number | null;
  /** The attempt that caused it, or null. */
  attempt: Attempt | null;
  /** When it is next tried; null where it is not. */
  dueAt: number | null;
  /** The way a report came in that caused it (`smtp`, `sns`, `sqs`); null where the queue, the simulator or an operator caused it. */
  reportedBy: string | null;
  /** True where the change puts the recipient on the suppression list. */
  suppresses: boolean;
  /** One line for people: the reason, as the history has it; null where the history has none. */
  detail: string | null;
}

/** Refusals that are about this service itself, not about a message; `ALARMING` of classify. */
export type AlarmingReason = Extract<Reason, 'configuration' | 'reputation'>;

export type HttpListenerName = 'public' | 'operator' | 'events';
export const HTTP_LISTENERS: readonly HttpListenerName[] = ['public', 'operator', 'events'];

/** Why a listener closed a connection by itself; the label of a metric. */
export type DropReason =
  /** The listener was full. */
  | 'full'
  /** Its peer had more keyless connections than its share. */
  | 'address-share'
  /** Too many connections at once waited with pipelined requests. */
  | 'pipelining'
  /** Its client did not read the answers. */
  | 'unread-answers';
export const DROP_REASONS: readonly DropReason[] = ['full', 'address-share', 'pipelining', 'unread-answers'];

/** `closed` sends, `half-open` sends one probe at a time, `open` waits. */
export type BreakerState = 'closed' | 'half-open' | 'open';
export const BREAKER_STATES: readonly BreakerState[] = ['closed', 'half-open', 'open'];

export type ServiceEvent =
  // ── Messages ──
  /** Committed, and its 201 is on the way. `tookMs` from key check to answer. */
  | Event<
      'message.accepted',
      Message & { keyId: number; state: 'queued' | 'sending' | 'suppressed'; acceptedAt: number; tookMs: number }
    >
  /** A request repeated an idempotency key; `id` is the message that it accepted first. */
  | Event<'message.replayed', { id: string; accountId: number; keyId: number; tookMs: number }>
  /** The message ended because its recipient is on the suppression list. Found when it was accepted or when it was claimed. */
  | Event<'message.suppressed', Message>
  /** Recorded: a change of state. */
  | Event<
      | 'message.delivered'
      | 'message.deferred'
      | 'message.bounced'
      | 'message.complained'
      | 'message.expired'
      | 'message.uncertain',
      Changed
    >
  /** An operator did it through this process. */
  | Event<'message.cancelled' | 'message.retried', { id: string }>
  /** A report that stands in the history and changed no state; `verb` is the history's word. */
  | Event<'message.reported', { id: string; verb: ReportEntryType; reportedBy: string; suppresses: boolean }>
  /** A message could not be signed and stays in the queue. */
  | Event<'message.signing_failed', { error: unknown }>
  /** An attempt ended; whether its outcome is recorded is another event. */
  | Event<'attempt.ended', Message & { attempts: number; attempt: Attempt }>
  /** The next hop refuses this service itself, not the message; `reason` is one of `ALARMING`. */
  | Event<'attempt.alarm_raised', Message & { attempts: number; attempt: Attempt; reason: AlarmingReason }>
  /** Another node or the sweep ended the lease first; the attempt's outcome was not recorded. */
  | Event<'node.lease_lost', Message & { attempts: number }>
  // ── Requests and connections ──
  /** `code` is one of docs/errors.md; account and key are null where no valid key is known. */
  | Event<'request.refused', { code: string; accountId: number | null; keyId: number | null }>
  /** A 201 was sent for a body with `count` members that the interface does not know. */
  | Event<'request.fields_ignored', { count: number }>
  /** A listener closed it to make room, or because its client does not read. */
  | Event<'connection.dropped', { listener: HttpListenerName; reason: DropReason }>
  /** A certificate pair was read again and is in use, or cannot be used and the old one stays. */
  | Event<'certificate.reloaded'>
  | Event<'certificate.refused', { fault: string }>
  // ── Reports of other servers and of providers ──
  /** It was there before, or is about another program's message: nothing was written. */
  | Event<'report.repeated' | 'report.unrelated'>
  /** Not understood, or about nothing that is known: kept under the number `feedbackId`. */
  | Event<'report.not_understood', { feedbackId: number; reason: string; summary: string }>
  /** Not taken. */
  | Event<'report.refused', { reason: string }>
  /** A subscription of the provider's notifications was confirmed or cancelled. */
  | Event<'subscription.changed', { detail: string }>
  // ── Accounts, domains and what operators change ──
  /** Known to this node: accounts or keys, domains, changed by whichever process. */
  | Event<'account.changed' | 'domain.changed'>
  | Event<'account.locked' | 'account.warned', { accountId: number; reason: string }>
  | Event<'domain.authenticated' | 'domain.recovered' | 'domain.failing' | 'domain.blocked', { domain: string }>
  /** An operator changed something through this process; the audit log says what. */
  | Event<'operator.changed'>
  // ── The node ──
  | Event<'node.started', { transport: string; url: string }>
  | Event<'node.draining'>
  /** The public listener accepts. */
  | Event<'api.started', { publicUrl: string }>
  /** Leases of a node that ended, or whose time was over, were taken back. */
  | Event<'node.leases_recovered', { count: number }>
  | Event<'node.warned', { detail: string }>
  /** An operation failed, and the node continues without it. */
  | Event<'node.operation_failed', { operation: string; error: unknown }>
  /** One commit of the store: how many messages it held, how long it took. */
  | Event<'store.committed', { kind: 'accept' | 'settle'; size: number; tookMs: number }>
  /** Files of the database were removed or replaced under the service; or are those that were opened again. */
  | Event<'store.files_lost', { reason: string; remedy: string }>
  | Event<'store.files_restored'>
  /** The circuit breaker of the transport; `retryAt` is when the next attempt may be made, null once it is closed. */
  | Event<
      'circuit_breaker.opened' | 'circuit_breaker.half_opened' | 'circuit_breaker.closed',
      { retryAt: number | null }
    >;

/** The event of each state that the circuit breaker enters. */
export const BREAKER_EVENTS = {
  open: 'circuit_breaker.opened',
  'half-open': 'circuit_breaker.half_opened',
  closed: 'circuit_breaker.closed',
} as const satisfies Readonly<Record<BreakerState, string>>;

export type EventType = ServiceEvent['type'];
export type EventOf<Type extends EventType> = Extract<ServiceEvent, { readonly type: Type }>;
/** Hands an event of these types to every subscriber. Never throws; subscribers are cheap and wait for nothing. */
export type PublishOf<Type extends EventType> = (event: EventOf<Type>) => void;
/** The same, for an event of any type. */
export type Publish = PublishOf<EventType>;

/**
 * Defines all events of messages, accounts, domains and nodes, as one union.
 *
 * Events have effects in the database and in subscribers. The transaction of the change writes the history, the
 * reputation and the suppressions. `RECORDED_EVENTS` (message.ts) and `getReputationDelta` (account.ts) define the
 * effects in the database. After the commit, each subscriber in src/observability receives the event. The subscribers
 * are the log, the metrics, the traces, the time series, the live updates and the runtime status. A publisher does not
 * depend on subscribers. An event contains no secret, because subscribers write it to logs.
 *
 * To add an event, add one member to `ServiceEvent`. The type checker then requires its log line
 * (observability/log-events.ts). If the name of the event is one of `RECORDED_EVENTS`, the type checker also requires
 * its history entry.
 */
import type { RecordedFailure } from './failure.ts';
import type { FeedbackSource, ReportEntryType } from './feedback.ts';
import type { Standby } from './node.ts';
import type { Attempt, Reason } from './outcome.ts';
import type { DisabledReason } from './webhook.ts';

/** `at` is the time of the event in milliseconds since the epoch. */
type Event<Type extends string, Members = object> = Type extends Type
  ? { readonly type: Type; readonly at: number } & Readonly<Members>
  : never;

interface MessageMembers {
  id: string;
  accountId: number;
  /** The recipient as submitted by the client. */
  to: string;
}

interface SenderMembers {
  /** The sender as submitted by the client. */
  from: string;
}

/** The members of an event about a change of state. A member whose value is unknown to the publisher is null. */
interface StateChangeMembers {
  id: string;
  accountId: number | null;
  to: string | null;
  from: string | null;
  acceptedAt: number | null;
  /** The number of attempts up to this change. Null if no attempt of this node caused the change. */
  attempts: number | null;
  /** The attempt that caused the change, or null. */
  attempt: Attempt | null;
  /** The time when the next attempt is due. Null if no attempt is due. */
  dueAt: number | null;
  /**
   * The source of the report that caused the change, one of `FEEDBACK_SOURCES`. Null if the change has another cause.
   */
  reportedBy: string | null;
  /** True if the change adds the recipient to the suppression list. */
  suppresses: boolean;
  /** The reason on one line, as in the history. Null if the history contains no reason. */
  detail: string | null;
  /**
   * The failure of the attempt or of the reported bounce, as in the history. Null if there is no failure, or if the
   * publisher has no data about the failure.
   */
  failure: RecordedFailure | null;
}

/** The result of an attempt to send a webhook. */
interface WebhookAttemptMembers {
  webhookId: number;
  deliveryId: string;
  /** The type of the event, such as `message.bounced`. */
  eventType: string;
  /** The HTTP status of the response. Null if there was no response. */
  status: number | null;
  tookMs: number;
}

/** The refusal reasons that concern this service and not a message (`ALARMING_REASONS` of classify.ts). */
export type AlarmReason = Extract<Reason, 'configuration' | 'reputation'>;

export type HttpListenerName = 'public' | 'operator' | 'events';
export const HTTP_LISTENERS: readonly HttpListenerName[] = ['public', 'operator', 'events'];

/** The reason why a listener closed a connection. A metric uses it as a label. */
export type DropReason =
  /** The listener had its maximum number of connections. */
  | 'full'
  /** The peer had more unauthenticated connections than its limit. */
  | 'address-share'
  /** Too many connections with pipelined requests were waiting. */
  | 'pipelining'
  /** The client did not read the responses. */
  | 'unread-answers';
export const DROP_REASONS: readonly DropReason[] = ['full', 'address-share', 'pipelining', 'unread-answers'];

/**
 * The states of the circuit breaker. `closed`: messages are sent. `half-open`: one probe is sent at a time. `open`: no
 * message is sent.
 */
export type BreakerState = 'closed' | 'half-open' | 'open';
export const BREAKER_STATES: readonly BreakerState[] = ['closed', 'half-open', 'open'];

export type ServiceEvent =
  // ── Messages ──
  /**
   * The message was committed. A client submitted it, Postrider created it as a notification, or an operator submitted
   * it again. For a client, `tookMs` is the time from the check of the key to the 201 response. Otherwise, it is the
   * time from the acceptance to this event.
   */
  | Event<
      'message.accepted',
      MessageMembers &
        SenderMembers & {
          keyId: number;
          state: 'queued' | 'sending' | 'suppressed';
          acceptedAt: number;
          tookMs: number;
        }
    >
  /** A request repeated an idempotency key. `id` is the id of the message of the first request. */
  | Event<'message.replayed', { id: string; accountId: number; keyId: number; tookMs: number }>
  /**
   * The message ended because its recipient is on the suppression list. This event occurs at acceptance or when the
   * message is claimed.
   */
  | Event<'message.suppressed', MessageMembers>
  /** A change of state was recorded. */
  | Event<
      | 'message.delivered'
      | 'message.deferred'
      | 'message.bounced'
      | 'message.complained'
      | 'message.expired'
      | 'message.uncertain',
      StateChangeMembers
    >
  /**
   * The provider reported that it has delivered the message. The state is `delivered` or `complained`, and did not
   * change.
   */
  | Event<
      'message.confirmed',
      MessageMembers & SenderMembers & { acceptedAt: number; reportedBy: string; detail: string }
    >
  /** An operator changed the message through this process. */
  | Event<'message.retried', { id: string }>
  | Event<'message.cancelled', { id: string; to: string | null }>
  /** A report was added to the history without a change of state. `verb` is the type of the history entry. */
  | Event<
      'message.reported',
      {
        id: string;
        verb: ReportEntryType;
        reportedBy: string;
        suppresses: boolean;
        /** The failure of a reported bounce, or null. */
        failure: RecordedFailure | null;
      }
    >
  /** A message could not be signed and stays in the queue. */
  | Event<'message.signing_failed', { error: unknown }>
  /**
   * An attempt ended. The outcome of the attempt may not be recorded yet; another event is published when the outcome
   * is recorded.
   */
  | Event<'attempt.ended', MessageMembers & { attempts: number; attempt: Attempt }>
  /** The next hop refused this service, not the message. `reason` is one of `ALARMING_REASONS`. */
  | Event<'attempt.alarm_raised', MessageMembers & { attempts: number; attempt: Attempt; reason: AlarmReason }>
  /**
   * Another node or the sweeper recovered the lease before this node recorded the outcome of the attempt, so the
   * outcome was not recorded.
   */
  | Event<'node.lease_lost', MessageMembers & { attempts: number }>
  // ── Requests and connections ──
  /** `code` is listed in docs/errors.md. `accountId` and `keyId` are null if the request has no valid key. */
  | Event<'request.refused', { code: string; accountId: number | null; keyId: number | null }>
  /** A message was accepted from a request body with `count` unknown members. */
  | Event<'request.fields_ignored', { count: number }>
  /** A listener closed a connection because of a limit, or because the client did not read the responses. */
  | Event<'connection.dropped', { listener: HttpListenerName; reason: DropReason }>
  /**
   * The certificate pair of a listener changed. `reloaded`: the new pair is in use. `refused`: the new pair is invalid,
   * and the old pair stays in use.
   */
  | Event<'certificate.reloaded'>
  | Event<'certificate.refused', { fault: string }>
  // ── Reports of other servers and of providers ──
  /** A report that was recorded earlier arrived again. The repetition changed nothing. */
  | Event<'report.repeated'>
  /**
   * Reports were ignored, because they match no message of this installation or are of a type that Postrider ignores.
   * `count` is the number of reports, by default 1. `source` is the channel of a report that matches no message.
   * Otherwise, it is absent.
   */
  | Event<'report.unrelated', { count?: number; source?: FeedbackSource }>
  /** The report was not understood, or is about an unknown message. It is stored with the number `feedbackId`. */
  | Event<'report.not_understood', { feedbackId: number; reason: string; summary: string }>
  /** A report or a request with provider events was refused. `count` is the number of refusals, by default 1. */
  | Event<'report.refused', { reason: string; count?: number }>
  /** A subscription to the provider's notifications was confirmed or cancelled. */
  | Event<'subscription.changed', { detail: string }>
  // ── Accounts, domains and changes by operators ──
  /** This node read accounts, keys or domains that have changed. Any process may have changed them. */
  | Event<'account.changed' | 'domain.changed'>
  | Event<'account.locked' | 'account.warned', { accountId: number; reason: string }>
  | Event<'domain.authenticated' | 'domain.recovered' | 'domain.failing' | 'domain.blocked', { domain: string }>
  /** A check found, or no longer found, the records of the domain's return path. */
  | Event<'domain.return_path_verified' | 'domain.return_path_failing', { domain: string; returnPath: string }>
  /** An operator made a change through this process. The audit log contains the details. */
  | Event<'operator.changed'>
  // ── Webhooks ──
  /** The endpoint answered an attempt to send the webhook with a 2xx status, and the result was recorded. */
  | Event<'webhook.attempt_succeeded', WebhookAttemptMembers>
  /** An attempt to send the webhook failed, and the next attempt is due at `retryAt`. */
  | Event<'webhook.attempt_failed', WebhookAttemptMembers & { error: string; retryAt: number }>
  /** The last scheduled attempt to send the webhook failed. An operator can replay the delivery. */
  | Event<'webhook.delivery_failed', WebhookAttemptMembers & { error: string }>
  /**
   * The service disabled an endpoint, because the endpoint responded with 410, or because no attempt succeeded for five
   * days.
   */
  | Event<'webhook.disabled', { webhookId: number; reason: DisabledReason }>
  // ── Notifications to operators ──
  /** This node recorded a notification about `beganCount` problems that began and `endedCount` problems that ended. */
  | Event<'notification.recorded', { notificationId: string; beganCount: number; endedCount: number }>
  /**
   * The target accepted the notification. `target` is `mailto:ADDRESS` or the origin of a URL. `messageId` is the
   * id of the message that contains a notification by mail, or null.
   */
  | Event<
      'notification.delivered',
      { notificationId: string; target: string; messageId: string | null; tookMs: number }
    >
  /** An attempt to deliver the notification failed, and the next attempt is due at `retryAt`. */
  | Event<'notification.attempt_failed', { notificationId: string; target: string; error: string; retryAt: number }>
  /** The last attempt to deliver the notification to the target failed. */
  | Event<'notification.failed', { notificationId: string; target: string; error: string }>
  // ── The node ──
  | Event<'node.started', { transport: string; url: string }>
  | Event<'node.draining'>
  /** The public listener accepts connections. */
  | Event<'api.started', { publicUrl: string }>
  /** Expired leases, or leases of dead nodes, were recovered. */
  | Event<'node.leases_recovered', { count: number }>
  | Event<'node.warned', { detail: string }>
  /** At its start, the node read which kind of standby the PostgreSQL server has. `meaning` states the consequence. */
  | Event<'store.standby', { standby: Standby; meaning: string }>
  /** The environment contains variables that Kubernetes sets for a Service. These variables are not settings. */
  | Event<'node.variables_ignored', { names: readonly string[] }>
  /** An operation failed, and the node continues without it. */
  | Event<'node.operation_failed', { operation: string; error: unknown }>
  /** The store committed a batch of `size` messages. */
  | Event<'store.committed', { kind: 'accept' | 'settle'; size: number; tookMs: number }>
  /** `lost`: files of the open database were removed or replaced. `restored`: the original files are in place again. */
  | Event<'store.files_lost', { reason: string; remedy: string }>
  | Event<'store.files_restored'>
  /**
   * The state of the circuit breaker changed. `retryAt` is the time of the next permitted attempt, or null if the
   * circuit breaker is closed.
   */
  | Event<
      'circuit_breaker.opened' | 'circuit_breaker.half_opened' | 'circuit_breaker.closed',
      { retryAt: number | null }
    >;

/** The type of the event that is published when the circuit breaker enters the state. */
export const BREAKER_EVENTS = {
  open: 'circuit_breaker.opened',
  'half-open': 'circuit_breaker.half_opened',
  closed: 'circuit_breaker.closed',
} as const satisfies Readonly<Record<BreakerState, string>>;

export type EventType = ServiceEvent['type'];
export type EventOf<Type extends EventType> = Extract<ServiceEvent, { readonly type: Type }>;
/**
 * Calls every subscriber to the type of the event. It never throws. A subscriber must return quickly and must not
 * block.
 */
export type PublishOf<Type extends EventType> = (event: EventOf<Type>) => void;
/** Publishes an event of any type. */
export type Publish = PublishOf<EventType>;

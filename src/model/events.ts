/**
 * All events, as one union. What an event writes (`RECORDED_EVENTS`, `getReputationDelta`) belongs to the transaction
 * of the change; the subscribers in src/observability receive it after the commit. No event contains a secret, because
 * subscribers write it to logs. A new member needs its line in observability/log-events.ts.
 */
import type { RecordedFailure } from './failure.ts';
import type { FeedbackSource, ReportEntryType } from './feedback.ts';
import type { Standby } from './node.ts';
import type { Attempt, Reason } from './outcome.ts';
import type { DisabledReason } from './webhook.ts';

/** `at`: milliseconds since the epoch. */
type Event<Type extends string, Members = object> = Type extends Type
  ? { readonly type: Type; readonly at: number } & Readonly<Members>
  : never;

interface MessageMembers {
  id: string;
  accountId: number;
  to: string;
}

interface SenderMembers {
  from: string;
}

/** What the publisher does not know is null. */
interface StateChangeMembers {
  id: string;
  accountId: number | null;
  to: string | null;
  from: string | null;
  acceptedAt: number | null;
  /** Null if no attempt of this node caused the change. */
  attempts: number | null;
  attempt: Attempt | null;
  /** Of a reported message. Absent: the installation had one route, or `attempt` has it. */
  route?: string;
  dueAt: number | null;
  /** One of `FEEDBACK_SOURCES`, if a report caused the change. */
  reportedBy: string | null;
  suppresses: boolean;
  detail: string | null;
  failure: RecordedFailure | null;
}

interface WebhookAttemptMembers {
  webhookId: number;
  deliveryId: string;
  eventType: string;
  /** Null without a response. */
  status: number | null;
  tookMs: number;
}

/** The refusal reasons that concern this service and not a message (`ALARMING_REASONS` of classify.ts). */
export type AlarmReason = Extract<Reason, 'configuration' | 'reputation'>;

export type HttpListenerName = 'public' | 'operator' | 'events';
export const HTTP_LISTENERS: readonly HttpListenerName[] = ['public', 'operator', 'events'];

export type DropReason =
  | 'full'
  /** The peer had more unauthenticated connections than its limit. */
  | 'address-share'
  | 'pipelining'
  | 'unread-answers';
export const DROP_REASONS: readonly DropReason[] = ['full', 'address-share', 'pipelining', 'unread-answers'];

/** `half-open`: one probe is sent at a time. */
export type BreakerState = 'closed' | 'half-open' | 'open';

export type ServiceEvent =
  // ── Messages ──
  /** `tookMs`: from the check of the key, or without a client from the acceptance. */
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
  /** `id`: the message of the first request with this idempotency key. */
  | Event<'message.replayed', { id: string; accountId: number; keyId: number; tookMs: number }>
  | Event<'message.suppressed', MessageMembers>
  | Event<
      | 'message.delivered'
      | 'message.deferred'
      | 'message.bounced'
      | 'message.complained'
      | 'message.expired'
      | 'message.uncertain',
      StateChangeMembers
    >
  /** The provider delivered the message, and the state does not change. */
  | Event<
      'message.confirmed',
      MessageMembers & SenderMembers & { acceptedAt: number; reportedBy: string; detail: string }
    >
  | Event<'message.retried', { id: string }>
  | Event<'message.cancelled', { id: string; to: string | null }>
  /** An entry in the history without a change of state. */
  | Event<
      'message.reported',
      {
        id: string;
        verb: ReportEntryType;
        reportedBy: string;
        suppresses: boolean;
        failure: RecordedFailure | null;
      }
    >
  /** The message stays in the queue. */
  | Event<'message.signing_failed', { error: unknown }>
  /** The outcome may not be recorded yet. */
  | Event<'attempt.ended', MessageMembers & { attempts: number; attempt: Attempt }>
  /** The next hop refused this service, not the message. `reason` is one of `ALARMING_REASONS`. */
  | Event<'attempt.alarm_raised', MessageMembers & { attempts: number; attempt: Attempt; reason: AlarmReason }>
  /** The lease was recovered first, so the outcome was not recorded. */
  | Event<'node.lease_lost', MessageMembers & { attempts: number }>
  // ── Requests and connections ──
  /** `code` is listed in docs/errors.md. */
  | Event<'request.refused', { code: string; accountId: number | null; keyId: number | null }>
  /** The body had `count` unknown members. */
  | Event<'request.fields_ignored', { count: number }>
  | Event<'connection.dropped', { listener: HttpListenerName; reason: DropReason }>
  /** `refused`: the new pair is invalid, and the old pair stays in use. */
  | Event<'certificate.reloaded'>
  | Event<'certificate.refused', { fault: string }>
  // ── Reports of other servers and of providers ──
  | Event<'report.repeated'>
  /** `source`: the channel of a report that matches no message of this installation. */
  | Event<'report.unrelated', { count?: number; source?: FeedbackSource }>
  | Event<'report.not_understood', { feedbackId: number; reason: string; summary: string }>
  | Event<'report.refused', { reason: string; count?: number }>
  | Event<'subscription.changed', { detail: string }>
  // ── Accounts, domains and changes by operators ──
  /** Any process may have made the change. */
  | Event<'account.changed' | 'domain.changed'>
  | Event<'account.locked' | 'account.warned', { accountId: number; reason: string }>
  | Event<'domain.authenticated' | 'domain.recovered' | 'domain.failing' | 'domain.blocked', { domain: string }>
  | Event<'domain.return_path_verified' | 'domain.return_path_failing', { domain: string; returnPath: string }>
  /** By an operator through this process. */
  | Event<'operator.changed'>
  // ── Webhooks ──
  | Event<'webhook.attempt_succeeded', WebhookAttemptMembers>
  | Event<'webhook.attempt_failed', WebhookAttemptMembers & { error: string; retryAt: number }>
  | Event<'webhook.delivery_failed', WebhookAttemptMembers & { error: string }>
  | Event<'webhook.disabled', { webhookId: number; reason: DisabledReason }>
  // ── Notifications to operators ──
  | Event<'notification.recorded', { notificationId: string; beganCount: number; endedCount: number }>
  /** `target`: `mailto:ADDRESS` or the origin of a URL. `messageId`: the message of a notification by mail. */
  | Event<
      'notification.delivered',
      { notificationId: string; target: string; messageId: string | null; tookMs: number }
    >
  | Event<'notification.attempt_failed', { notificationId: string; target: string; error: string; retryAt: number }>
  | Event<'notification.failed', { notificationId: string; target: string; error: string }>
  // ── The node ──
  | Event<'node.started', { transport: string; url: string }>
  | Event<'node.draining'>
  | Event<'api.started', { publicUrl: string }>
  | Event<'node.leases_recovered', { count: number }>
  | Event<'node.warned', { detail: string }>
  | Event<'store.standby', { standby: Standby; meaning: string }>
  /** Kubernetes sets these for a Service. They are not settings. */
  | Event<'node.variables_ignored', { names: readonly string[] }>
  | Event<'node.operation_failed', { operation: string; error: unknown }>
  | Event<'store.committed', { kind: 'accept' | 'settle'; size: number; tookMs: number }>
  | Event<'store.files_lost', { reason: string; remedy: string }>
  | Event<'store.files_restored'>
  /** `retryAt`: the next permitted attempt. */
  | Event<
      'circuit_breaker.opened' | 'circuit_breaker.half_opened' | 'circuit_breaker.closed',
      { route: string; retryAt: number | null }
    >;

export const BREAKER_EVENTS = {
  open: 'circuit_breaker.opened',
  'half-open': 'circuit_breaker.half_opened',
  closed: 'circuit_breaker.closed',
} as const satisfies Readonly<Record<BreakerState, string>>;

export type EventType = ServiceEvent['type'];
export type EventOf<Type extends EventType> = Extract<ServiceEvent, { readonly type: Type }>;
/** Calls every subscriber and never throws. A subscriber must be quick. */
export type PublishOf<Type extends EventType> = (event: EventOf<Type>) => void;
export type Publish = PublishOf<EventType>;
/** The handlers of a subscriber, by event type. */
export type Handlers = { readonly [Type in EventType]?: ((event: EventOf<Type>) => void) | null };

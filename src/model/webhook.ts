/**
 * The types of webhooks: endpoints, the events that are sent to them, and deliveries. Pure. All times are in
 * milliseconds since the epoch.
 *
 * The store records an event in the outbox, in the transaction of the change that the event reports. The webhook worker
 * creates one delivery for each endpoint that receives the event. A delivery contains no copy of the message: it names
 * the message and one entry of its history, and webhook-payload.ts builds the payload from both.
 */
import type { HistoryEntry, State } from './message.ts';

/** The types of events about a message. The history entry has the same type without the prefix `message.`. */
export const MESSAGE_EVENT_TYPES = [
  'message.accepted',
  'message.delivered',
  'message.confirmed',
  'message.deferred',
  'message.bounced',
  'message.complained',
  'message.suppressed',
  'message.expired',
  'message.cancelled',
  'message.uncertain',
] as const;
export type MessageEventType = (typeof MESSAGE_EVENT_TYPES)[number];

/** The types of events about a domain, an account, a suppression list or an endpoint. */
export const RESOURCE_EVENT_TYPES = [
  'domain.authenticated',
  'domain.failing',
  'account.warned',
  'account.locked',
  'account.unlocked',
  'suppression.added',
  'suppression.removed',
  'webhook.disabled',
] as const;
export type ResourceEventType = (typeof RESOURCE_EVENT_TYPES)[number];

/**
 * Every type to which an endpoint can subscribe. The order determines the bits of a subscription, so it never changes.
 */
export const WEBHOOK_EVENT_TYPES = [...MESSAGE_EVENT_TYPES, ...RESOURCE_EVENT_TYPES] as const;
export type WebhookEventType = (typeof WEBHOOK_EVENT_TYPES)[number];

/** The type of a test delivery. An endpoint receives it regardless of its subscription. */
export const WEBHOOK_TEST_TYPE = 'webhook.test';

/** The event types that an endpoint without an explicit subscription receives. */
export const DEFAULT_WEBHOOK_EVENT_TYPES: readonly WebhookEventType[] = WEBHOOK_EVENT_TYPES.filter(
  (type) => type !== 'message.accepted' && type !== 'message.deferred',
);

/** Returns the bit of an event type in the mask of a subscription. */
export function getEventBit(type: WebhookEventType): number {
  return 1 << WEBHOOK_EVENT_TYPES.indexOf(type);
}

/** Returns a subscription as a bit mask. The store contains subscriptions in this form. */
export function toEventMask(types: readonly WebhookEventType[]): number {
  return types.reduce((mask, type) => mask | getEventBit(type), 0);
}

/** Returns the types of a subscription in the order of `WEBHOOK_EVENT_TYPES`. Unknown bits are ignored. */
export function listEventTypes(mask: number): readonly WebhookEventType[] {
  return WEBHOOK_EVENT_TYPES.filter((type) => (mask & getEventBit(type)) !== 0);
}

/**
 * The reason why an endpoint is disabled. `operator`: an operator disabled it. `gone`: the endpoint responded with 410.
 * `failing`: all attempts at this endpoint failed for five days.
 */
export const DISABLED_REASONS = ['operator', 'gone', 'failing'] as const;
export type DisabledReason = (typeof DISABLED_REASONS)[number];

/** The duration of the lease of a delivery. It covers an attempt of at most 15 s and the time to record its result. */
export const DELIVERY_LEASE_MS = 60_000;

/**
 * The maximum time from the start of a claim to the start of its attempts. If more time has passed, for example because
 * the process was suspended, the node releases the leases and starts no attempt. An operation that changes an endpoint
 * waits for the attempts of earlier claims, at most for this time. Therefore, every attempt that begins after the
 * operation uses the changed endpoint.
 */
export const MAX_START_DELAY_MS = 2_000;

/** The retention of events in the outbox and of deliveries, from their creation. */
export const DELIVERY_RETENTION_MS = 30 * 24 * 3_600_000;

/** The service disables an endpoint whose attempts have failed for this time without a success. */
export const MAX_FAILING_MS = 5 * 24 * 3_600_000;

/** The minimum time between two updates of `lastSuccessAt`, so that few successes update the row of the endpoint. */
export const LAST_SUCCESS_STEP_MS = 10_000;

/** The maximum number of endpoints of an installation. */
export const MAX_WEBHOOKS = 10_000;

const WEBHOOK_ID_PREFIX = 'wh_';

/** Returns the id by which commands and results name an endpoint, such as `wh_1`. */
export function formatWebhookId(id: number): string {
  return `${WEBHOOK_ID_PREFIX}${id}`;
}

/** Returns the number of the endpoint with this id, or null if the text is not an id from `formatWebhookId`. */
export function parseWebhookId(text: string): number | null {
  const id = Number(text.slice(WEBHOOK_ID_PREFIX.length));
  return Number.isInteger(id) && id >= 1 && id <= 2_147_483_647 && formatWebhookId(id) === text ? id : null;
}

/** An endpoint. It contains no secret. */
export interface Webhook {
  readonly id: number;
  /** The URL, whose path and query are masked, because they may contain a secret. */
  readonly url: string;
  /** The encrypted URL. */
  readonly sealedUrl: string;
  /** The account whose events the endpoint receives; null if it receives the events of every account. */
  readonly accountId: number | null;
  /** The name of the account whose events the endpoint receives, or null. */
  readonly account: string | null;
  readonly name: string | null;
  readonly events: readonly WebhookEventType[];
  /** The reason and the time of the change to `disabled`; null if the endpoint is enabled. */
  readonly disabled: { readonly reason: DisabledReason; readonly at: number } | null;
  /** The time until which attempts are also signed with the previous secret. Null without a previous secret. */
  readonly previousSecretUntil: number | null;
  readonly createdAt: number;
  /**
   * The time of the first failure of the endpoint since the last success. Null if no attempt has failed since the last
   * success. Faults of the installation do not count.
   */
  readonly failingSince: number | null;
  /**
   * The time of the last success. It can be earlier than the actual time by at most `LAST_SUCCESS_STEP_MS`. Null if no
   * attempt has succeeded.
   */
  readonly lastSuccessAt: number | null;
}

/** An endpoint to be stored. */
export interface NewWebhook {
  /** The masked URL. */
  readonly url: string;
  readonly sealedUrl: string;
  /** The name of the account; null if the endpoint receives the events of every account. */
  readonly account: string | null;
  readonly name: string | null;
  readonly events: readonly WebhookEventType[];
  /** The encrypted signing secret. */
  readonly sealed: string;
}

/** The members of an endpoint that an operator can change. An absent member stays unchanged. */
export type WebhookChange = Partial<Pick<Webhook, 'url' | 'sealedUrl' | 'name' | 'events'>>;

/** The result of creating an endpoint. */
export type CreateWebhookResult =
  | { readonly kind: 'done'; readonly value: Webhook }
  /** The account does not exist. */
  | { readonly kind: 'missing' }
  /** There are `MAX_WEBHOOKS` endpoints. */
  | { readonly kind: 'too-many' };

/** The facts about an event that determine its payload. */
export type RecordedWebhookEvent = RecordedMessageEvent | RecordedResourceEvent;

/** An event about a message: one entry of its history, and the message as accepted. */
export interface RecordedMessageEvent {
  readonly kind: 'message';
  readonly type: MessageEventType;
  readonly id: string;
  /** The name of the account. */
  readonly account: string;
  readonly to: string;
  readonly from: string;
  readonly subject: string;
  /** The position of the entry in the history, from 0 (`accepted`). */
  readonly sequence: number;
  /** The state of the message after the change. */
  readonly state: State;
  /** True if the change suppressed the recipient, or if the recipient was already suppressed. */
  readonly suppressed: boolean;
  readonly entry: HistoryEntry;
}

/**
 * An event about an object other than a message, or a test. `data` was written in the transaction of the change. It is
 * the member `data` of the payload.
 */
export interface RecordedResourceEvent {
  readonly kind: 'resource';
  readonly type: ResourceEventType | typeof WEBHOOK_TEST_TYPE;
  readonly at: number;
  readonly data: Readonly<Record<string, unknown>>;
}

/** An event whose message or history entry is no longer stored. It cannot be sent. */
export interface MissingWebhookEvent {
  readonly kind: 'missing';
  readonly type: MessageEventType;
}

/** `pending`: an attempt is due or in progress. `failed`: the schedule ended without a success. */
export const DELIVERY_STATUSES = ['pending', 'delivered', 'failed'] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** One stored attempt to send a webhook. */
export interface WebhookAttempt {
  readonly at: number;
  readonly durationMs: number;
  /** The HTTP status of the response. Null without a response. */
  readonly status: number | null;
  /** The reason for the failure, in one line. Null after a success. */
  readonly error: string | null;
  /** The first 512 bytes of the response body as text. Null without a response. */
  readonly body: string | null;
}

/** The maximum number of stored attempts of a delivery. The store keeps the newest attempts. */
export const MAX_STORED_ATTEMPTS = 30;

/** The delivery of one event to one endpoint. */
export interface WebhookDelivery {
  /** A UUID. It is the `webhook-id` of every attempt. */
  readonly id: string;
  readonly webhookId: number;
  readonly type: WebhookEventType | typeof WEBHOOK_TEST_TYPE;
  /** The id of the message, or null for an event about an object other than a message. */
  readonly messageId: string | null;
  readonly status: DeliveryStatus;
  readonly createdAt: number;
  /** The attempts, oldest first, at most `MAX_STORED_ATTEMPTS`. */
  readonly attempts: readonly WebhookAttempt[];
  /** The time when the next attempt is due, or when the lease of the current attempt ends. Null unless `pending`. */
  readonly nextAttemptAt: number | null;
}

/** A delivery that is leased for one attempt. A settlement is valid only if it names the lease's owner and number. */
export interface LeasedDelivery {
  readonly id: string;
  readonly webhookId: number;
  readonly owner: string;
  /** The number of the lease, which increases with each claim of the delivery. */
  readonly lease: number;
  /** The encrypted URL of the endpoint at the time of the claim. */
  readonly sealedUrl: string;
  /** The encrypted secrets at that time: the current secret and, until its grace period ends, the previous secret. */
  readonly sealed: readonly string[];
  /** The number of this attempt in the schedule, 1 for the first. A replay starts at 1 again. */
  readonly attempt: number;
  readonly event: RecordedWebhookEvent | MissingWebhookEvent;
}

/** The result of the attempt of a leased delivery. */
export interface DeliverySettlement extends Pick<LeasedDelivery, 'id' | 'webhookId' | 'owner' | 'lease'> {
  readonly attempt: WebhookAttempt;
  readonly result:
    | { readonly kind: 'delivered' }
    /** `dueAt` is the time of the next attempt. */
    | { readonly kind: 'retry'; readonly dueAt: number }
    | { readonly kind: 'failed' };
  /** True if the response was 410. The settlement then disables the endpoint. */
  readonly isGone: boolean;
  /**
   * True if the attempt failed because of a fault of the installation, for example a lost secret, and not because of
   * the endpoint. Such an attempt does not change `failingSince`.
   */
  readonly isInstallationFault: boolean;
}

export type DeliverySettleResult =
  /** `disabled` is the reason if this settlement disabled the endpoint, otherwise null. */
  | { readonly kind: 'settled'; readonly disabled: DisabledReason | null }
  /** The lease expired and was replaced by a later lease, or the endpoint was deleted. Nothing was written. */
  | { readonly kind: 'lost' };

/** The deliveries that a replay makes due immediately. */
export interface ReplaySelection {
  /** The replay includes only deliveries that were created at or after this time. */
  readonly since: number;
  /** True if the replay includes deliveries with a success. If false, it includes only deliveries without a success. */
  readonly includesDelivered: boolean;
}

/** Figures of one endpoint for the overview and the metrics. */
export interface WebhookStatistics {
  readonly webhookId: number;
  readonly pendingCount: number;
  /** The time when the oldest pending delivery was created. Null if none is pending. */
  readonly oldestPendingAt: number | null;
  readonly failedCount: number;
}

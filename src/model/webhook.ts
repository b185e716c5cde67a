/**
 * Webhooks: endpoints, events and deliveries. The outbox records an event in the transaction of its change. The worker
 * creates one delivery for each endpoint, which names the message and one history entry. Times are in milliseconds
 * since the epoch. Pure.
 */
import type { HistoryEntry, State } from './message.ts';

/** The history entry has the same type without the prefix `message.`. */
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

/** The order determines the bits of a subscription, so it never changes. */
export const WEBHOOK_EVENT_TYPES = [...MESSAGE_EVENT_TYPES, ...RESOURCE_EVENT_TYPES] as const;
export type WebhookEventType = (typeof WEBHOOK_EVENT_TYPES)[number];

/** Received regardless of the subscription. */
export const WEBHOOK_TEST_TYPE = 'webhook.test';

/** A notification to operators. Its endpoints, the targets, have negative ids and no row that an operator can see. */
export const NOTIFICATION_TYPE = 'attention.changed';

export const DEFAULT_WEBHOOK_EVENT_TYPES: readonly WebhookEventType[] = WEBHOOK_EVENT_TYPES.filter(
  (type) => type !== 'message.accepted' && type !== 'message.deferred',
);

export function getEventBit(type: WebhookEventType): number {
  return 1 << WEBHOOK_EVENT_TYPES.indexOf(type);
}

export function toEventMask(types: readonly WebhookEventType[]): number {
  return types.reduce((mask, type) => mask | getEventBit(type), 0);
}

/** Unknown bits are ignored. */
export function listEventTypes(mask: number): readonly WebhookEventType[] {
  return WEBHOOK_EVENT_TYPES.filter((type) => (mask & getEventBit(type)) !== 0);
}

/** `gone`: it responded with 410. `failing`: all attempts failed for five days. */
export const DISABLED_REASONS = ['operator', 'gone', 'failing'] as const;
export type DisabledReason = (typeof DISABLED_REASONS)[number];

/** Covers an attempt of at most 15 s and the record of its result. */
export const DELIVERY_LEASE_MS = 60_000;

/**
 * From the start of a claim to the start of its attempts. After it, for example because the process was suspended, the
 * leases are released. An operation that changes an endpoint waits as long, so every later attempt uses the changed
 * endpoint.
 */
export const MAX_START_DELAY_MS = 2_000;

export const DELIVERY_RETENTION_MS = 30 * 24 * 3_600_000;

export const MAX_FAILING_MS = 5 * 24 * 3_600_000;

/** So that few successes update the row of the endpoint. */
export const LAST_SUCCESS_STEP_MS = 10_000;

export const MAX_WEBHOOKS = 10_000;

const WEBHOOK_ID_PREFIX = 'wh_';

export function formatWebhookId(id: number): string {
  return `${WEBHOOK_ID_PREFIX}${id}`;
}

export function parseWebhookId(text: string): number | null {
  const id = Number(text.slice(WEBHOOK_ID_PREFIX.length));
  return Number.isInteger(id) && id >= 1 && id <= 2_147_483_647 && formatWebhookId(id) === text ? id : null;
}

/** It contains no secret. */
export interface Webhook {
  readonly id: number;
  /** Path and query are masked, because they may contain a secret. */
  readonly url: string;
  readonly sealedUrl: string;
  /** Null: the endpoint receives the events of every account. */
  readonly accountId: number | null;
  readonly account: string | null;
  readonly name: string | null;
  readonly events: readonly WebhookEventType[];
  readonly disabled: { readonly reason: DisabledReason; readonly at: number } | null;
  /** Until then attempts are also signed with the previous secret. */
  readonly previousSecretUntil: number | null;
  readonly createdAt: number;
  /** The first failure since the last success. Faults of the installation do not count. */
  readonly failingSince: number | null;
  /** Earlier than the actual time by at most `LAST_SUCCESS_STEP_MS`. */
  readonly lastSuccessAt: number | null;
}

export interface NewWebhook {
  readonly url: string;
  readonly sealedUrl: string;
  readonly account: string | null;
  readonly name: string | null;
  readonly events: readonly WebhookEventType[];
  readonly sealed: string;
}

/** An absent member stays unchanged. */
export type WebhookChange = Partial<Pick<Webhook, 'url' | 'sealedUrl' | 'name' | 'events'>>;

export type CreateWebhookResult =
  | { readonly kind: 'done'; readonly value: Webhook }
  | { readonly kind: 'missing' }
  | { readonly kind: 'too-many' };

export type RecordedWebhookEvent = RecordedMessageEvent | RecordedResourceEvent;

export interface RecordedMessageEvent {
  readonly kind: 'message';
  readonly type: MessageEventType;
  readonly id: string;
  readonly account: string;
  readonly to: string;
  readonly from: string;
  readonly subject: string;
  /** The position of the entry in the history, from 0 (`accepted`). */
  readonly sequence: number;
  /** After the change. */
  readonly state: State;
  /** By the change, or earlier. */
  readonly suppressed: boolean;
  readonly entry: HistoryEntry;
}

/** `data`: the member of the payload, written in the transaction of the change. */
export interface RecordedResourceEvent {
  readonly kind: 'resource';
  readonly type: ResourceEventType | typeof WEBHOOK_TEST_TYPE | typeof NOTIFICATION_TYPE;
  readonly at: number;
  readonly data: Readonly<Record<string, unknown>>;
}

/** The message or the history entry is no longer stored. */
export interface MissingWebhookEvent {
  readonly kind: 'missing';
  readonly type: MessageEventType;
}

/** `pending`: due or in progress. `failed`: the schedule ended without a success. */
export const DELIVERY_STATUSES = ['pending', 'delivered', 'failed'] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

export interface WebhookAttempt {
  readonly at: number;
  readonly durationMs: number;
  /** Null without a response. */
  readonly status: number | null;
  readonly error: string | null;
  /** The first 512 bytes as text. */
  readonly body: string | null;
}

/** The newest attempts are kept. */
export const MAX_STORED_ATTEMPTS = 30;

export interface WebhookDelivery extends StoredDelivery {
  readonly type: WebhookEventType | typeof WEBHOOK_TEST_TYPE;
}

/** Of a webhook or a notification. */
export interface StoredDelivery {
  /** The `webhook-id` of every attempt. */
  readonly id: string;
  readonly webhookId: number;
  /** Of the event, or of a notification by mail. */
  readonly messageId: string | null;
  readonly status: DeliveryStatus;
  readonly createdAt: number;
  /** Oldest first. */
  readonly attempts: readonly WebhookAttempt[];
  /** Or the end of the current lease. Null unless `pending`. */
  readonly nextAttemptAt: number | null;
}

/** A settlement is valid only for the owner and the number of the lease. */
export interface LeasedDelivery {
  readonly id: string;
  readonly webhookId: number;
  readonly owner: string;
  /** Increases with each claim. */
  readonly lease: number;
  /** As of the claim. For a notification, the text of its target. */
  readonly sealedUrl: string;
  /** The current secret and, until its grace period ends, the previous secret. */
  readonly sealed: readonly string[];
  /** In the schedule, from 1, also for a replay. */
  readonly attempt: number;
  readonly event: RecordedWebhookEvent | MissingWebhookEvent;
}

export interface DeliverySettlement extends Pick<LeasedDelivery, 'id' | 'webhookId' | 'owner' | 'lease'> {
  readonly attempt: WebhookAttempt;
  readonly result: /** `messageId`: the message of a notification by mail. */
    | { readonly kind: 'delivered'; readonly messageId?: string | null }
    | { readonly kind: 'retry'; readonly dueAt: number }
    | { readonly kind: 'failed' };
  /** The response was 410, so the settlement disables the endpoint. */
  readonly isGone: boolean;
  /** Not a failure of the endpoint, for example a lost secret, so `failingSince` does not change. */
  readonly isInstallationFault: boolean;
}

export type DeliverySettleResult =
  | { readonly kind: 'settled'; readonly disabled: DisabledReason | null }
  /** The lease was replaced, or the endpoint was deleted. Nothing was written. */
  | { readonly kind: 'lost' };

export interface ReplaySelection {
  /** Created at or after this time. */
  readonly since: number;
  /** Also deliveries with a success. */
  readonly includesDelivered: boolean;
}

/** For the overview and the metrics. */
export interface WebhookStatistics {
  readonly webhookId: number;
  readonly pendingCount: number;
  readonly oldestPendingAt: number | null;
  readonly failedCount: number;
}

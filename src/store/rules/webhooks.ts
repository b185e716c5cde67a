/** Which events are recorded, which endpoints receive an event, and how attempts change an endpoint. Pure. */
import type { HistoryEntry } from '../../model/message.ts';
import {
  DELIVERY_STATUSES,
  type DeliverySettlement,
  DISABLED_REASONS,
  LAST_SUCCESS_STEP_MS,
  listEventTypes,
  MESSAGE_EVENT_TYPES,
  type MessageEventType,
  type MissingWebhookEvent,
  NOTIFICATION_TYPE,
  RESOURCE_EVENT_TYPES,
  type RecordedWebhookEvent,
  type StoredDelivery,
  WEBHOOK_EVENT_TYPES,
  WEBHOOK_TEST_TYPE,
  type Webhook,
  type WebhookAttempt,
  type WebhookDelivery,
  type WebhookEventType,
} from '../../model/webhook.ts';
import * as rows from './rows.ts';

const MESSAGE_PREFIX = 'message.';
const TYPES_BY_VERB: ReadonlyMap<string, MessageEventType> = new Map(
  MESSAGE_EVENT_TYPES.map((type) => [type.slice(MESSAGE_PREFIX.length), type]),
);

export function findEventType(verb: HistoryEntry['verb']): MessageEventType | null {
  return TYPES_BY_VERB.get(verb) ?? null;
}

export const SERVICE_ACCOUNT_ID = 0;

export interface OutboxEvent {
  /** Compared with `start` of an endpoint: the position in the outbox, on PostgreSQL the id of the transaction. */
  readonly order: number;
  readonly type: WebhookEventType;
  readonly accountId: number;
  /** This endpoint does not receive the event. */
  readonly excludedWebhookId: number | null;
}

export interface Subscriber {
  readonly id: number;
  readonly accountId: number | null;
  readonly events: number;
  /** Receives events whose `order` is at least this number. */
  readonly start: number;
}

export function receivesEvent(subscriber: Subscriber, event: OutboxEvent, bit: number): boolean {
  return (
    (subscriber.events & bit) !== 0 &&
    (subscriber.accountId === null || subscriber.accountId === event.accountId) &&
    event.order >= subscriber.start &&
    event.excludedWebhookId !== subscriber.id
  );
}

/** UUIDv7 (RFC 9562 section 5.7) of the time, the number of the delivery in its step, and the seed of the step. */
export function toDeliveryId(now: number, index: number, seed: string): string {
  const time = now.toString(16).padStart(12, '0');
  const highDigits = (index >> 12).toString(16).padStart(3, '0');
  const lowDigits = (index & 0xfff).toString(16).padStart(3, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${highDigits}-8${lowDigits}-${seed.slice(0, 12)}`;
}

export interface EndpointEffect {
  hasSucceeded: boolean;
  /** The first failure. Tests and faults of the installation do not count. */
  failedAt: number | null;
  isGone: boolean;
}

export function collectEffects(
  settledDeliveries: readonly { readonly settlement: DeliverySettlement; readonly isTest: boolean }[],
): ReadonlyMap<number, EndpointEffect> {
  const effects = new Map<number, EndpointEffect>();
  for (const { settlement, isTest } of settledDeliveries.toSorted(
    (a, b) => a.settlement.webhookId - b.settlement.webhookId,
  )) {
    const { webhookId, result, attempt, isGone, isInstallationFault } = settlement;
    const effect = effects.get(webhookId) ?? { hasSucceeded: false, failedAt: null, isGone: false };
    effects.set(webhookId, effect);
    if (result.kind === 'delivered') effect.hasSucceeded = true;
    else if (!isTest && !isInstallationFault) effect.failedAt = Math.min(effect.failedAt ?? attempt.at, attempt.at);
    if (isGone) effect.isGone = true;
  }
  return effects;
}

export function decideFailingSince(
  failingSince: number | null,
  { hasSucceeded, failedAt }: EndpointEffect,
): number | null {
  return hasSucceeded ? null : (failingSince ?? failedAt);
}

/** One success per `LAST_SUCCESS_STEP_MS` is stored. */
export function mustStoreSuccess(lastSuccessAt: number | null, { hasSucceeded }: EndpointEffect, now: number): boolean {
  return hasSucceeded && (lastSuccessAt === null || now >= lastSuccessAt + LAST_SUCCESS_STEP_MS);
}

export const SELECT_WEBHOOKS =
  'SELECT w.*, a.name AS account FROM webhook w LEFT JOIN account a ON a.id = w.account_id';
/** The id may be any number that an operator has entered. */
export const SELECT_WEBHOOK = `${SELECT_WEBHOOKS} WHERE w.id = $1::bigint AND NOT w.removed`;

export function toWebhook(row: rows.Row): Webhook {
  const disabledAt = rows.readIntegerOrNull(row, 'disabled_at');
  return {
    id: rows.readInteger(row, 'id'),
    url: rows.readText(row, 'url'),
    sealedUrl: rows.readText(row, 'sealed_url'),
    accountId: rows.readIntegerOrNull(row, 'account_id'),
    account: rows.readTextOrNull(row, 'account'),
    name: rows.readTextOrNull(row, 'name'),
    events: listEventTypes(rows.readInteger(row, 'events')),
    disabled:
      disabledAt === null ? null : { reason: rows.readOneOf(row, 'disabled_reason', DISABLED_REASONS), at: disabledAt },
    previousSecretUntil: rows.readIntegerOrNull(row, 'previous_until'),
    createdAt: rows.readInteger(row, 'created_at'),
    failingSince: rows.readIntegerOrNull(row, 'failing_since'),
    lastSuccessAt: rows.readIntegerOrNull(row, 'last_success_at'),
  };
}

export function toSubscriber(row: rows.Row): Subscriber {
  return {
    id: rows.readInteger(row, 'id'),
    accountId: rows.readIntegerOrNull(row, 'account_id'),
    events: rows.readInteger(row, 'events'),
    start: rows.readInteger(row, 'start'),
  };
}

export function toOutboxEvent(row: rows.Row): OutboxEvent {
  return {
    order: rows.readInteger(row, 'order'),
    type: rows.readOneOf(row, 'type', WEBHOOK_EVENT_TYPES),
    accountId: rows.readInteger(row, 'account_id'),
    excludedWebhookId: rows.readIntegerOrNull(row, 'webhook_id'),
  };
}

const DELIVERY_TYPES = [...WEBHOOK_EVENT_TYPES, WEBHOOK_TEST_TYPE] as const;

export function toDelivery(row: rows.Row): WebhookDelivery {
  return { ...toStoredDelivery(row), type: rows.readOneOf(row, 'type', DELIVERY_TYPES) };
}

export function toStoredDelivery(row: rows.Row): StoredDelivery {
  return {
    id: rows.readText(row, 'id'),
    webhookId: rows.readInteger(row, 'webhook_id'),
    messageId: rows.readTextOrNull(row, 'message_id'),
    status: rows.readOneOf(row, 'status', DELIVERY_STATUSES),
    createdAt: rows.readInteger(row, 'created_at'),
    attempts: JSON.parse(rows.readText(row, 'attempts')) as WebhookAttempt[],
    nextAttemptAt: rows.readIntegerOrNull(row, 'due_at'),
  };
}

/** `message` has the columns of the history entry; undefined if it is no longer stored. */
export function toRecordedEvent(
  row: rows.Row,
  message: rows.Row | undefined,
): RecordedWebhookEvent | MissingWebhookEvent {
  if (row.message_id === null) {
    return {
      kind: 'resource',
      type: rows.readOneOf(row, 'type', [...RESOURCE_EVENT_TYPES, WEBHOOK_TEST_TYPE, NOTIFICATION_TYPE]),
      at: rows.readInteger(row, 'at'),
      data: JSON.parse(rows.readText(row, 'data')) as Record<string, unknown>,
    };
  }
  const type = rows.readOneOf(row, 'type', MESSAGE_EVENT_TYPES);
  const sequence = rows.readInteger(row, 'sequence');
  if (message === undefined || (sequence > 0 && message.verb === null)) return { kind: 'missing', type };
  return {
    kind: 'message',
    type,
    id: rows.readText(message, 'id'),
    account: rows.readText(message, 'account'),
    to: rows.readText(message, 'to'),
    from: rows.readText(message, 'from'),
    subject: rows.readText(message, 'subject'),
    sequence,
    state: rows.readState(row),
    suppressed: rows.readBoolean(row, 'suppressed'),
    entry: sequence === 0 ? rows.toAcceptedEntry(message) : removeTranscript(rows.toHistoryEntry(message)),
  };
}

/** No payload contains the transcript. */
function removeTranscript(entry: HistoryEntry): HistoryEntry {
  if (entry.attempt === null) return entry;
  const { lineOffsetsMs: _, ...attempt } = entry.attempt;
  return { ...entry, attempt: { ...attempt, transcript: [] } };
}

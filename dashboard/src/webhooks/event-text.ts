/** Describes subscriptions to event types. The functions have no side effects. */
import { DEFAULT_WEBHOOK_EVENT_TYPES, WEBHOOK_EVENT_TYPES, type WebhookEventType } from '../../../src/model/webhook.ts';

const MAX_LISTED_TYPES = 2;

/** The groups of event types in the form. Every event type belongs to exactly one group. */
export const EVENT_GROUPS: readonly { readonly label: string; readonly types: readonly WebhookEventType[] }[] = [
  {
    label: 'Outcome of messages',
    types: WEBHOOK_EVENT_TYPES.filter((type) => type.startsWith('message.') && isDefault(type)),
  },
  {
    label: 'Progress of messages (one event or more for each message)',
    types: WEBHOOK_EVENT_TYPES.filter((type) => type.startsWith('message.') && !isDefault(type)),
  },
  { label: 'Domains', types: WEBHOOK_EVENT_TYPES.filter((type) => type.startsWith('domain.')) },
  { label: 'Accounts', types: WEBHOOK_EVENT_TYPES.filter((type) => type.startsWith('account.')) },
  { label: 'Suppression lists', types: WEBHOOK_EVENT_TYPES.filter((type) => type.startsWith('suppression.')) },
  { label: 'Other endpoints', types: WEBHOOK_EVENT_TYPES.filter((type) => type.startsWith('webhook.')) },
];

function isDefault(type: WebhookEventType): boolean {
  return DEFAULT_WEBHOOK_EVENT_TYPES.includes(type);
}

/** Returns a short text such as `All events`, `message.bounced` or `5 event types`. */
export function describeEvents(types: readonly WebhookEventType[]): string {
  if (types.length === WEBHOOK_EVENT_TYPES.length) return 'All events';
  if (types.length === DEFAULT_WEBHOOK_EVENT_TYPES.length && types.every(isDefault))
    return 'All except accepted and deferred';
  return types.length <= MAX_LISTED_TYPES ? types.join(', ') : `${types.length} event types`;
}

/** Returns the value of the parameter `events`. */
export function toEventsParameter(types: readonly WebhookEventType[]): string {
  return types.length === WEBHOOK_EVENT_TYPES.length ? 'all' : types.join(',');
}

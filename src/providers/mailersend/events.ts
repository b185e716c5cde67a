/**
 * Reads versions 1.0 and 2.0 of the webhooks of MailerSend. The type is in `type`. In version 1.0, `data.email` is an
 * object that contains the message and the recipient. MailerSend ends version 1.0 on 2026-12-01.
 * https://developers.mailersend.com/api/v1/webhooks.html, https://www.mailersend.com/help/webhooks
 */
import { createAuthenticateBy, parseTextSecret } from '../authentication.ts';
import {
  createFact,
  type Diagnosis,
  type EventMeaning,
  NO_EVENTS,
  type ProviderEvent,
  type ReadResult,
} from '../event.ts';
import { digestOf, type Json, parseJson, rowOf, timeOfIsoText, toId, toObject, toText } from '../json.ts';
import type { EventFormat } from '../provider.ts';
import { authenticateBySignature, isWebhookTest } from './signature.ts';

/** The meaning of each type. Other types are ignored. */
const EVENT_TYPES: Readonly<Record<string, EventMeaning>> = {
  'activity.hard_bounced': 'hard',
  'activity.soft_bounced': 'soft',
  'activity.spam_complaint': 'complaint',
  'activity.unsubscribed': 'unsubscribed',
  'activity.suppressed': 'provider-suppressed',
  'activity.deferred': 'deferred',
  'activity.delivered': 'delivered',
};

/** The members of `data.meta` that contain the reason. An event has at most one of these members. */
const REASON_MEMBERS: readonly string[] = [
  'bounce_reason',
  'suppression_reason',
  'reject_reason',
  'unsubscribe_reason',
];

export const MAILERSEND_EVENTS: EventFormat = {
  secretForm: 'signing secret',
  secretExample: 'nQp4vX7tRk2cYw9sLb5m',
  createAuthenticate: createAuthenticateBy(parseTextSecret, authenticateBySignature),
  authenticatesByHeader: false,
  isEndpointTest: isWebhookTest,
  read: ({ body }) => readMailerSendEvents(parseJson(body)),
  storeFailureStatus: 503,
  table: [
    { type: 'activity.hard_bounced', meaning: 'hard', sample: 'hard-bounced.json' },
    { type: 'activity.soft_bounced', meaning: 'soft', sample: 'soft-bounced.json' },
    { type: 'activity.spam_complaint', meaning: 'complaint', sample: 'spam-complaint.json' },
    { type: 'activity.unsubscribed', meaning: 'unsubscribed', sample: 'unsubscribed.json' },
    { type: 'activity.suppressed', meaning: 'provider-suppressed', sample: 'suppressed.json' },
    { type: 'activity.deferred', meaning: 'deferred', sample: 'deferred.json' },
    { type: 'activity.delivered', meaning: 'delivered', sample: 'delivered.json' },
    { type: 'activity.delivered, recipient in data.email', meaning: 'delivered', sample: 'reference-email.json' },
    { type: 'activity.hard_bounced, version 1.0', meaning: 'hard', sample: 'v1-hard-bounced.json' },
    { type: 'activity.soft_bounced, version 1.0', meaning: 'soft', sample: 'v1-soft-bounced.json' },
    { type: 'activity.spam_complaint, version 1.0', meaning: 'complaint', sample: 'v1-spam-complaint.json' },
    { type: 'activity.unsubscribed, version 1.0', meaning: 'unsubscribed', sample: 'v1-unsubscribed.json' },
    { type: 'activity.delivered, version 1.0', meaning: 'delivered', sample: 'v1-delivered.json' },
    { type: 'activity.sent, version 1.0', meaning: 'ignored', sample: 'v1-sent.json' },
    { type: 'activity.sent', meaning: 'ignored', sample: 'sent.json' },
    { type: 'activity.opened', meaning: 'ignored', sample: 'opened.json' },
    { type: 'activity.opened_unique', meaning: 'ignored', sample: 'opened-unique.json' },
    { type: 'activity.clicked', meaning: 'ignored', sample: 'clicked.json' },
    { type: 'activity.clicked_unique', meaning: 'ignored', sample: 'clicked-unique.json' },
    { type: 'activity.survey_opened', meaning: 'ignored', sample: 'survey-opened.json' },
    { type: 'activity.survey_submitted', meaning: 'ignored', sample: 'survey-submitted.json' },
    { type: 'recipient.on_hold_added', meaning: 'ignored', sample: 'on-hold-added.json' },
    { type: 'recipient.on_hold_removed', meaning: 'ignored', sample: 'on-hold-removed.json' },
    { type: 'maintenance.start', meaning: 'ignored', sample: 'maintenance-start.json' },
    { type: 'inbound.message', meaning: 'ignored', sample: 'inbound-message.json' },
    { type: 'webhook.test', meaning: 'ignored', sample: 'webhook-test.json' },
  ],
  sources: ['https://developers.mailersend.com/api/v1/webhooks.html', 'https://www.mailersend.com/help/webhooks'],
};

function readMailerSendEvents(value: unknown): ReadResult {
  const body = toObject(value);
  if (body === null) return { kind: 'broken', reason: 'the body is not a JSON object' };
  const type = toText(body.type);
  if (type === null) return { kind: 'broken', reason: 'the body has no type' };
  const meaning = rowOf(EVENT_TYPES, type);
  if (meaning === undefined) return { ...NO_EVENTS, ignored: 1 };
  const data = toObject(body.data);
  if (data === null) return { kind: 'broken', reason: 'the event has no data' };
  const fact = createFact(meaning, diagnosisOf(data));
  if (fact === null) return { ...NO_EVENTS, ignored: 1 };
  const id = toId(data.id);
  const event: ProviderEvent = {
    type,
    key: id === null ? digestOf(body) : `${type}/${id}`,
    messageId: null,
    ...addresseeOf(data),
    at: timeOfIsoText(data.created_at) ?? timeOfIsoText(body.created_at),
    fact,
  };
  return { kind: 'events', events: [event], ignored: 0, broken: 0 };
}

/** Returns the provider's id of the message and the recipient. The reply of the relay contains the same id. */
function addresseeOf(data: Json): Pick<ProviderEvent, 'reference' | 'recipient'> {
  const email = toObject(data.email);
  if (email !== null)
    return { reference: toId(toObject(email.message)?.id), recipient: toText(toObject(email.recipient)?.email) };
  // The API reference of version 2.0 documents the member `email`, but requests contain `recipient`.
  return { reference: toId(data.message_id), recipient: toText(data.recipient) ?? toText(data.email) };
}

/**
 * Returns the diagnosis. It is in `data.morph` in version 1.0 and in `data.meta` in version 2.0. `data.meta` is an
 * empty array if there is no diagnosis.
 */
function diagnosisOf(data: Json): Diagnosis {
  const morph = toObject(data.morph);
  const meta = toObject(data.meta);
  const reason =
    toText(morph?.readable_reason) ??
    toText(morph?.reason) ??
    REASON_MEMBERS.reduce<string | null>((found, member) => found ?? toText(meta?.[member]), null);
  const code = toText(meta?.bounce_code);
  const diagnostic =
    code === null || reason?.startsWith(code) === true ? reason : [code, reason ?? ''].join(' ').trim();
  return { status: null, diagnostic, host: null };
}

/**
 * Reads versions 1.0 and 2.0 of the webhooks of MailerSend. The type is in `type`. In version 1.0, `data.email` is an
 * object that contains the message and the recipient. MailerSend discontinues version 1.0 on 2026-12-01.
 * https://developers.mailersend.com/api/v1/webhooks.html, https://www.mailersend.com/help/webhooks
 */
import { createAuthenticatorFactory, parseTextSecret } from '../authentication.ts';
import { readObject } from '../batch.ts';
import { createEventReader } from '../event-shape.ts';
import { getMember, type Json, parseJson, toId, toObject, toText } from '../json.ts';
import type { EventFormat } from '../provider.ts';
import { authenticateBySignature, isEndpointTest } from './signature.ts';

/** The members of `data.meta` that contain the reason. An event has at most one of these members. */
const REASON_MEMBERS: readonly string[] = [
  'bounce_reason',
  'suppression_reason',
  'reject_reason',
  'unsubscribe_reason',
];

const readMailerSendEvent = createEventReader({
  sources: {
    type: ['type'],
    key: [createKey],
    // Both members contain the id that is also in the reply of the relay. `data.email` is an object in version 1.0.
    reference: ['data.email.message.id', 'data.message_id'],
    // The API reference of version 2.0 documents the member `email`, but requests contain `recipient`.
    recipient: ['data.email.recipient.email', 'data.recipient', 'data.email'],
    at: ['data.created_at', 'created_at'],
    diagnostic: ['data.morph.readable_reason', 'data.morph.reason', joinReason],
  },
  meanings: {
    'activity.hard_bounced': 'hard',
    'activity.soft_bounced': 'soft',
    'activity.spam_complaint': 'complaint',
    'activity.unsubscribed': 'unsubscribed',
    'activity.suppressed': 'provider-suppressed',
    'activity.deferred': 'deferred',
    'activity.delivered': 'delivered',
  },
  requiredObject: 'data',
});

export const MAILERSEND_EVENTS: EventFormat = {
  secretForm: 'signing secret',
  secretExample: 'nQp4vX7tRk2cYw9sLb5m',
  createAuthenticator: createAuthenticatorFactory(parseTextSecret, authenticateBySignature),
  authenticatesByHeader: false,
  isEndpointTest,
  read: ({ body }) => readObject(parseJson(body), readMailerSendEvent),
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

/**
 * Returns the key of the event, or null if the event has no id. The key contains the type, because the events of one
 * message have the same `data.id`.
 */
function createKey(event: Json): string | null {
  const id = toId(getMember(getMember(event, 'data'), 'id'));
  return id === null ? null : `${toText(event.type)}/${id}`;
}

/** Returns the reason in `data.meta`, or null. `data.meta` is an empty array if there is no reason. */
function joinReason(event: Json): string | null {
  const meta = toObject(getMember(getMember(event, 'data'), 'meta'));
  const reason = REASON_MEMBERS.map((member) => toText(meta?.[member])).find((text) => text !== null) ?? null;
  const code = toText(meta?.bounce_code);
  return code === null || reason?.startsWith(code) === true ? reason : [code, reason ?? ''].join(' ').trim();
}

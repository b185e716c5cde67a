/**
 * Reads the webhooks of Resend. The member `type` contains the type of an event. `data.bounce.type` contains the class
 * of a bounce, as in Amazon SES.
 * https://resend.com/docs/webhooks/event-types and the pages below it.
 */
import { createAuthenticatorFactory } from '../authentication.ts';
import { type MemberResult, readObject } from '../batch.ts';
import type { EventMeaning } from '../event.ts';
import { createEventReader } from '../event-shape.ts';
import { findRow, getMember, type Json, parseJson, toId, toList, toObject, toText, unwrapSingle } from '../json.ts';
import type { EventFormat, EventTableRow } from '../provider.ts';
import { ID_FIELD } from './profile.ts';
import { authenticateBySvix, parseWebhookSecret } from './signature.ts';

/** The meaning of each `bounce.type`. https://resend.com/docs/dashboard/emails/email-bounces */
const BOUNCE_TYPES: Readonly<Record<string, EventMeaning>> = {
  Permanent: 'hard',
  Transient: 'soft',
  Undetermined: 'soft',
};

/** The values of `bounce.subType` for a message that was not sent, because the recipient is on a suppression list. */
const LIST_SUB_TYPES: readonly (string | null)[] = ['Suppressed', 'OnAccountSuppressionList'];

const readEvent = createEventReader({
  sources: {
    type: ['type'],
    subtypes: ['data.bounce.type'],
    messageId: [findIdField, 'data.message_id'],
    reference: ['data.email_id'],
    recipient: [(event) => toList(getMember(getMember(event, 'data'), 'to'))[0]],
    at: ['created_at'],
    diagnostic: [
      (event) => toList(readBounce(event)?.diagnosticCode)[0],
      'data.bounce.message',
      'data.failed.reason',
      'data.suppressed.message',
    ],
  },
  // Types that are not listed here are ignored.
  meanings: {
    'email.bounced': decideBounceMeaning,
    'email.failed': 'block',
    'email.complained': 'complaint',
    'email.suppressed': 'provider-suppressed',
    'email.delivery_delayed': 'deferred',
    'email.delivered': 'delivered',
  },
  requiredObject: 'data',
});

/** The documented types of events that Postrider ignores. */
const IGNORED_ROWS: readonly EventTableRow[] = [
  { type: 'email.sent', meaning: 'ignored', sample: 'email-sent.json' },
  { type: 'email.scheduled', meaning: 'ignored', sample: 'email-scheduled.json' },
  { type: 'email.opened', meaning: 'ignored', sample: 'email-opened.json' },
  { type: 'email.clicked', meaning: 'ignored', sample: 'email-clicked.json' },
  { type: 'email.received', meaning: 'ignored', sample: 'email-received.json' },
  { type: 'suppression.added', meaning: 'ignored', sample: 'suppression-added.json' },
  { type: 'suppression.removed', meaning: 'ignored', sample: 'suppression-removed.json' },
  { type: 'contact.created', meaning: 'ignored', sample: 'contact-created.json' },
  { type: 'contact.updated', meaning: 'ignored', sample: 'contact-updated.json' },
  { type: 'contact.deleted', meaning: 'ignored', sample: 'contact-deleted.json' },
  { type: 'domain.created', meaning: 'ignored', sample: 'domain-created.json' },
  { type: 'domain.updated', meaning: 'ignored', sample: 'domain-updated.json' },
  { type: 'domain.deleted', meaning: 'ignored', sample: 'domain-deleted.json' },
];

export const RESEND_EVENTS: EventFormat = {
  secretForm: 'whsec_, followed by a key in base64',
  secretExample: 'whsec_cG9zdHJpZGVyIGV4YW1wbGUga2V5',
  createAuthenticator: createAuthenticatorFactory(parseWebhookSecret, authenticateBySvix),
  authenticatesByHeader: false,
  read: ({ headers, body }) => readObject(parseJson(body), (event) => readResendEvent(event, toId(headers['svix-id']))),
  storeFailureStatus: 503,
  table: [
    { type: 'email.bounced, bounce.type Permanent', meaning: 'hard', sample: 'bounced-permanent.json' },
    { type: 'email.bounced, bounce.type Transient', meaning: 'soft', sample: 'bounced-transient.json' },
    { type: 'email.bounced, bounce.type Undetermined', meaning: 'soft', sample: 'bounced-undetermined.json' },
    {
      type: 'email.bounced, bounce.subType Suppressed',
      meaning: 'provider-suppressed',
      sample: 'bounced-suppressed.json',
    },
    {
      type: 'email.bounced, bounce.subType OnAccountSuppressionList',
      meaning: 'provider-suppressed',
      sample: 'bounced-on-account-list.json',
    },
    { type: 'email.bounced without bounce.type, hard bounce', meaning: 'hard', sample: 'bounced-old-hard.json' },
    { type: 'email.bounced without bounce.type, another bounce', meaning: 'by-text', sample: 'bounced-old-full.json' },
    {
      type: 'email.bounced without bounce.type, suppressed',
      meaning: 'provider-suppressed',
      sample: 'bounced-old-suppressed.json',
    },
    { type: 'email.failed', meaning: 'block', sample: 'email-failed.json' },
    { type: 'email.complained', meaning: 'complaint', sample: 'email-complained.json' },
    { type: 'email.suppressed', meaning: 'provider-suppressed', sample: 'email-suppressed.json' },
    { type: 'email.delivery_delayed', meaning: 'deferred', sample: 'email-delivery-delayed.json' },
    { type: 'email.delivered', meaning: 'delivered', sample: 'email-delivered.json' },
    ...IGNORED_ROWS,
  ],
  sources: [
    'https://resend.com/docs/webhooks/event-types',
    'https://resend.com/docs/webhooks/emails/bounced',
    'https://resend.com/docs/webhooks/emails/suppressed',
    'https://resend.com/docs/webhooks/retries-and-replays',
  ],
};

function readResendEvent(body: Json, webhookId: string | null): MemberResult {
  const event = readEvent(body);
  if (typeof event === 'string') return event;
  // Each message of Postrider has one recipient. An event with several recipients does not name the recipient that it
  // concerns.
  if (toList(getMember(getMember(body, 'data'), 'to')).length > 1) return 'ignored';
  // All repetitions of a webhook have the same id. https://resend.com/docs/webhooks/retries-and-replays
  return webhookId === null ? event : { ...event, key: webhookId };
}

/** Returns the value of the header field `X-Postrider-Id`, or null. Not every event contains the header fields. */
function findIdField(event: Json): unknown {
  const fields = toList(getMember(getMember(event, 'data'), 'headers'))
    .map(unwrapSingle)
    .map(toObject);
  return fields.find((field) => toText(field?.name)?.toLowerCase() === ID_FIELD.toLowerCase())?.value;
}

function readBounce(event: Json): Json | null {
  return toObject(getMember(getMember(event, 'data'), 'bounce'));
}

/** Returns the meaning of a bounce. https://resend.com/docs/webhooks/emails/bounced */
function decideBounceMeaning(event: Json): EventMeaning {
  const bounce = readBounce(event);
  if (LIST_SUB_TYPES.includes(toText(bounce?.subType))) return 'provider-suppressed';
  const type = toText(bounce?.type);
  return type === null
    ? decideUntypedBounceMeaning(toText(bounce?.message) ?? '')
    : (findRow(BOUNCE_TYPES, type) ?? 'by-text');
}

/**
 * Returns the meaning of a bounce without `bounce.type`. Such a bounce reports its class only by a fixed sentence in
 * `bounce.message`.
 */
function decideUntypedBounceMeaning(message: string): EventMeaning {
  if (message.includes('suppressed sending')) return 'provider-suppressed';
  return message.includes('hard bounce') ? 'hard' : 'by-text';
}

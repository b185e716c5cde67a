/**
 * Reads the webhooks of Resend. The type is in `type`. `data.bounce.type` contains the class of a bounce, as in Amazon
 * SES.
 * https://resend.com/docs/webhooks/event-types and the pages below it.
 */
import { createAuthenticateBy } from '../authentication.ts';
import {
  createFact,
  type Diagnosis,
  type EventMeaning,
  NO_EVENTS,
  type ProviderEvent,
  type ProviderFact,
  type ReadResult,
} from '../event.ts';
import {
  digestOf,
  type Json,
  messageIdOfHeader,
  parseJson,
  rowOf,
  timeOfIsoText,
  toId,
  toList,
  toMessageId,
  toObject,
  toText,
} from '../json.ts';
import type { EventFormat, EventTableRow } from '../provider.ts';
import { ID_FIELD } from './profile.ts';
import { authenticateBySvix, parseWebhookSecret } from './signature.ts';

/** The meaning of each type. The meaning of `email.bounced` depends on the bounce. Other types are ignored. */
const EVENT_TYPES: Readonly<Record<string, EventMeaning | 'by-bounce'>> = {
  'email.bounced': 'by-bounce',
  'email.failed': 'block',
  'email.complained': 'complaint',
  'email.suppressed': 'provider-suppressed',
  'email.delivery_delayed': 'deferred',
  'email.delivered': 'delivered',
};

/** The meaning of each `bounce.type`. https://resend.com/docs/dashboard/emails/email-bounces */
const BOUNCE_TYPES: Readonly<Record<string, EventMeaning>> = {
  Permanent: 'hard',
  Transient: 'soft',
  Undetermined: 'soft',
};

/** The values of `bounce.subType` for a message that was not sent, because the recipient is on a suppression list. */
const LIST_SUB_TYPES: readonly (string | null)[] = ['Suppressed', 'OnAccountSuppressionList'];

/** Types that have no meaning for Postrider. */
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
  secretForm: 'whsec_ and a key in base64',
  secretExample: 'whsec_cG9zdHJpZGVyIGV4YW1wbGUga2V5',
  createAuthenticate: createAuthenticateBy(parseWebhookSecret, authenticateBySvix),
  authenticatesByHeader: false,
  read: ({ headers, body }) => readResendEvents(parseJson(body), toId(headers['svix-id'])),
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

function readResendEvents(value: unknown, webhookId: string | null): ReadResult {
  const body = toObject(value);
  if (body === null) return { kind: 'broken', reason: 'the body is not a JSON object' };
  const type = toText(body.type);
  if (type === null) return { kind: 'broken', reason: 'the body has no type' };
  const meaning = rowOf(EVENT_TYPES, type);
  if (meaning === undefined) return { ...NO_EVENTS, ignored: 1 };
  const data = toObject(body.data);
  if (data === null) return { kind: 'broken', reason: 'the event has no data' };
  // Each message of Postrider has one recipient. An event with several recipients does not name the recipient that it
  // concerns.
  if (toList(data.to).length > 1) return { ...NO_EVENTS, ignored: 1 };
  const fact = meaning === 'by-bounce' ? factOfBounce(toObject(data.bounce) ?? {}) : factOf(meaning, data);
  if (fact === null) return { ...NO_EVENTS, ignored: 1 };
  const event: ProviderEvent = {
    type: typeOf(type, data),
    // A repeated webhook has the same id. https://resend.com/docs/webhooks/retries-and-replays
    key: webhookId ?? digestOf(body),
    messageId: messageIdOf(data),
    reference: toId(data.email_id),
    recipient: toText(toList(data.to)[0]),
    at: timeOfIsoText(body.created_at),
    fact,
  };
  return { kind: 'events', events: [event], ignored: 0, broken: 0 };
}

/**
 * Returns the message id in the header field `X-Postrider-Id`, otherwise in the Message-ID, otherwise null. Not every
 * event contains the header fields.
 */
function messageIdOf(data: Json): string | null {
  for (const item of toList(data.headers)) {
    const field = toObject(item);
    if (toText(field?.name)?.toLowerCase() !== ID_FIELD.toLowerCase()) continue;
    const id = toMessageId(field?.value);
    if (id !== null) return id;
  }
  return messageIdOfHeader(data.message_id);
}

function typeOf(type: string, data: Json): string {
  const bounceType = toText(toObject(data.bounce)?.type);
  return bounceType === null ? type : `${type}/${bounceType}`;
}

/**
 * Returns the fact of a bounce, or null if Postrider ignores the bounce.
 * https://resend.com/docs/webhooks/emails/bounced
 */
function factOfBounce(bounce: Json): ProviderFact | null {
  const message = toText(bounce.message);
  const diagnosis = diagnosisOf(toText(toList(bounce.diagnosticCode)[0]) ?? message);
  if (LIST_SUB_TYPES.includes(toText(bounce.subType))) return createFact('provider-suppressed', diagnosis);
  const type = toText(bounce.type);
  return createFact(
    type === null ? meaningOfOldBounce(message ?? '') : (rowOf(BOUNCE_TYPES, type) ?? 'by-text'),
    diagnosis,
  );
}

/**
 * Returns the meaning of a bounce without `bounce.type`. Only a fixed sentence in `bounce.message` reports its class.
 */
function meaningOfOldBounce(message: string): EventMeaning {
  if (message.includes('suppressed sending')) return 'provider-suppressed';
  return message.includes('hard bounce') ? 'hard' : 'by-text';
}

function factOf(meaning: EventMeaning, data: Json): ProviderFact | null {
  const reason = toText(toObject(data.failed)?.reason);
  return createFact(meaning, diagnosisOf(reason ?? toText(toObject(data.suppressed)?.message)));
}

function diagnosisOf(diagnostic: string | null): Diagnosis {
  return { status: null, diagnostic, host: null };
}

/** `data.bounce.type` is as in Amazon SES. https://resend.com/docs/webhooks/event-types and the pages below it. */
import { createHmac } from 'node:crypto';
import { equalsInConstantTime } from '../model/credentials.ts';
import { nameRules, ROUTE_QUOTA, ROUTE_THROTTLED, SENDER_FAULT } from '../model/failure.ts';
import {
  AUTHENTICATED,
  createAuthenticatorFactory,
  createRefusal,
  matchesAny,
  type ParsedSecret,
} from './authentication.ts';
import {
  type AuthenticationResult,
  createEventReader,
  type EventMeaning,
  type MemberResult,
  type ProviderRequest,
  readObject,
} from './event-reader.ts';
import {
  findRow,
  getMember,
  type Json,
  parseJson,
  toId,
  toList,
  toNumber,
  toObject,
  toText,
  unwrapSingle,
} from './json.ts';
import { type Provider, RELAY_DEFAULTS } from './provider.ts';

/** https://resend.com/docs/dashboard/emails/email-bounces */
const BOUNCE_TYPES: Readonly<Record<string, EventMeaning>> = {
  Permanent: 'hard',
  Transient: 'soft',
  Undetermined: 'soft',
};

const LIST_SUB_TYPES: readonly (string | null)[] = ['Suppressed', 'OnAccountSuppressionList'];

const readEvent = createEventReader({
  sources: {
    type: ['type'],
    subtypes: ['data.bounce.type'],
    messageId: [findIdField, 'data.message_id'],
    reference: ['data.email_id'],
    recipient: [(event) => toList(getMember(getMember(event, 'data'), 'to'))[0]],
    diagnostic: [
      (event) => toList(readBounce(event)?.diagnosticCode)[0],
      'data.bounce.message',
      'data.failed.reason',
      'data.suppressed.message',
    ],
  },
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

export const RESEND: Provider = {
  name: 'resend',
  title: 'Resend',
  // https://resend.com/docs/send-with-smtp
  // https://resend.com/docs/dashboard/domains/introduction
  // https://resend.com/docs/dashboard/emails/attachments
  relay: {
    ...RELAY_DEFAULTS,
    hosts: ['smtp.resend.com'],
    metadata: (messageId) => [{ name: ID_FIELD, value: messageId }],
    keepsEnvelopeSender: false,
    maxMessageBytes: 40 * 1024 * 1024,
    // The SPF record is at a subdomain of the sending domain. The relay replies with the error texts of the API (public
    // logs); the codes for exceeded limits are not documented. https://resend.com/docs/api-reference/errors
    replies: nameRules({
      'domain of the sender not verified': { phrases: ['domain is not verified'], verdict: SENDER_FAULT },
      'recipient not allowed before a domain is verified': {
        phrases: ['you can only send testing emails to your own email address'],
        verdict: SENDER_FAULT,
      },
      'rate limit of the team exceeded': {
        phrases: ['you can only make', 'too many requests'],
        verdict: ROUTE_THROTTLED,
      },
      'quota of the team used up': {
        phrases: [
          'you have reached your daily email sending quota',
          'you have reached your monthly email sending quota',
        ],
        verdict: ROUTE_QUOTA,
      },
    }),
  },
  events: {
    secretForm: 'whsec_, followed by a key in base64',
    secretExample: 'whsec_cG9zdHJpZGVyIGV4YW1wbGUga2V5',
    createAuthenticator: createAuthenticatorFactory(parseWebhookSecret, authenticateBySvix),
    read: ({ headers, body }) =>
      readObject(parseJson(body), (event) => readResendEvent(event, toId(headers['svix-id']))),
  },
};

function readResendEvent(body: Json, webhookId: string | null): MemberResult {
  const event = readEvent(body);
  if (typeof event === 'string') return event;
  // A message of Postrider has one recipient, and the event does not name the one that it concerns.
  if (toList(getMember(getMember(body, 'data'), 'to')).length > 1) return 'ignored';
  // All repetitions of a webhook have the same id. https://resend.com/docs/webhooks/retries-and-replays
  return webhookId === null ? event : { ...event, key: webhookId };
}

function findIdField(event: Json): unknown {
  const fields = toList(getMember(getMember(event, 'data'), 'headers'))
    .map(unwrapSingle)
    .map(toObject);
  return fields.find((field) => toText(field?.name)?.toLowerCase() === ID_FIELD.toLowerCase())?.value;
}

function readBounce(event: Json): Json | null {
  return toObject(getMember(getMember(event, 'data'), 'bounce'));
}

/** https://resend.com/docs/webhooks/emails/bounced */
function decideBounceMeaning(event: Json): EventMeaning {
  const bounce = readBounce(event);
  if (LIST_SUB_TYPES.includes(toText(bounce?.subType))) return 'provider-suppressed';
  const type = toText(bounce?.type);
  return type === null
    ? decideUntypedBounceMeaning(toText(bounce?.message) ?? '')
    : (findRow(BOUNCE_TYPES, type) ?? 'by-text');
}

/** A fixed sentence is all that reports the class. */
function decideUntypedBounceMeaning(message: string): EventMeaning {
  if (message.includes('suppressed sending')) return 'provider-suppressed';
  return message.includes('hard bounce') ? 'hard' : 'by-text';
}

/**
 * https://resend.com/docs/webhooks/verify-webhooks-requests,
 * https://docs.svix.com/receiving/verifying-payloads/how-manual
 */
const SECRET_PREFIX = 'whsec_';
const MIN_KEY_BYTES = 16;
const MAX_CLOCK_DIFFERENCE_SECONDS = 300;

function parseWebhookSecret(text: string): ParsedSecret<Buffer> {
  if (!text.startsWith(SECRET_PREFIX))
    return { ok: false, fault: `the secret does not begin with ${SECRET_PREFIX}; copy it from Resend` };
  const encodedKey = text.slice(SECRET_PREFIX.length);
  const key = Buffer.from(encodedKey, 'base64');
  if (key.toString('base64') !== encodedKey || key.length < MIN_KEY_BYTES)
    return { ok: false, fault: `the text after ${SECRET_PREFIX} is not a key in base64; copy the secret from Resend` };
  return { ok: true, secret: key };
}

function authenticateBySvix(
  { headers, body }: ProviderRequest,
  keys: readonly Buffer[],
  now: number,
): AuthenticationResult {
  const { 'svix-id': id, 'svix-timestamp': timestamp, 'svix-signature': signatures } = headers;
  if (id === undefined || timestamp === undefined || signatures === undefined)
    return createRefusal('the request lacks one of the header fields svix-id, svix-timestamp and svix-signature');
  const content = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body]);
  const requestSignatures = signatures.split(' ');
  const isSigned = matchesAny(keys, (key) => {
    const expectedSignature = `v1,${createHmac('sha256', key).update(content).digest('base64')}`;
    return matchesAny(requestSignatures, (signature) => equalsInConstantTime(expectedSignature, signature));
  });
  if (!isSigned) return createRefusal('the signature is invalid');
  const seconds = toNumber(timestamp);
  if (seconds === null || Math.abs(now / 1000 - seconds) > MAX_CLOCK_DIFFERENCE_SECONDS)
    return createRefusal('the timestamp of the signature differs from the clock by more than 5 minutes');
  return AUTHENTICATED;
}

/** Resend has no field for metadata, but returns custom header fields in its events. */
const ID_FIELD = 'X-Postrider-Id';

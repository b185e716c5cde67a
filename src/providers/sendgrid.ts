/** https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/event */
import { CONFIGURATION_FAULT, nameRules, ROUTE_QUOTA, SENDER_FAULT } from '../model/failure.ts';
import { MESSAGE_ID_TAG } from '../model/feedback.ts';
import {
  AUTHENTICATED,
  createAuthenticatorFactory,
  createRefusal,
  isSignedBy,
  matchesAny,
  type ParsedSecret,
  type PublicKey,
  parsePublicKey,
} from './authentication.ts';
import {
  type AuthenticationResult,
  createEventReader,
  type EventMeaning,
  type ProviderRequest,
  readObjectOrArray,
} from './event-reader.ts';
import { findRow, type Json, parseJson, parseUnixSeconds, toText } from './json.ts';
import { type Provider, RELAY_DEFAULTS } from './provider.ts';

const SIGNATURE_FIELD = 'x-twilio-email-event-webhook-signature';
const TIMESTAMP_FIELD = 'x-twilio-email-event-webhook-timestamp';

/** SendGrid repeats an event for up to 24 hours, and does not document whether with a new timestamp. */
const MAX_CLOCK_DIFFERENCE_MS = 25 * 3_600_000;

/** A message expires after 72 hours of temporary failures. */
const BOUNCE_TYPES: Readonly<Record<string, EventMeaning>> = {
  bounce: 'hard',
  blocked: 'block',
  expired: 'soft',
};

/** In lower case, of a dropped message. `invalid` does not say why the recipient is listed. */
const LIST_REASONS: readonly (string | null)[] = [
  'bounced address',
  'spam reporting address',
  'unsubscribed address',
  'invalid',
];

const SPAM_CONTENT_REASON = 'spam content';

const readSendgridEvent = createEventReader({
  sources: {
    type: ['event'],
    // Events that are not bounces can have a member `type` that does not concern the delivery.
    subtypes: [({ event, type }) => (toText(event) === 'bounce' ? type : null)],
    key: ['sg_event_id'],
    // The event of an asynchronous bounce can lack the unique arguments.
    messageId: [MESSAGE_ID_TAG, 'unique_args', 'smtp-id'],
    reference: ['sg_message_id'],
    recipient: ['email'],
    status: ['status'],
    diagnostic: ['response', 'reason'],
    // `ip` is an address of SendGrid and not of the receiving server.
    host: [],
  },
  meanings: {
    bounce: ({ type }) => findRow(BOUNCE_TYPES, toText(type)) ?? 'by-text',
    dropped: decideDropMeaning,
    processed: 'ignored',
    deferred: 'deferred',
    delivered: 'delivered',
    spamreport: 'complaint',
    unsubscribe: 'unsubscribed',
    group_unsubscribe: 'unsubscribed',
    group_resubscribe: 'reactivated',
    open: 'ignored',
    click: 'ignored',
    account_status_change: 'ignored',
  },
  hasListReason: (event) => readDropReason(event) !== 'invalid',
});

export const SENDGRID: Provider = {
  name: 'sendgrid',
  title: 'SendGrid',
  // https://www.twilio.com/docs/sendgrid/for-developers/sending-email/integrating-with-the-smtp-api
  // https://www.twilio.com/docs/sendgrid/for-developers/sending-email/building-an-x-smtpapi-header
  // https://www.twilio.com/docs/sendgrid/for-developers/sending-email/unique-arguments
  // https://www.twilio.com/docs/sendgrid/api-reference/mail-send/limitations
  // https://docs.sendgrid.com/for-developers/sending-email/integrating-with-the-smtp-api
  relay: {
    ...RELAY_DEFAULTS,
    hosts: ['smtp.sendgrid.net'],
    metadata: (messageId) => [
      { name: 'X-SMTPAPI', value: JSON.stringify({ unique_args: { [MESSAGE_ID_TAG]: messageId } }) },
    ],
    maxMessageBytes: 30 * 1024 * 1024,
    // The documented limits (10,000 connections, 5,000 messages each) exceed those for all relays.
    // https://sendgrid.com/docs/for-developers/sending-email/smtp-errors-and-troubleshooting/
    // https://github.com/sahat/hackathon-starter/issues/1083
    // https://github.com/sendgrid/docs/issues/6473
    replies: nameRules({
      'credits used up': {
        stages: ['auth'],
        phrases: ['maximum credits exceeded'],
        // The relay refuses the authentication until the plan renews or an operator buys credits.
        verdict: ROUTE_QUOTA,
      },
      'not signed in': { phrases: ['unauthenticated senders not allowed'], verdict: CONFIGURATION_FAULT },
      'sender not verified': { phrases: ['does not match a verified sender identity'], verdict: SENDER_FAULT },
      'sender not authorized': {
        codes: [403],
        phrases: ['you are not authorized to send from that email address'],
        verdict: SENDER_FAULT,
      },
    }),
  },
  events: {
    secretForm: 'PUBLIC-KEY (base64 DER)',
    secretExample:
      'MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE3ZYTAp6H1YjGSr/CSTB/d2HTBn2OZqFbhqhsq6yin7N/mZwCEavsKpCiZhJfQs8zT6U3Ct1i6qH7STPV6zBrsg==',
    createAuthenticator: createAuthenticatorFactory(parseVerificationKey, authenticateSendgrid),
    read: ({ body }) => readObjectOrArray(parseJson(body), readSendgridEvent),
  },
};

function parseVerificationKey(text: string): ParsedSecret<PublicKey> {
  const parsedKey = parsePublicKey(text, 'ec');
  return parsedKey.ok && parsedKey.secret.asymmetricKeyDetails?.namedCurve !== 'prime256v1'
    ? { ok: false, fault: 'the key is not on the curve P-256; copy the verification key of the Event Webhook' }
    : parsedKey;
}

/**
 * https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/getting-started-event-webhook-security-features
 */
function authenticateSendgrid(
  { headers, body }: ProviderRequest,
  keys: readonly PublicKey[],
  now: number,
): AuthenticationResult {
  const [signature, timestamp] = [headers[SIGNATURE_FIELD], headers[TIMESTAMP_FIELD]];
  if (signature === undefined) return createRefusal('the request has no signature');
  const at = parseUnixSeconds(timestamp);
  if (timestamp === undefined || at === null) return createRefusal('the request has no valid timestamp');
  const content = Buffer.concat([Buffer.from(timestamp), body]);
  if (!matchesAny(keys, (key) => isSignedBy(key, 'sha256', content, signature)))
    return createRefusal('the signature is invalid');
  return Math.abs(now - at) > MAX_CLOCK_DIFFERENCE_MS
    ? createRefusal('the timestamp differs from the clock by more than 25 hours')
    : AUTHENTICATED;
}

/** A reason that is not documented suppresses nobody. */
function decideDropMeaning(event: Json): EventMeaning {
  const reason = readDropReason(event);
  if (LIST_REASONS.includes(reason)) return 'provider-suppressed';
  return reason === SPAM_CONTENT_REASON ? 'block' : 'soft';
}

function readDropReason({ reason }: Json): string | null {
  return toText(reason)?.trim().toLowerCase() ?? null;
}

/**
 * Reads the Event Webhook of SendGrid. A body is an array of events. The type is in `event`. A bounce also has a
 * `type`, and a dropped message also has a `reason`. The unique arguments of a message are members of its events.
 * https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/event
 */

import { MESSAGE_ID_TAG } from '../../model/feedback.ts';
import {
  AUTHENTICATED,
  createAuthenticatorFactory,
  createRefusal,
  isSignedBy,
  matchesAny,
  type ParsedSecret,
  type PublicKey,
  parsePublicKey,
} from '../authentication.ts';
import { readObjectOrArray } from '../batch.ts';
import type { AuthenticationResult, EventMeaning, ProviderListReason, ProviderRequest } from '../event.ts';
import { createEventReader } from '../event-shape.ts';
import { findRow, type Json, parseJson, parseUnixSeconds, toText } from '../json.ts';
import type { EventFormat } from '../provider.ts';

/** The header fields of a signed request, in lower case. */
const SIGNATURE_FIELD = 'x-twilio-email-event-webhook-signature';
const TIMESTAMP_FIELD = 'x-twilio-email-event-webhook-timestamp';

/**
 * The maximum difference between the timestamp of a request and the clock. SendGrid repeats an event for up to 24 hours
 * until it is accepted. SendGrid does not document whether a repeated request has a new timestamp.
 */
const MAX_CLOCK_DIFFERENCE_MS = 25 * 3_600_000;

/** The meaning of each `type` of a bounce. A message expires after 72 hours of temporary failures. */
const BOUNCE_TYPES: Readonly<Record<string, EventMeaning>> = {
  bounce: 'hard',
  blocked: 'block',
  expired: 'soft',
};

/**
 * The values of `reason`, in lower case, of a message that was dropped because its recipient is on a suppression list.
 */
const LIST_REASONS: Readonly<Record<string, ProviderListReason>> = {
  'bounced address': 'bounce',
  'spam reporting address': 'complaint',
  'unsubscribed address': 'unsubscribe',
  invalid: 'unknown',
};

/** The value of `reason`, in lower case, of a message that was dropped because of its content. */
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
    at: ['timestamp'],
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
  listReason: findListReasonOfEvent,
});

export const SENDGRID_EVENTS: EventFormat = {
  secretForm: 'PUBLIC-KEY (base64 DER)',
  secretExample:
    'MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE3ZYTAp6H1YjGSr/CSTB/d2HTBn2OZqFbhqhsq6yin7N/mZwCEavsKpCiZhJfQs8zT6U3Ct1i6qH7STPV6zBrsg==',
  createAuthenticator: createAuthenticatorFactory(parseVerificationKey, authenticateSendgrid),
  authenticatesByHeader: false,
  read: ({ body }) => readObjectOrArray(parseJson(body), readSendgridEvent),
  storeFailureStatus: 503,
  table: [
    { type: 'processed', meaning: 'ignored', sample: 'processed.json' },
    { type: 'deferred', meaning: 'deferred', sample: 'deferred.json' },
    { type: 'delivered', meaning: 'delivered', sample: 'delivered.json' },
    { type: 'bounce, type bounce', meaning: 'hard', sample: 'bounce.json' },
    { type: 'bounce, type blocked', meaning: 'block', sample: 'bounce-blocked.json' },
    { type: 'bounce, type expired', meaning: 'soft', sample: 'bounce-expired.json' },
    { type: 'dropped, reason Bounced Address', meaning: 'provider-suppressed', sample: 'dropped-bounced-address.json' },
    {
      type: 'dropped, reason Spam Reporting Address',
      meaning: 'provider-suppressed',
      sample: 'dropped-spam-reporting-address.json',
    },
    {
      type: 'dropped, reason Unsubscribed Address',
      meaning: 'provider-suppressed',
      sample: 'dropped-unsubscribed-address.json',
    },
    { type: 'dropped, reason Invalid', meaning: 'provider-suppressed', sample: 'dropped-invalid.json' },
    { type: 'dropped, reason Spam Content', meaning: 'block', sample: 'dropped-spam-content.json' },
    { type: 'dropped, reason Invalid SMTPAPI header', meaning: 'soft', sample: 'dropped-invalid-smtpapi-header.json' },
    {
      type: 'dropped, reason Recipient List over Package Quota',
      meaning: 'soft',
      sample: 'dropped-over-package-quota.json',
    },
    { type: 'spamreport', meaning: 'complaint', sample: 'spamreport.json' },
    { type: 'unsubscribe', meaning: 'unsubscribed', sample: 'unsubscribe.json' },
    { type: 'group_unsubscribe', meaning: 'unsubscribed', sample: 'group-unsubscribe.json' },
    { type: 'group_resubscribe', meaning: 'reactivated', sample: 'group-resubscribe.json' },
    { type: 'open', meaning: 'ignored', sample: 'open.json' },
    { type: 'click', meaning: 'ignored', sample: 'click.json' },
    { type: 'account_status_change', meaning: 'ignored', sample: 'account-status-change.json' },
  ],
  sources: [
    'https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/event',
    'https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/getting-started-event-webhook-security-features',
    'https://www.twilio.com/docs/sendgrid/glossary/expired',
  ],
};

function parseVerificationKey(text: string): ParsedSecret<PublicKey> {
  const parsedKey = parsePublicKey(text, 'ec');
  return parsedKey.ok && parsedKey.secret.asymmetricKeyDetails?.namedCurve !== 'prime256v1'
    ? { ok: false, fault: 'the key is not on the curve P-256; copy the verification key of the Event Webhook' }
    : parsedKey;
}

/**
 * Verifies the signature, which covers the timestamp and the body, and checks the timestamp.
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

/**
 * Returns the meaning of a dropped message. If the reason is not documented, the meaning is `soft`, which suppresses no
 * recipient.
 */
function decideDropMeaning(event: Json): EventMeaning {
  if (findListReasonOfEvent(event) !== undefined) return 'provider-suppressed';
  return readDropReason(event) === SPAM_CONTENT_REASON ? 'block' : 'soft';
}

function findListReasonOfEvent(event: Json): ProviderListReason | undefined {
  return findRow(LIST_REASONS, readDropReason(event));
}

function readDropReason({ reason }: Json): string | null {
  return toText(reason)?.trim().toLowerCase() ?? null;
}

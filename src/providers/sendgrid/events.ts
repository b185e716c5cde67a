/**
 * Reads the Event Webhook of SendGrid. A body is an array of events. The type is in `event`. A bounce also has a
 * `type`, and a dropped message also has a `reason`. The unique arguments of a message are members of its events.
 * https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/event
 */
import {
  AUTHENTICATED,
  createAuthenticateBy,
  isSignedBy,
  matchesAny,
  type ParsedSecret,
  type PublicKey,
  parsePublicKey,
  refuse,
} from '../authentication.ts';
import {
  type AuthenticationResult,
  createFact,
  type Diagnosis,
  type EventMeaning,
  type ProviderEvent,
  type ProviderFact,
  type ProviderListReason,
  type ProviderRequest,
  type ReadResult,
} from '../event.ts';
import {
  digestOf,
  type Json,
  messageIdOfHeader,
  messageIdOfMetadata,
  parseJson,
  rowOf,
  timeOfUnixSeconds,
  toId,
  toList,
  toObject,
  toText,
} from '../json.ts';
import type { EventFormat } from '../provider.ts';

/** The header fields of a signed request, in lower case. */
const SIGNATURE_FIELD = 'x-twilio-email-event-webhook-signature';
const TIMESTAMP_FIELD = 'x-twilio-email-event-webhook-timestamp';

/**
 * The maximum difference between the timestamp and the clock. SendGrid repeats an event for up to 24 hours until it is
 * accepted. SendGrid does not document whether a repeated request has a new timestamp.
 */
const WINDOW_MS = 25 * 3_600_000;

/** The meaning of each `event` other than `bounce` and `dropped`. */
const EVENT_TYPES: Readonly<Record<string, EventMeaning>> = {
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
};

/** The meaning of each `type` of a bounce. A message expires after 72 hours of temporary failures. */
const BOUNCE_TYPES: Readonly<Record<string, EventMeaning>> = {
  bounce: 'hard',
  blocked: 'block',
  expired: 'soft',
};

interface DropReason {
  readonly meaning: EventMeaning;
  readonly listReason?: ProviderListReason;
}

/** The meaning of each `reason` of a dropped message, in lower case. A reason that is not in the table suppresses no recipient. */
const DROP_REASONS: Readonly<Record<string, DropReason>> = {
  'bounced address': { meaning: 'provider-suppressed', listReason: 'bounce' },
  'spam reporting address': { meaning: 'provider-suppressed', listReason: 'complaint' },
  'unsubscribed address': { meaning: 'provider-suppressed', listReason: 'unsubscribe' },
  invalid: { meaning: 'provider-suppressed', listReason: 'unknown' },
  'spam content': { meaning: 'block' },
  'invalid smtpapi header': { meaning: 'soft' },
  'recipient list over package quota': { meaning: 'soft' },
};

export const SENDGRID_EVENTS: EventFormat = {
  secretForm: 'PUBLIC-KEY (base64 DER)',
  secretExample:
    'MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE3ZYTAp6H1YjGSr/CSTB/d2HTBn2OZqFbhqhsq6yin7N/mZwCEavsKpCiZhJfQs8zT6U3Ct1i6qH7STPV6zBrsg==',
  createAuthenticate: createAuthenticateBy(parseVerificationKey, authenticateSendgrid),
  authenticatesByHeader: false,
  read: ({ body }) => readSendgridEvents(parseJson(body)),
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
  const parsed = parsePublicKey(text, 'ec');
  return parsed.ok && parsed.secret.asymmetricKeyDetails?.namedCurve !== 'prime256v1'
    ? { ok: false, fault: 'the key is not on the curve P-256; copy the verification key of the Event Webhook' }
    : parsed;
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
  if (signature === undefined) return refuse('the request has no signature');
  const at = timeOfUnixSeconds(timestamp);
  if (timestamp === undefined || at === null) return refuse('the request has no valid timestamp');
  const content = Buffer.concat([Buffer.from(timestamp), body]);
  if (!matchesAny(keys, (key) => isSignedBy(key, 'sha256', content, signature)))
    return refuse('the signature is invalid');
  return Math.abs(now - at) > WINDOW_MS ? refuse('the timestamp is not within 25 hours') : AUTHENTICATED;
}

function readSendgridEvents(value: unknown): ReadResult {
  if (!Array.isArray(value) && toObject(value) === null)
    return { kind: 'broken', reason: 'the body is not a JSON array' };
  const events: ProviderEvent[] = [];
  let [ignored, broken] = [0, 0];
  for (const member of toList(value)) {
    const event = toObject(member);
    const type = toText(event?.event);
    const fact = event === null || type === null ? null : factOf(type, event);
    if (event === null || type === null) broken += 1;
    else if (fact === null) ignored += 1;
    else events.push(createEvent(type, event, fact));
  }
  return { kind: 'events', events, ignored, broken };
}

function createEvent(type: string, event: Json, fact: ProviderFact): ProviderEvent {
  const subtype = type === 'bounce' ? toText(event.type) : null;
  return {
    type: subtype === null ? type : `${type}/${subtype}`,
    key: toId(event.sg_event_id) ?? digestOf(event),
    // The event of a bounce that returned by mail can lack the unique arguments.
    messageId:
      messageIdOfMetadata(event) ?? messageIdOfMetadata(event.unique_args) ?? messageIdOfHeader(event['smtp-id']),
    reference: toId(event.sg_message_id),
    recipient: toText(event.email),
    at: timeOfUnixSeconds(event.timestamp),
    fact,
  };
}

/** Returns the fact of the event, or null if Postrider ignores the event. */
function factOf(type: string, event: Json): ProviderFact | null {
  const diagnosis = diagnosisOf(event);
  switch (type) {
    case 'bounce':
      return createFact(rowOf(BOUNCE_TYPES, toText(event.type)) ?? 'by-text', diagnosis);
    case 'dropped': {
      const { meaning, listReason } = rowOf(DROP_REASONS, lowerCaseOf(event.reason)) ?? { meaning: 'soft' };
      return createFact(meaning, diagnosis, listReason);
    }
    default:
      return createFact(rowOf(EVENT_TYPES, type) ?? 'ignored', diagnosis);
  }
}

function lowerCaseOf(value: unknown): string | null {
  return toText(value)?.trim().toLowerCase() ?? null;
}

/** Returns the diagnosis. The host is null, because `ip` is an address of SendGrid and not of the receiving server. */
function diagnosisOf(event: Json): Diagnosis {
  return { status: toText(event.status), diagnostic: toText(event.response) ?? toText(event.reason), host: null };
}

/**
 * Reads the webhooks of Postal. A request contains one event with the members `event`, `timestamp`, `payload` and
 * `uuid`. The documentation shows only the payload, so a body that is a bare payload is read as well. Its `status` then
 * determines the type.
 * https://docs.postalserver.io/developer/webhooks
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
  NO_EVENTS,
  type ProviderListReason,
  type ProviderRequest,
  type ReadResult,
} from '../event.ts';
import {
  digestOf,
  type Json,
  messageIdOfHeader,
  parseJson,
  rowOf,
  timeOfUnixSeconds,
  toId,
  toObject,
  toText,
} from '../json.ts';
import type { EventFormat } from '../provider.ts';

/** The meaning of each `event`. `MessageBounced` does not report the class of the bounce. */
const MEANINGS: Readonly<Record<string, EventMeaning>> = {
  MessageSent: 'delivered',
  MessageDelayed: 'deferred',
  MessageDeliveryFailed: 'by-text',
  MessageBounced: 'soft',
  MessageHeld: 'deferred',
};

/** The type of event for each `status` of a bare payload. */
const EVENTS_BY_STATUS: Readonly<Record<string, string>> = {
  Sent: 'MessageSent',
  SoftFail: 'MessageDelayed',
  HardFail: 'MessageDeliveryFailed',
  Held: 'MessageHeld',
};

/**
 * The phrase in the `details` of a message that is held because its recipient is on the suppression list, and the
 * phrases of reasons that are failures.
 */
const LIST_TEXT = 'is on the suppression list';
const FAILURE_REASONS = ['hard fail', 'soft fail', 'bounce'];

export const POSTAL_EVENTS: EventFormat = {
  secretForm: 'PUBLIC-KEY',
  secretExample:
    'MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQC/i3kAn6Dci4WO8Z3i3fa6RLuXtoo9+Us1Pj9pcqiJz2FtjsmszmrLoJZ9T0gUnijU8QQ5BNlMSeMFk40deWvkBfz/2h7leT0SWw93XDp2P014KNnk8WMrP0C6+3ZPzMAWoOSQmPZqtRAvqlhM2KkTLDJ2WLJMIDrlhFY6Gj/UlwIDAQAB',
  createAuthenticate: createAuthenticateBy(parsePostalKey, authenticateBySignature),
  authenticatesByHeader: false,
  read: ({ body }) => readPostalEvent(parseJson(body)),
  storeFailureStatus: 503,
  table: [
    { type: 'MessageDeliveryFailed', meaning: 'by-text', sample: 'message-delivery-failed.json' },
    { type: 'MessageBounced', meaning: 'soft', sample: 'message-bounced.json' },
    {
      type: 'MessageHeld, recipient on the suppression list',
      meaning: 'provider-suppressed',
      sample: 'message-held-suppression.json',
    },
    { type: 'MessageHeld, another reason', meaning: 'deferred', sample: 'message-held.json' },
    { type: 'MessageDelayed', meaning: 'deferred', sample: 'message-delayed.json' },
    { type: 'MessageSent', meaning: 'delivered', sample: 'message-sent.json' },
    { type: 'MessageSent, direction incoming', meaning: 'ignored', sample: 'message-sent-incoming.json' },
    { type: 'MessageLinkClicked', meaning: 'ignored', sample: 'message-link-clicked.json' },
    { type: 'MessageLoaded', meaning: 'ignored', sample: 'message-loaded.json' },
    { type: 'DomainDNSError', meaning: 'ignored', sample: 'domain-dns-error.json' },
    { type: 'SendLimitApproaching', meaning: 'ignored', sample: 'send-limit-approaching.json' },
    { type: 'SendLimitExceeded', meaning: 'ignored', sample: 'send-limit-exceeded.json' },
  ],
  sources: [
    'https://docs.postalserver.io/developer/webhooks',
    'https://github.com/postalserver/postal/blob/main/app/lib/signer.rb',
  ],
};

function parsePostalKey(text: string): ParsedSecret<PublicKey> {
  return parsePublicKey(text, 'rsa');
}

/**
 * Verifies the RSA signature (PKCS#1 v1.5) of the body. Postal 3.2.0 and later versions send `X-Postal-Signature-256`.
 * The SHA-1 signature in `X-Postal-Signature` is accepted only if `X-Postal-Signature-256` is absent.
 */
function authenticateBySignature({ headers, body }: ProviderRequest, keys: readonly PublicKey[]): AuthenticationResult {
  const sha256 = headers['x-postal-signature-256'];
  const signature = sha256 ?? headers['x-postal-signature'];
  if (signature === undefined) return refuse('the request has no X-Postal-Signature-256 header field');
  const algorithm = sha256 === undefined ? 'sha1' : 'sha256';
  return matchesAny(keys, (key) => isSignedBy(key, algorithm, body, signature))
    ? AUTHENTICATED
    : refuse('the signature is invalid');
}

function readPostalEvent(value: unknown): ReadResult {
  const body = toObject(value);
  if (body === null) return { kind: 'broken', reason: 'the body is not a JSON object' };
  const payload = toObject(body.payload) ?? body;
  const type = toText(body.event) ?? typeOfPayload(payload);
  if (type === null) return { kind: 'broken', reason: 'the body has no event' };
  const message = toObject(payload.message) ?? toObject(payload.original_message) ?? {};
  const messageId = messageIdOfHeader(message.message_id);
  const fact = createFact(meaningOf(type, payload), diagnosisOf(payload), listReasonOf(payload));
  // Postal identifies a message only by its Message-ID. A Message-ID without a message id of Postrider is from another
  // program.
  if (fact === null || messageId === null || message.direction === 'incoming') return { ...NO_EVENTS, ignored: 1 };
  const event = {
    type,
    key: toId(body.uuid) ?? digestOf(payload),
    messageId,
    reference: null,
    recipient: toText(message.to),
    at: timeOfUnixSeconds(payload.timestamp) ?? timeOfUnixSeconds(body.timestamp),
    fact,
  };
  return { kind: 'events', events: [event], ignored: 0, broken: 0 };
}

function typeOfPayload(payload: Json): string | null {
  if (toObject(payload.original_message) !== null && toObject(payload.bounce) !== null) return 'MessageBounced';
  return rowOf(EVENTS_BY_STATUS, toText(payload.status)) ?? null;
}

function meaningOf(type: string, payload: Json): EventMeaning {
  if (type === 'MessageHeld' && (toText(payload.details) ?? '').includes(LIST_TEXT)) return 'provider-suppressed';
  return rowOf(MEANINGS, type) ?? 'ignored';
}

/** Returns the diagnosis. `output` is the reply of the receiving server. `details` is a description by Postal. */
function diagnosisOf(payload: Json): Diagnosis {
  const bounceSubject = toText(toObject(payload.bounce)?.subject);
  return { status: null, diagnostic: toText(payload.output) ?? toText(payload.details) ?? bounceSubject, host: null };
}

/**
 * Returns the reason for the entry on the suppression list. Postal itself adds a recipient only after failures, with a
 * reason such as `too many hard fails`.
 */
function listReasonOf(payload: Json): ProviderListReason {
  const details = toText(payload.details) ?? '';
  const reason = details.slice(details.indexOf(LIST_TEXT) + LIST_TEXT.length).toLowerCase();
  return FAILURE_REASONS.some((text) => reason.includes(text)) ? 'bounce' : 'unknown';
}

/**
 * Reads the webhooks of Postal. A request contains one event with the members `event`, `timestamp`, `payload` and
 * `uuid`. The documentation shows only the payload, so a body that is a bare payload is read as well. The `status` of a
 * bare payload determines the type of the event.
 * https://docs.postalserver.io/developer/webhooks
 */
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
import { type MemberResult, readObject } from '../batch.ts';
import type { AuthenticationResult, ProviderRequest } from '../event.ts';
import { createEventReader, findListReason } from '../event-shape.ts';
import { computeDigest, findRow, getMember, type Json, parseJson, toObject, toText } from '../json.ts';
import type { EventFormat } from '../provider.ts';

/** The type of event for each `status` of a bare payload. */
const EVENTS_BY_STATUS: Readonly<Record<string, string>> = {
  Sent: 'MessageSent',
  SoftFail: 'MessageDelayed',
  HardFail: 'MessageDeliveryFailed',
  Held: 'MessageHeld',
};

/**
 * Postal holds a message if its recipient is on the suppression list of Postal. In the event about such a message,
 * `details` contains `LIST_PHRASE` and the reason for the list entry. If failures caused the entry, the reason contains
 * one of `FAILURE_PHRASES`.
 */
const LIST_PHRASE = 'is on the suppression list';
const FAILURE_PHRASES = [
  ['hard fail', 'bounce'],
  ['soft fail', 'bounce'],
  ['bounce', 'bounce'],
] as const;

/** Reads the members `body`, `type`, `payload` and `message` that `readPostalEvent` creates from a body. */
const readEvent = createEventReader({
  sources: {
    type: ['type'],
    key: ['body.uuid', ({ payload }) => computeDigest(payload)],
    messageId: ['message.message_id'],
    recipient: ['message.to'],
    at: ['payload.timestamp', 'body.timestamp'],
    // `output` is the reply of the receiving server. `details` is the description that Postal adds.
    diagnostic: ['payload.output', 'payload.details', 'payload.bounce.subject'],
  },
  meanings: {
    MessageSent: 'delivered',
    MessageDelayed: 'deferred',
    MessageDeliveryFailed: 'by-text',
    // The event does not report whether the bounce is hard or soft.
    MessageBounced: 'soft',
    MessageHeld: (event) => (findListText(event) === null ? 'deferred' : 'provider-suppressed'),
  },
  // Postal itself adds a recipient to the suppression list only after failures, with a reason such as `too many hard
  // fails`.
  listReason: (event) => findListReason(findListText(event), FAILURE_PHRASES),
});

export const POSTAL_EVENTS: EventFormat = {
  secretForm: 'PUBLIC-KEY',
  secretExample:
    'MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQC/i3kAn6Dci4WO8Z3i3fa6RLuXtoo9+Us1Pj9pcqiJz2FtjsmszmrLoJZ9T0gUnijU8QQ5BNlMSeMFk40deWvkBfz/2h7leT0SWw93XDp2P014KNnk8WMrP0C6+3ZPzMAWoOSQmPZqtRAvqlhM2KkTLDJ2WLJMIDrlhFY6Gj/UlwIDAQAB',
  createAuthenticator: createAuthenticatorFactory(parsePostalKey, authenticateBySignature),
  authenticatesByHeader: false,
  read: ({ body }) => readObject(parseJson(body), readPostalEvent),
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
  if (signature === undefined) return createRefusal('the request has no X-Postal-Signature-256 header field');
  const algorithm = sha256 === undefined ? 'sha1' : 'sha256';
  return matchesAny(keys, (key) => isSignedBy(key, algorithm, body, signature))
    ? AUTHENTICATED
    : createRefusal('the signature is invalid');
}

function readPostalEvent(body: Json): MemberResult {
  const payload = toObject(getMember(body, 'payload')) ?? body;
  const message = toObject(getMember(payload, 'message')) ?? toObject(getMember(payload, 'original_message')) ?? {};
  const event = readEvent({ body, type: toText(body.event) ?? findPayloadType(payload), payload, message });
  if (typeof event === 'string') return event;
  // Postal identifies a message only by its Message-ID. A message whose Message-ID contains no message id of Postrider
  // was sent by another program.
  return event.messageId === null || toText(message.direction) === 'incoming' ? 'ignored' : event;
}

function findPayloadType(payload: Json): string | null {
  const members = [getMember(payload, 'original_message'), getMember(payload, 'bounce')];
  if (members.every((member) => toObject(member) !== null)) return 'MessageBounced';
  return findRow(EVENTS_BY_STATUS, toText(payload.status)) ?? null;
}

/**
 * Returns the text after `LIST_PHRASE` in `details`: this text contains the reason for the list entry. Returns null if
 * `LIST_PHRASE` is absent.
 */
function findListText({ payload }: Json): string | null {
  const details = toText(toObject(payload)?.details) ?? '';
  const phraseIndex = details.indexOf(LIST_PHRASE);
  return phraseIndex < 0 ? null : details.slice(phraseIndex + LIST_PHRASE.length);
}

/** Only the payload is documented, so a bare payload is read too. https://docs.postalserver.io/developer/webhooks */
import { CONFIGURATION_FAULT, nameRules, SENDER_FAULT, SIZE_REFUSAL } from '../model/failure.ts';
import {
  AUTHENTICATED,
  createAuthenticatorFactory,
  createRefusal,
  isSignedBy,
  matchesAny,
  type PublicKey,
  parsePublicKey,
} from './authentication.ts';
import {
  type AuthenticationResult,
  containsAny,
  createEventReader,
  type MemberResult,
  type ProviderRequest,
  readObject,
} from './event-reader.ts';
import { computeDigest, findRow, getMember, type Json, parseJson, toObject, toText } from './json.ts';
import { type Provider, RELAY_DEFAULTS } from './provider.ts';

const EVENTS_BY_STATUS: Readonly<Record<string, string>> = {
  Sent: 'MessageSent',
  SoftFail: 'MessageDelayed',
  HardFail: 'MessageDeliveryFailed',
  Held: 'MessageHeld',
};

/** The reason follows in `details`; if it was failures, it contains one of these phrases. */
const LIST_PHRASE = 'is on the suppression list';
const FAILURE_PHRASES = ['hard fail', 'soft fail', 'bounce'];

const readEvent = createEventReader({
  sources: {
    type: ['type'],
    key: ['body.uuid', ({ payload }) => computeDigest(payload)],
    messageId: ['message.message_id'],
    recipient: ['message.to'],
    diagnostic: ['payload.output', 'payload.details', 'payload.bounce.subject'],
  },
  meanings: {
    MessageSent: 'delivered',
    MessageDelayed: 'deferred',
    MessageDeliveryFailed: 'by-text',
    MessageBounced: 'soft',
    MessageHeld: (event) => (findListText(event) === null ? 'deferred' : 'provider-suppressed'),
  },
  // Postal itself lists a recipient only after failures, with a reason such as `too many hard fails`.
  hasListReason: (event) => containsAny(findListText(event), FAILURE_PHRASES),
});

export const POSTAL: Provider = {
  name: 'postal',
  title: 'Postal',
  // https://docs.postalserver.io/getting-started/dns-configuration https://github.com/postalserver/postal Only
  // `?provider=postal` selects it: every installation has its own host name. Postal replaces the envelope sender.
  relay: {
    ...RELAY_DEFAULTS,
    hosts: [],
    metadata: () => [],
    keepsEnvelopeSender: false,
    // https://github.com/postalserver/postal/blob/main/app/lib/smtp_server/client.rb
    replies: nameRules({
      'domain of the sender not verified': {
        stages: ['content'],
        codes: [530],
        phrases: ['from/sender name is not valid'],
        // On other servers, the reply code 530 means `authentication required`.
        verdict: SENDER_FAULT,
      },
      'mail server suspended': {
        codes: [535],
        phrases: ['mail server has been suspended'],
        verdict: CONFIGURATION_FAULT,
      },
      'message too large': { codes: [552], phrases: ['message too large'], verdict: SIZE_REFUSAL },
    }),
  },
  events: {
    secretForm: 'PUBLIC-KEY',
    secretExample:
      'MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQC/i3kAn6Dci4WO8Z3i3fa6RLuXtoo9+Us1Pj9pcqiJz2FtjsmszmrLoJZ9T0gUnijU8QQ5BNlMSeMFk40deWvkBfz/2h7leT0SWw93XDp2P014KNnk8WMrP0C6+3ZPzMAWoOSQmPZqtRAvqlhM2KkTLDJ2WLJMIDrlhFY6Gj/UlwIDAQAB',
    createAuthenticator: createAuthenticatorFactory((text) => parsePublicKey(text, 'rsa'), authenticateBySignature),
    read: ({ body }) => readObject(parseJson(body), readPostalEvent),
  },
};

/** RSA, PKCS#1 v1.5. Versions before 3.2.0 send only the SHA-1 signature. */
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
  // Without an id of Postrider, another program sent the message.
  return event.messageId === null || toText(message.direction) === 'incoming' ? 'ignored' : event;
}

function findPayloadType(payload: Json): string | null {
  const members = [getMember(payload, 'original_message'), getMember(payload, 'bounce')];
  if (members.every((member) => toObject(member) !== null)) return 'MessageBounced';
  return findRow(EVENTS_BY_STATUS, toText(payload.status)) ?? null;
}

function findListText({ payload }: Json): string | null {
  const details = toText(toObject(payload)?.details) ?? '';
  const phraseIndex = details.indexOf(LIST_PHRASE);
  return phraseIndex < 0 ? null : details.slice(phraseIndex + LIST_PHRASE.length);
}

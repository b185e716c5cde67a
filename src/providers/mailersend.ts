/**
 * `data.email` is an object in version 1.0, which ends on 2026-12-01.
 * https://developers.mailersend.com/api/v1/webhooks.html, https://www.mailersend.com/help/webhooks
 */
import { nameRules, THROTTLED } from '../model/failure.ts';
import { createAuthenticatorFactory, createHmacAuthenticator, parseTextSecret } from './authentication.ts';
import { createEventReader, type ProviderRequest, readObject } from './event-reader.ts';
import { getMember, type Json, parseJson, toId, toObject, toText } from './json.ts';
import { type Provider, RELAY_DEFAULTS } from './provider.ts';

/** An event has at most one of these members of `data.meta`. */
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
    // Also in the reply of the relay.
    reference: ['data.email.message.id', 'data.message_id'],
    // The API reference of version 2.0 documents the member `email`, but requests contain `recipient`.
    recipient: ['data.email.recipient.email', 'data.recipient', 'data.email'],
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

const authenticateBySignature = createHmacAuthenticator('Signature', (signature) => signature.trim().toLowerCase());

export const MAILERSEND: Provider = {
  name: 'mailersend',
  title: 'MailerSend',
  // https://developers.mailersend.com/smtp-relay.html
  // https://www.mailersend.com/help/how-to-verify-and-authenticate-a-sending-domain
  // https://www.mailersend.com/help/smtp-configuration-421-error
  relay: {
    ...RELAY_DEFAULTS,
    hosts: ['smtp.mailersend.net'],
    // The events contain no header field of the message, but the id in the reply of the relay.
    metadata: () => [],
    spf: 'v=spf1 include:_spf.mailersend.net ~all',
    messagesPerConnection: 5,
    findReference: findMessageId,
    replies: nameRules({
      'too many messages on one connection': {
        codes: [421],
        // The relay accepts further messages on a new connection, so the circuit breaker stays closed.
        phrases: ['service not available'],
        verdict: THROTTLED,
        stages: ['mail', 'rcpt', 'data', 'content'],
      },
    }),
  },
  events: {
    secretForm: 'signing secret',
    secretExample: 'nQp4vX7tRk2cYw9sLb5m',
    createAuthenticator: createAuthenticatorFactory(parseTextSecret, authenticateBySignature),
    isEndpointTest,
    read: ({ body }) => readObject(parseJson(body), readMailerSendEvent),
  },
};

/** The events of one message have the same `data.id`, so the key contains the type. */
function createKey(event: Json): string | null {
  const id = toId(getMember(getMember(event, 'data'), 'id'));
  return id === null ? null : `${toText(event.type)}/${id}`;
}

/** `data.meta` is an empty array without a reason. */
function joinReason(event: Json): string | null {
  const meta = toObject(getMember(getMember(event, 'data'), 'meta'));
  const reason = REASON_MEMBERS.map((member) => toText(meta?.[member])).find((text) => text !== null) ?? null;
  const code = toText(meta?.bounce_code);
  return code === null || reason?.startsWith(code) === true ? reason : [code, reason ?? ''].join(' ').trim();
}

/** https://developers.mailersend.com/api/v1/webhooks.html#security */
/** Publicly known: signs the request `webhook.test`, which must get 2xx before the secret exists. */
const TEST_SECRET = 'test_Am3L1GuOIc4blLUuHqAPxxwkZaJyEk8G';
const MAX_TEST_BYTES = 4_096;

function isEndpointTest(request: ProviderRequest): boolean {
  if (request.body.length > MAX_TEST_BYTES) return false;
  if (authenticateBySignature(request, [TEST_SECRET]).kind === 'refused') return false;
  return toObject(parseJson(request.body))?.type === 'webhook.test';
}

const REPLY_PREFIX = 'message queued as ';

/** `250 Message queued as 61eec2dc16ae8b627a4b87e7`. The reply code can be absent. */
function findMessageId(text: string): string | null {
  const startIndex = text.toLowerCase().indexOf(REPLY_PREFIX);
  if (startIndex < 0) return null;
  const [id] = text
    .slice(startIndex + REPLY_PREFIX.length)
    .trim()
    .split(' ', 1);
  return toId(id);
}

/**
 * The form field `mandrill_events` is a JSON array of up to 1,000 events. A change of a list has `type` instead of
 * `event`. https://mailchimp.com/developer/transactional/docs/webhooks/
 */
import { MESSAGE_ID_TAG } from '../model/feedback.ts';
import {
  AUTHENTICATED,
  createAuthenticatorFactory,
  createRefusal,
  isBase64Hmac,
  matchesAny,
  parseTextSecret,
} from './authentication.ts';
import {
  type AuthenticationResult,
  createEventReader,
  type ProviderRequest,
  type ReadResult,
  readBatch,
} from './event-reader.ts';
import { type FormFields, getMember, type Json, parseForm, parseJson, toList, toObject, unwrapSingle } from './json.ts';
import { type Provider, RELAY_DEFAULTS } from './provider.ts';

const LIST_REASONS: ReadonlySet<unknown> = new Set(['hard-bounce', 'soft-bounce', 'spam', 'unsub']);

const readMandrillEvent = createEventReader({
  sources: {
    type: ['event', 'type'],
    messageId: ['msg.metadata'],
    // `_id` is the id of the message and not the id of the event.
    reference: ['msg._id', '_id'],
    recipient: ['msg.email'],
    diagnostic: ['msg.diag', (event) => findLastSession(event)?.diag, 'msg.bounce_description', 'msg.reject.reason'],
    host: [(event) => findLastSession(event)?.destination_ip],
  },
  meanings: {
    hard_bounce: 'hard',
    soft_bounce: 'soft',
    spam: 'complaint',
    unsub: 'unsubscribed',
    // A rejection for another reason, such as `unsigned` or `rule`, is a fault of the sender.
    reject: (event) =>
      LIST_REASONS.has(getMember(getMember(getMember(event, 'msg'), 'reject'), 'reason'))
        ? 'provider-suppressed'
        : 'block',
    deferral: 'deferred',
    delivered: 'delivered',
  },
  hasListReason: () => true,
  requiredObject: 'msg',
});

export const MANDRILL: Provider = {
  name: 'mandrill',
  title: 'Mandrill',
  // https://mailchimp.com/developer/transactional/docs/smtp-integration/
  // https://mailchimp.com/developer/transactional/docs/authentication-delivery/
  // https://mailchimp.com/developer/transactional/docs/outbound-email/
  relay: {
    ...RELAY_DEFAULTS,
    hosts: ['smtp.mandrillapp.com'],
    metadata: (messageId) => [{ name: 'X-MC-Metadata', value: JSON.stringify({ [MESSAGE_ID_TAG]: messageId }) }],
    keepsEnvelopeSender: false,
    maxMessageBytes: 25 * 1024 * 1024,
    // as an event (https://mandrill.zendesk.com/hc/en-us/articles/213530577-SMTP-Troubleshooting-Tips).
  },
  events: {
    secretForm: 'webhook key',
    secretExample: 'kR3wQm8dZt5nVb2xHs7c',
    createAuthenticator: createAuthenticatorFactory(parseTextSecret, authenticateByUrlAndForm),
    parsesBodyToAuthenticate: true,
    isEndpointTest,
    read: ({ body }) => readMandrillEvents(body),
  },
};

function readMandrillEvents(body: Buffer): ReadResult {
  const fields = parseForm(body);
  const text = findEventsField(fields);
  if (text === null) return { kind: 'broken', reason: `the body is not a form with the field ${EVENTS_FIELD}` };
  const list = parseJson(Buffer.from(text));
  if (!Array.isArray(list)) return { kind: 'broken', reason: `the field ${EVENTS_FIELD} is not a JSON array` };
  return readBatch(list, readMandrillEvent);
}

function findLastSession(event: Json): Json | null {
  return toObject(unwrapSingle(toList(getMember(getMember(event, 'msg'), 'smtp_events')).at(-1)));
}

/**
 * https://mailchimp.com/developer/transactional/guides/track-respond-activity-webhooks/#authenticating-webhook-requests
 */
const EVENTS_FIELD = 'mandrill_events';

/** Publicly known: signs the empty list with which Mandrill tests the URL before the key exists. */
const TEST_KEY = 'test-webhook';
const MAX_TEST_BYTES = 4_096;
const SIGNATURE_LENGTH = 28;

function authenticateByUrlAndForm(
  { headers, body, url }: ProviderRequest,
  keys: readonly string[],
): AuthenticationResult {
  if (url === null) return createRefusal('the signature covers the URL of the endpoint; set POSTRIDER_FEEDBACK_URL');
  const signature = headers['x-mandrill-signature'];
  if (signature === undefined) return createRefusal('the request has no X-Mandrill-Signature header field');
  // The signature covers the decoded fields, so the form must be parsed first.
  if (signature.trim().length !== SIGNATURE_LENGTH)
    return createRefusal('X-Mandrill-Signature is not an HMAC-SHA1 in base64');
  const fields = parseForm(body);
  if (fields === null) return createRefusal('the body has too many form fields');
  const content =
    url +
    fields
      .toSorted(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0))
      .flat()
      .join('');
  return matchesAny(keys, (key) => isBase64Hmac('sha1', key, content, signature.trim()))
    ? AUTHENTICATED
    : createRefusal(
        'the signature is invalid; POSTRIDER_FEEDBACK_URL must be the registered URL without /events/mandrill',
      );
}

function isEndpointTest(request: ProviderRequest): boolean {
  if (request.body.length > MAX_TEST_BYTES) return false;
  if (authenticateByUrlAndForm(request, [TEST_KEY]).kind === 'refused') return false;
  return findEventsField(parseForm(request.body))?.trim() === '[]';
}

function findEventsField(fields: FormFields | null): string | null {
  return fields?.find(([name]) => name === EVENTS_FIELD)?.[1] ?? null;
}

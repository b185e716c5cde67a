/** An object with `events`, or JSON Lines. https://docs.mailtrap.io/email-api-smtp/advanced/webhooks */
import { nameRules, ROUTE_THROTTLED, SENDER_FAULT } from '../model/failure.ts';
import { MESSAGE_ID_TAG } from '../model/feedback.ts';
import { createAuthenticatorFactory, createHmacAuthenticator, parseTextSecret } from './authentication.ts';
import { containsAny, createEventReader, groupMeanings, type ReadResult, readBatch } from './event-reader.ts';
import { findRow, type Json, parseJson, toList, toNumber, toObject, toText } from './json.ts';
import { type Provider, RELAY_DEFAULTS } from './provider.ts';

/** Any other is hard. https://docs.mailtrap.io/email-api-smtp/deliverability/bounce-categorization */
const CATEGORY_MEANINGS = groupMeanings({
  block: ['block', 'content', 'badsender'],
  soft: ['transientfail', 'greylisting', 'dnsFail'],
});

const LIST_REASONS = ['unsubscri', 'spam', 'complaint', 'bounce', 'manual'];

const readMailtrapEvent = createEventReader({
  sources: {
    type: ['event'],
    key: ['event_id'],
    messageId: ['custom_variables'],
    reference: ['message_id'],
    recipient: ['email'],
    diagnostic: [formatResponse, 'reason'],
  },
  // A suspension lasts until the account’s limit allows the message.
  // https://help.mailtrap.io/article/87-statuses-and-events
  meanings: {
    delivery: 'delivered',
    bounce: ({ bounce_category: category }) => findRow(CATEGORY_MEANINGS, toText(category)) ?? 'hard',
    'soft bounce': 'deferred',
    suspension: 'deferred',
    reject: 'provider-suppressed',
    spam: 'complaint',
    unsubscribe: 'unsubscribed',
  },
  hasListReason: ({ reason }) => containsAny(toText(reason), LIST_REASONS),
});

const LINE_FEED = 0x0a;
const MAX_BROKEN_LINES = 100;

/** https://docs.mailtrap.io/email-api-smtp/advanced/webhooks#webhook-signature-verification */
const authenticateBySignature = createHmacAuthenticator('Mailtrap-Signature');

export const MAILTRAP: Provider = {
  name: 'mailtrap',
  title: 'Mailtrap',
  // https://docs.mailtrap.io/email-api-smtp/setup/smtp-integration
  // https://docs.mailtrap.io/email-api-smtp/advanced/custom-variables
  // https://docs.mailtrap.io/email-api-smtp/setup/sending-domain
  relay: {
    ...RELAY_DEFAULTS,
    hosts: ['live.smtp.mailtrap.io', 'bulk.smtp.mailtrap.io'],
    metadata: (messageId) => [
      { name: 'X-MT-Custom-Variables', value: JSON.stringify({ [MESSAGE_ID_TAG]: messageId }) },
    ],
    // https://docs.mailtrap.io/email-api-smtp/help/troubleshooting/sending-from-domain-not-allowed
    // https://help.mailtrap.io/article/100-sending-limits
    replies: nameRules({
      'domain of the sender not verified': {
        codes: [550],
        // The reply contains the domain between the words `domain` and `is`, or contains no domain.
        phrases: ['sending from domain'],
        verdict: SENDER_FAULT,
      },
      'too many connections': {
        codes: [535],
        // On other servers, the reply code 535 means that the sign-in is refused.
        phrases: ['too many connections per account'],
        verdict: ROUTE_THROTTLED,
      },
    }),
  },
  events: {
    secretForm: 'SIGNING-SECRET',
    secretExample: '8d1f0c6a52b94e7e9a3c7d5b1e6f2a40',
    createAuthenticator: createAuthenticatorFactory(parseTextSecret, authenticateBySignature),
    read: ({ body }) => readMailtrapEvents(body),
  },
};

function readMailtrapEvents(body: Buffer): ReadResult {
  const members = listMembers(body);
  if (members === null)
    return { kind: 'broken', reason: 'the body is neither a JSON object with events nor JSON Lines' };
  return readBatch(members, readMailtrapEvent);
}

function listMembers(body: Buffer): readonly unknown[] | null {
  const value = parseJson(body);
  if (value === undefined) {
    const members = parseLines(body);
    return members?.some((member) => toText(toObject(member)?.event) !== null) === true ? members : null;
  }
  const object = toObject(value);
  if (object === null) return Array.isArray(value) ? value : null;
  if (object.events !== undefined) return toList(object.events);
  // The body is JSON Lines with a single line.
  return object.event === undefined ? null : [object];
}

/** More than `MAX_BROKEN_LINES` broken lines are refused, because parsing them is slow. */
function parseLines(body: Buffer): readonly unknown[] | null {
  const members: unknown[] = [];
  let brokenLineCount = 0;
  for (const line of listLines(body)) {
    const member = parseJson(line);
    if (member === undefined && ++brokenLineCount > MAX_BROKEN_LINES) return null;
    members.push(member);
  }
  return members;
}

function* listLines(body: Buffer): Generator<Buffer> {
  let startIndex = 0;
  while (startIndex < body.length) {
    const lineFeedIndex = body.indexOf(LINE_FEED, startIndex);
    const end = lineFeedIndex < 0 ? body.length : lineFeedIndex;
    const line = body.subarray(startIndex, end);
    if (!isBlank(line)) yield line;
    startIndex = end + 1;
  }
}

function isBlank(line: Buffer): boolean {
  return line.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d);
}

function formatResponse({ response, response_code: responseCode }: Json): string | null {
  const [text, code] = [toText(response), toNumber(responseCode)];
  return text === null || code === null || text.includes(String(code)) ? text : `${code} ${text}`;
}

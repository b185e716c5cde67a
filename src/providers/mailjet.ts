/** https://dev.mailjet.com/email/guides/webhooks/. Version 2 of the callback URL groups events in an array. */
import { BASIC_AUTHENTICATION } from './authentication.ts';
import { createEventReader, type EventMeaning, readObjectOrArray } from './event-reader.ts';
import { getMember, type Json, parseJson, toBoolean, toText } from './json.ts';
import { type Provider, RELAY_DEFAULTS } from './provider.ts';

/** https://dev.mailjet.com/email/guides/webhooks/#possible-values-for-errors */
const LIST_ERRORS: ReadonlySet<string> = new Set([
  ...['user unknown', 'mailbox inactive', 'invalid domain', 'no mail host', 'typofix', 'preblocked'],
  ...['spam reporter', 'blacklisted'],
]);

const REFUSAL_ERRORS: ReadonlySet<string> = new Set([
  'sender blocked',
  'content blocked',
  'policy issue',
  'spam preblocked',
]);

const GREYLISTING_ERROR = 'greylisted';

const readMailjetEvent = createEventReader({
  sources: {
    type: ['event'],
    messageId: ['CustomID'],
    reference: ['Message_GUID', 'mj_message_id', readExactMessageId],
    recipient: ['email'],
    diagnostic: [joinErrorTexts],
  },
  meanings: {
    bounce: decideBounceMeaning,
    blocked: decideBlockedMeaning,
    sent: 'delivered',
    spam: 'complaint',
    unsub: 'unsubscribed',
  },
  hasListReason: () => true,
});

export const MAILJET: Provider = {
  name: 'mailjet',
  title: 'Mailjet',
  // https://dev.mailjet.com/docs/smtp_relay/custom_headers
  // https://documentation.mailjet.com/hc/en-us/articles/360049641733-Authenticating-Domains-with-SPF-and-DKIM-A-Complete-Guide
  relay: {
    ...RELAY_DEFAULTS,
    hosts: ['in-v3.mailjet.com'],
    metadata: (messageId) => [{ name: 'X-MJ-CustomID', value: messageId }],
    keepsEnvelopeSender: false,
    spf: 'v=spf1 include:spf.mailjet.com ~all',
  },
  events: {
    ...BASIC_AUTHENTICATION,
    read: ({ body }) => readObjectOrArray(parseJson(body), readMailjetEvent),
  },
};

function decideBounceMeaning(event: Json): EventMeaning {
  const isHard = toBoolean(event.hard_bounce);
  if (isHard === true) return 'hard';
  if (readError(event) === GREYLISTING_ERROR) return 'deferred';
  return isHard === false ? 'soft' : 'by-text';
}

function decideBlockedMeaning(event: Json): EventMeaning {
  const error = readError(event);
  if (error === GREYLISTING_ERROR) return 'deferred';
  if (LIST_ERRORS.has(error)) return 'provider-suppressed';
  return REFUSAL_ERRORS.has(error) ? 'block' : 'soft';
}

function readError({ error }: Json): string {
  return toText(error)?.toLowerCase() ?? '';
}

function joinErrorTexts(event: Json): string | null {
  const members = [event.error_related_to, event.error, event.comment, event.smtp_reply, event.source];
  const texts = members.map(toText).filter((text) => text !== null);
  return texts.length === 0 ? null : texts.join(': ');
}

/** Most values of `MessageID` are numbers above the greatest safe integer of JavaScript, and may be rounded. */
function readExactMessageId(event: Json): unknown {
  const id = getMember(event, 'MessageID');
  return typeof id === 'number' && !Number.isSafeInteger(id) ? null : id;
}

/**
 * Reads the events of Mailjet. The type is in `event`. The body is one event, or an array of events if events are
 * grouped (version 2 of the callback URL). https://dev.mailjet.com/email/guides/webhooks/
 */
import { authenticateByAuthorization, createAuthenticatorFactory, parseBasicSecret } from '../authentication.ts';
import { readObjectOrArray } from '../batch.ts';
import type { EventMeaning, ProviderListReason } from '../event.ts';
import { createEventReader } from '../event-shape.ts';
import { findRow, getMember, type Json, parseJson, toBoolean, toText } from '../json.ts';
import type { EventFormat } from '../provider.ts';

/**
 * Errors for which Mailjet suppresses a recipient. The other errors of a blocked message concern the message, the
 * sender or Mailjet itself. https://dev.mailjet.com/email/guides/webhooks/#possible-values-for-errors
 */
const LIST_ERRORS: Readonly<Record<string, ProviderListReason>> = {
  'user unknown': 'bounce',
  'mailbox inactive': 'bounce',
  'invalid domain': 'bounce',
  'no mail host': 'bounce',
  typofix: 'bounce',
  preblocked: 'bounce',
  'spam reporter': 'complaint',
  blacklisted: 'manual',
};

/** Errors of a blocked message that Mailjet or the receiving server refused because of its content or its sender. */
const REFUSAL_ERRORS: ReadonlySet<string> = new Set([
  'sender blocked',
  'content blocked',
  'policy issue',
  'spam preblocked',
]);

/** A temporary error, after which Mailjet attempts the delivery again. */
const GREYLISTING_ERROR = 'greylisted';

const readMailjetEvent = createEventReader({
  sources: {
    type: ['event'],
    messageId: ['CustomID'],
    reference: ['Message_GUID', 'mj_message_id', readExactMessageId],
    recipient: ['email'],
    at: ['time'],
    diagnostic: [joinErrorTexts],
  },
  meanings: {
    bounce: decideBounceMeaning,
    blocked: decideBlockedMeaning,
    sent: 'delivered',
    spam: 'complaint',
    unsub: 'unsubscribed',
  },
  listReason: (event) => findRow(LIST_ERRORS, readError(event)),
});

export const MAILJET_EVENTS: EventFormat = {
  secretForm: 'USER:PASSWORD',
  secretExample: 'postrider:4ad0c3f1e7b2',
  createAuthenticator: createAuthenticatorFactory(parseBasicSecret, authenticateByAuthorization),
  authenticatesByHeader: true,
  read: ({ body }) => readObjectOrArray(parseJson(body), readMailjetEvent),
  storeFailureStatus: 503,
  table: [
    { type: 'bounce, hard_bounce true', meaning: 'hard', sample: 'bounce-hard.json' },
    { type: 'bounce, hard_bounce false', meaning: 'soft', sample: 'bounce-soft.json' },
    { type: 'bounce, error greylisted', meaning: 'deferred', sample: 'bounce-greylisted.json' },
    { type: 'blocked, error user unknown', meaning: 'provider-suppressed', sample: 'blocked-user-unknown.json' },
    {
      type: 'blocked, error mailbox inactive',
      meaning: 'provider-suppressed',
      sample: 'blocked-mailbox-inactive.json',
    },
    { type: 'blocked, error invalid domain', meaning: 'provider-suppressed', sample: 'blocked-invalid-domain.json' },
    { type: 'blocked, error no mail host', meaning: 'provider-suppressed', sample: 'blocked-no-mail-host.json' },
    { type: 'blocked, error typofix', meaning: 'provider-suppressed', sample: 'blocked-typofix.json' },
    { type: 'blocked, error preblocked', meaning: 'provider-suppressed', sample: 'blocked-preblocked.json' },
    { type: 'blocked, error spam reporter', meaning: 'provider-suppressed', sample: 'blocked-spam-reporter.json' },
    { type: 'blocked, error blacklisted', meaning: 'provider-suppressed', sample: 'blocked-blacklisted.json' },
    { type: 'blocked, error quota exceeded', meaning: 'soft', sample: 'blocked-quota-exceeded.json' },
    { type: 'blocked, error relay/access denied', meaning: 'soft', sample: 'blocked-relay-access-denied.json' },
    { type: 'blocked, error greylisted', meaning: 'deferred', sample: 'blocked-greylisted.json' },
    { type: 'blocked, error sender blocked', meaning: 'block', sample: 'blocked-sender-blocked.json' },
    { type: 'blocked, error content blocked', meaning: 'block', sample: 'blocked-content-blocked.json' },
    { type: 'blocked, error policy issue', meaning: 'block', sample: 'blocked-policy-issue.json' },
    { type: 'blocked, error spam preblocked', meaning: 'block', sample: 'blocked-spam-preblocked.json' },
    { type: 'blocked, error system issue', meaning: 'soft', sample: 'blocked-system-issue.json' },
    { type: 'blocked, error protocol issue', meaning: 'soft', sample: 'blocked-protocol-issue.json' },
    { type: 'blocked, error connection issue', meaning: 'soft', sample: 'blocked-connection-issue.json' },
    { type: 'blocked, error duplicate in campaign', meaning: 'soft', sample: 'blocked-duplicate-in-campaign.json' },
    { type: 'blocked, error bad or empty template', meaning: 'soft', sample: 'blocked-bad-or-empty-template.json' },
    {
      type: 'blocked, error error in template language',
      meaning: 'soft',
      sample: 'blocked-error-in-template-language.json',
    },
    { type: 'spam', meaning: 'complaint', sample: 'spam.json' },
    { type: 'unsub', meaning: 'unsubscribed', sample: 'unsub.json' },
    { type: 'sent', meaning: 'delivered', sample: 'sent.json' },
    { type: 'open', meaning: 'ignored', sample: 'open.json' },
    { type: 'click', meaning: 'ignored', sample: 'click.json' },
  ],
  sources: [
    'https://dev.mailjet.com/email/guides/webhooks/',
    'https://documentation.mailjet.com/hc/en-us/articles/360043578154-Event-Tracking-API',
  ],
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
  if (findRow(LIST_ERRORS, error) !== undefined) return 'provider-suppressed';
  return REFUSAL_ERRORS.has(error) ? 'block' : 'soft';
}

function readError({ error }: Json): string {
  return toText(error)?.toLowerCase() ?? '';
}

/**
 * Returns the description of the error, or null. `comment` and `smtp_reply` contain the reply of the receiving server.
 */
function joinErrorTexts(event: Json): string | null {
  const members = [event.error_related_to, event.error, event.comment, event.smtp_reply, event.source];
  const texts = members.map(toText).filter((text) => text !== null);
  return texts.length === 0 ? null : texts.join(': ');
}

/**
 * Returns `MessageID`, or null if it is a number that exceeds the greatest safe integer of JavaScript and may therefore
 * be rounded. Most values of `MessageID` exceed this integer.
 */
function readExactMessageId(event: Json): unknown {
  const id = getMember(event, 'MessageID');
  return typeof id === 'number' && !Number.isSafeInteger(id) ? null : id;
}

/**
 * Reads the webhooks of Mandrill: the form field `mandrill_events`, which contains a JSON array of up to 1,000 events.
 * The type is in `event`. An event about a change of the allowlist or the denylist has `type` instead of `event`, and
 * contains no message.
 * https://mailchimp.com/developer/transactional/docs/webhooks/
 */
import { createAuthenticatorFactory, parseTextSecret } from '../authentication.ts';
import { readBatch } from '../batch.ts';
import type { EventMeaning, ProviderListReason, ReadResult } from '../event.ts';
import { createEventReader } from '../event-shape.ts';
import { findField, parseForm } from '../form.ts';
import { findRow, getMember, type Json, parseJson, toList, toObject, toText, unwrapSingle } from '../json.ts';
import type { EventFormat } from '../provider.ts';
import { authenticateByUrlAndForm, EVENTS_FIELD, isEndpointTest } from './signature.ts';

/** The reasons of a rejection that mean an entry on the denylist of the account. */
const LIST_REASONS: Readonly<Record<string, ProviderListReason>> = {
  'hard-bounce': 'bounce',
  'soft-bounce': 'bounce',
  spam: 'complaint',
  unsub: 'unsubscribe',
};

const readMandrillEvent = createEventReader({
  sources: {
    type: ['event', 'type'],
    messageId: ['msg.metadata'],
    // `_id` is the id of the message and not the id of the event.
    reference: ['msg._id', '_id'],
    recipient: ['msg.email'],
    at: ['ts'],
    // The reply to a bounced message is in `diag`. The reply to a deferred or delivered message is in the last element
    // of `smtp_events`.
    diagnostic: ['msg.diag', (event) => findLastSession(event)?.diag, 'msg.bounce_description', 'msg.reject.reason'],
    host: [(event) => findLastSession(event)?.destination_ip],
  },
  meanings: {
    hard_bounce: 'hard',
    soft_bounce: 'soft',
    spam: 'complaint',
    unsub: 'unsubscribed',
    reject: decideRejectMeaning,
    deferral: 'deferred',
    delivered: 'delivered',
  },
  listReason: findListReasonOfEvent,
  requiredObject: 'msg',
});

export const MANDRILL_EVENTS: EventFormat = {
  secretForm: 'webhook key',
  secretExample: 'kR3wQm8dZt5nVb2xHs7c',
  createAuthenticator: createAuthenticatorFactory(parseTextSecret, authenticateByUrlAndForm),
  authenticatesByHeader: false,
  parsesBodyToAuthenticate: true,
  isEndpointTest,
  read: ({ body }) => readMandrillEvents(body),
  storeFailureStatus: 503,
  table: [
    { type: 'hard_bounce', meaning: 'hard', sample: 'hard-bounce.form' },
    { type: 'soft_bounce', meaning: 'soft', sample: 'soft-bounce.form' },
    { type: 'spam', meaning: 'complaint', sample: 'spam.form' },
    { type: 'unsub', meaning: 'unsubscribed', sample: 'unsub.form' },
    {
      type: 'reject, reason hard-bounce, soft-bounce, spam or unsub',
      meaning: 'provider-suppressed',
      sample: 'reject.form',
    },
    { type: 'reject, another reason', meaning: 'block', sample: 'reject-unsigned.form' },
    { type: 'deferral', meaning: 'deferred', sample: 'deferral.form' },
    { type: 'delivered', meaning: 'delivered', sample: 'delivered.form' },
    { type: 'send', meaning: 'ignored', sample: 'send.form' },
    { type: 'open', meaning: 'ignored', sample: 'open.form' },
    { type: 'click', meaning: 'ignored', sample: 'click.form' },
    { type: 'inbound', meaning: 'ignored', sample: 'inbound.form' },
    { type: 'type denylist', meaning: 'ignored', sample: 'denylist.form' },
    { type: 'type blacklist', meaning: 'ignored', sample: 'blacklist.form' },
    { type: 'type allowlist', meaning: 'ignored', sample: 'allowlist.form' },
    { type: 'type whitelist', meaning: 'ignored', sample: 'whitelist.form' },
    { type: 'an empty list, the test of the URL', meaning: 'ignored', sample: 'test.form' },
  ],
  sources: [
    'https://mailchimp.com/developer/transactional/docs/webhooks/',
    'https://mailchimp.com/developer/transactional/guides/track-respond-activity-webhooks/',
  ],
};

function readMandrillEvents(body: Buffer): ReadResult {
  const fields = parseForm(body);
  const text = fields === null ? null : findField(fields, EVENTS_FIELD);
  if (text === null) return { kind: 'broken', reason: `the body is not a form with the field ${EVENTS_FIELD}` };
  const list = parseJson(Buffer.from(text));
  if (!Array.isArray(list)) return { kind: 'broken', reason: `the field ${EVENTS_FIELD} is not a JSON array` };
  return readBatch(list, readMandrillEvent);
}

/** A rejection for another reason, such as `unsigned` or `rule`, is a fault of the sender. */
function decideRejectMeaning(event: Json): EventMeaning {
  return findListReasonOfEvent(event) === undefined ? 'block' : 'provider-suppressed';
}

function findListReasonOfEvent(event: Json): ProviderListReason | undefined {
  return findRow(LIST_REASONS, toText(toObject(getMember(getMember(event, 'msg'), 'reject'))?.reason));
}

function findLastSession(event: Json): Json | null {
  return toObject(unwrapSingle(toList(getMember(getMember(event, 'msg'), 'smtp_events')).at(-1)));
}

/**
 * Reads the webhooks of SparkPost. The body is an array of `{"msys":{CLASS:EVENT}}`. The member `type` of an event
 * contains its type.
 * https://developers.sparkpost.com/api/webhooks/
 */
import { authenticateByAuthorization, createAuthenticatorFactory, parseBasicSecret } from '../authentication.ts';
import { type MemberResult, readBatch } from '../batch.ts';
import type { Diagnosis, EventMeaning, ReadResult } from '../event.ts';
import { createEventReader } from '../event-shape.ts';
import { findRow, getMember, type Json, parseJson, toList, toObject, toText, unwrapSingle } from '../json.ts';
import type { EventFormat } from '../provider.ts';

/**
 * The meaning of each `bounce_class` except 25. Class 60 is an automatic reply, class 80 is a subscription, and class
 * 100 is a challenge.
 * https://support.sparkpost.com/docs/deliverability/bounce-classification-codes
 */
const BOUNCE_CLASSES: Readonly<Record<string, EventMeaning>> = {
  '1': 'soft',
  '10': 'hard',
  '20': 'soft',
  '21': 'soft',
  '22': 'soft',
  '23': 'soft',
  '24': 'soft',
  '26': 'soft',
  '30': 'hard',
  '40': 'soft',
  '50': 'block',
  '51': 'block',
  '52': 'block',
  '53': 'block',
  '54': 'block',
  '60': 'ignored',
  '70': 'soft',
  '80': 'ignored',
  '90': 'unsubscribed',
  '100': 'ignored',
};

/** Admin Failure: the recipient is on a suppression list, or another policy of SparkPost prevented the attempt. */
const ADMIN_FAILURE = '25';

/**
 * The types of a feedback report that withdraws a complaint (RFC 5965 section 7.3). Some reporters write `not_spam`
 * instead of `not-spam`.
 */
const COMPLAINT_WITHDRAWAL_TYPES: ReadonlySet<string> = new Set(['not-spam', 'not_spam']);

/** The class of messages that SparkPost received for the account. */
const INBOUND_CLASS = 'relay_message';

/**
 * The types of events in which `ip_address` is the address of the receiving server. In events that the recipient
 * causes, such as `open`, `ip_address` is the IP address of the recipient.
 */
const SERVER_ADDRESS_TYPES: ReadonlySet<string | null> = new Set(['bounce', 'out_of_band', 'delay', 'delivery']);
/** The types of events that have a `bounce_class`. */
const BOUNCE_TYPES: ReadonlySet<string | null> = new Set(['bounce', 'out_of_band']);

const readEvent = createEventReader({
  sources: {
    type: ['type'],
    subtypes: [({ type, bounce_class: bounceClass }) => (BOUNCE_TYPES.has(toText(type)) ? bounceClass : null)],
    key: ['event_id'],
    messageId: ['rcpt_meta'],
    reference: ['message_id'],
    // `rcpt_to` is in lower case.
    recipient: ['raw_rcpt_to', 'rcpt_to'],
    at: ['timestamp'],
    // `raw_reason` is the reply of the receiving server. SparkPost removes variable parts, such as addresses, from
    // `reason`.
    diagnostic: ['raw_reason', 'reason', 'fbtype'],
    host: [({ type, ip_address: address }) => (SERVER_ADDRESS_TYPES.has(toText(type)) ? address : null)],
  },
  // Types that are not listed here are ignored.
  meanings: {
    bounce: decideBounceMeaning,
    out_of_band: decideBounceMeaning,
    spam_complaint: ({ fbtype }) =>
      COMPLAINT_WITHDRAWAL_TYPES.has(toText(fbtype)?.toLowerCase() ?? '') ? 'ignored' : 'complaint',
    policy_rejection: decideRejectionMeaning,
    generation_rejection: decideRejectionMeaning,
    delivery: 'delivered',
    delay: 'deferred',
    generation_failure: 'soft',
    list_unsubscribe: 'unsubscribed',
    link_unsubscribe: 'unsubscribed',
  },
});

export const SPARKPOST_EVENTS: EventFormat = {
  secretForm: 'USER:PASSWORD',
  secretExample: 'postrider:4ad0c3f1e7b2',
  createAuthenticator: createAuthenticatorFactory(parseBasicSecret, authenticateByAuthorization),
  authenticatesByHeader: true,
  read: ({ body }) => readSparkPostEvents(parseJson(body)),
  storeFailureStatus: 503,
  table: [
    { type: 'bounce, bounce_class 1', meaning: 'soft', sample: 'bounce-1.json' },
    { type: 'bounce, bounce_class 10', meaning: 'hard', sample: 'bounce-10.json' },
    { type: 'bounce, bounce_class 20', meaning: 'soft', sample: 'bounce-20.json' },
    { type: 'bounce, bounce_class 21', meaning: 'soft', sample: 'bounce-21.json' },
    { type: 'bounce, bounce_class 22', meaning: 'soft', sample: 'bounce-22.json' },
    { type: 'bounce, bounce_class 23', meaning: 'soft', sample: 'bounce-23.json' },
    { type: 'bounce, bounce_class 24', meaning: 'soft', sample: 'bounce-24.json' },
    {
      type: 'bounce, bounce_class 25, suppressed',
      meaning: 'provider-suppressed',
      sample: 'bounce-25-suppressed.json',
    },
    { type: 'bounce, bounce_class 25, other reason', meaning: 'block', sample: 'bounce-25-policy.json' },
    { type: 'bounce, bounce_class 26', meaning: 'soft', sample: 'bounce-26.json' },
    { type: 'bounce, bounce_class 30', meaning: 'hard', sample: 'bounce-30.json' },
    { type: 'bounce, bounce_class 40', meaning: 'soft', sample: 'bounce-40.json' },
    { type: 'bounce, bounce_class 50', meaning: 'block', sample: 'bounce-50.json' },
    { type: 'bounce, bounce_class 51', meaning: 'block', sample: 'bounce-51.json' },
    { type: 'bounce, bounce_class 52', meaning: 'block', sample: 'bounce-52.json' },
    { type: 'bounce, bounce_class 53', meaning: 'block', sample: 'bounce-53.json' },
    { type: 'bounce, bounce_class 54', meaning: 'block', sample: 'bounce-54.json' },
    { type: 'bounce, bounce_class 60', meaning: 'ignored', sample: 'bounce-60.json' },
    { type: 'bounce, bounce_class 70', meaning: 'soft', sample: 'bounce-70.json' },
    { type: 'bounce, bounce_class 80', meaning: 'ignored', sample: 'bounce-80.json' },
    { type: 'bounce, bounce_class 90', meaning: 'unsubscribed', sample: 'bounce-90.json' },
    { type: 'bounce, bounce_class 100', meaning: 'ignored', sample: 'bounce-100.json' },
    { type: 'bounce, no bounce_class', meaning: 'by-text', sample: 'bounce-no-class.json' },
    { type: 'out_of_band, bounce_class 10', meaning: 'hard', sample: 'out-of-band-10.json' },
    { type: 'out_of_band, bounce_class 22', meaning: 'soft', sample: 'out-of-band-22.json' },
    { type: 'out_of_band, bounce_class 51', meaning: 'block', sample: 'out-of-band-51.json' },
    { type: 'out_of_band, bounce_class 60', meaning: 'ignored', sample: 'out-of-band-60.json' },
    { type: 'spam_complaint', meaning: 'complaint', sample: 'spam-complaint.json' },
    { type: 'spam_complaint, fbtype not-spam', meaning: 'ignored', sample: 'spam-complaint-not-spam.json' },
    { type: 'policy_rejection', meaning: 'provider-suppressed', sample: 'policy-rejection.json' },
    { type: 'policy_rejection, fault of the sender', meaning: 'block', sample: 'policy-rejection-sender.json' },
    { type: 'generation_rejection', meaning: 'provider-suppressed', sample: 'generation-rejection.json' },
    { type: 'generation_failure', meaning: 'soft', sample: 'generation-failure.json' },
    { type: 'list_unsubscribe', meaning: 'unsubscribed', sample: 'list-unsubscribe.json' },
    { type: 'link_unsubscribe', meaning: 'unsubscribed', sample: 'link-unsubscribe.json' },
    { type: 'delay', meaning: 'deferred', sample: 'delay.json' },
    { type: 'delivery', meaning: 'delivered', sample: 'delivery.json' },
    { type: 'injection', meaning: 'ignored', sample: 'injection.json' },
    { type: 'sms_status', meaning: 'ignored', sample: 'sms-status.json' },
    { type: 'open', meaning: 'ignored', sample: 'open.json' },
    { type: 'initial_open', meaning: 'ignored', sample: 'initial-open.json' },
    { type: 'click', meaning: 'ignored', sample: 'click.json' },
    { type: 'amp_open', meaning: 'ignored', sample: 'amp-open.json' },
    { type: 'amp_initial_open', meaning: 'ignored', sample: 'amp-initial-open.json' },
    { type: 'amp_click', meaning: 'ignored', sample: 'amp-click.json' },
    { type: 'relay_injection', meaning: 'ignored', sample: 'relay-injection.json' },
    { type: 'relay_rejection', meaning: 'ignored', sample: 'relay-rejection.json' },
    { type: 'relay_delivery', meaning: 'ignored', sample: 'relay-delivery.json' },
    { type: 'relay_tempfail', meaning: 'ignored', sample: 'relay-tempfail.json' },
    { type: 'relay_permfail', meaning: 'ignored', sample: 'relay-permfail.json' },
    { type: 'relay_message', meaning: 'ignored', sample: 'relay-message.json' },
    { type: 'ab_test_completed', meaning: 'ignored', sample: 'ab-test-completed.json' },
    { type: 'ab_test_cancelled', meaning: 'ignored', sample: 'ab-test-cancelled.json' },
    { type: 'success', meaning: 'ignored', sample: 'ingest-success.json' },
    { type: 'error', meaning: 'ignored', sample: 'ingest-error.json' },
    { type: 'test of the webhook', meaning: 'ignored', sample: 'test.json' },
  ],
  sources: [
    'https://developers.sparkpost.com/api/webhooks/',
    'https://support.sparkpost.com/docs/tech-resources/webhook-event-reference',
    'https://support.sparkpost.com/docs/deliverability/bounce-classification-codes',
    'https://support.sparkpost.com/docs/tech-resources/preparing-for-async-suppressions',
  ],
};

function readSparkPostEvents(value: unknown): ReadResult {
  if (typeof value !== 'object' || value === null) return { kind: 'broken', reason: 'the body is not a JSON array' };
  return readBatch(toList(value), readSparkPostEvent);
}

/** Reads one member of the batch. In a test of the webhook, the member contains an empty `msys`. */
function readSparkPostEvent(member: Json): MemberResult {
  const msys = toObject(getMember(member, 'msys'));
  if (msys === null) return 'broken';
  const [entry] = Object.entries(msys);
  if (entry === undefined || entry[0] === INBOUND_CLASS) return 'ignored';
  const event = toObject(unwrapSingle(entry[1]));
  return event === null ? 'broken' : readEvent(event);
}

/**
 * Returns the meaning of a bounce. Class 25:
 * https://support.sparkpost.com/docs/tech-resources/preparing-for-async-suppressions
 */
function decideBounceMeaning({ bounce_class: value }: Json, diagnosis: Diagnosis): EventMeaning {
  const bounceClass = toText(value);
  if (bounceClass === ADMIN_FAILURE) return containsAny(diagnosis, ['suppress']) ? 'provider-suppressed' : 'block';
  return findRow(BOUNCE_CLASSES, bounceClass) ?? 'by-text';
}

function decideRejectionMeaning(_event: Json, diagnosis: Diagnosis): EventMeaning {
  return containsAny(diagnosis, ['suppress', '5.1.1']) ? 'provider-suppressed' : 'block';
}

function containsAny({ diagnostic }: Diagnosis, parts: readonly string[]): boolean {
  const text = diagnostic?.toLowerCase() ?? '';
  return parts.some((part) => text.includes(part));
}

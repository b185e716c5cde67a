/** The body is an array of `{"msys":{CLASS:EVENT}}`. https://developers.sparkpost.com/api/webhooks/ */
import { CONTENT_REFUSAL, nameRules, POLICY_REFUSAL, SENDER_FAULT } from '../model/failure.ts';
import { MESSAGE_ID_TAG } from '../model/feedback.ts';
import { BASIC_AUTHENTICATION } from './authentication.ts';
import {
  containsAny,
  createEventReader,
  type Diagnosis,
  type EventMeaning,
  groupMeanings,
  type MemberResult,
  type ReadResult,
  readBatch,
} from './event-reader.ts';
import { findRow, getMember, type Json, parseJson, toList, toObject, toText, unwrapSingle } from './json.ts';
import { type Provider, RELAY_DEFAULTS } from './provider.ts';

/** Except 25. https://support.sparkpost.com/docs/deliverability/bounce-classification-codes */
const BOUNCE_CLASSES = groupMeanings({
  soft: ['1', '20', '21', '22', '23', '24', '26', '40', '70'],
  hard: ['10', '30'],
  block: ['50', '51', '52', '53', '54'],
  ignored: ['60', '80', '100'],
  unsubscribed: ['90'],
});

const ADMIN_FAILURE = '25';

/** Of a report that withdraws a complaint (RFC 5965 section 7.3). Some reporters write `not_spam`. */
const COMPLAINT_WITHDRAWAL_TYPES: ReadonlySet<string> = new Set(['not-spam', 'not_spam']);

/** Of messages that SparkPost received for the account. */
const INBOUND_CLASS = 'relay_message';

/** Elsewhere, such as in `open`, `ip_address` is that of the recipient. */
const SERVER_ADDRESS_TYPES: ReadonlySet<string | null> = new Set(['bounce', 'out_of_band', 'delay', 'delivery']);
const BOUNCE_TYPES: ReadonlySet<string | null> = new Set(['bounce', 'out_of_band']);

const readEvent = createEventReader({
  sources: {
    type: ['type'],
    subtypes: [({ type, bounce_class: bounceClass }) => (BOUNCE_TYPES.has(toText(type)) ? bounceClass : null)],
    key: ['event_id'],
    messageId: ['rcpt_meta'],
    reference: ['message_id'],
    recipient: ['raw_rcpt_to', 'rcpt_to'],
    // `reason` lacks variable parts, such as addresses.
    diagnostic: ['raw_reason', 'reason', 'fbtype'],
    host: [({ type, ip_address: address }) => (SERVER_ADDRESS_TYPES.has(toText(type)) ? address : null)],
  },
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

export const SPARKPOST: Provider = {
  name: 'sparkpost',
  title: 'SparkPost',
  // https://developers.sparkpost.com/api/smtp/
  // https://support.sparkpost.com/docs/tech-resources/smtp-rest-api-performance
  relay: {
    ...RELAY_DEFAULTS,
    hosts: ['smtp.sparkpostmail.com', 'smtp.eu.sparkpostmail.com'],
    metadata: (messageId) => [
      { name: 'X-MSYS-API', value: JSON.stringify({ metadata: { [MESSAGE_ID_TAG]: messageId } }) },
    ],
    keepsEnvelopeSender: false,
    connections: 10,
    // https://support.sparkpost.com/docs/faq/error-messages-smtp
    // https://support.sparkpost.com/docs/tech-resources/preparing-for-async-suppressions
    replies: nameRules({
      'sending domain not configured': {
        codes: [550],
        enhancedCodes: ['5.7.1'],
        phrases: ['unconfigured sending domain'],
        verdict: SENDER_FAULT,
      },
      'metadata not accepted': {
        codes: [550],
        phrases: ['json parsing error in x-msys-api'],
        verdict: CONTENT_REFUSAL,
      },
      'recipient on the suppression list of SparkPost': {
        codes: [550, 554],
        phrases: ['recipient address was suppressed due to customer policy'],
        verdict: POLICY_REFUSAL,
      },
    }),
  },
  events: {
    ...BASIC_AUTHENTICATION,
    read: ({ body }) => readSparkPostEvents(parseJson(body)),
  },
};

function readSparkPostEvents(value: unknown): ReadResult {
  if (typeof value !== 'object' || value === null) return { kind: 'broken', reason: 'the body is not a JSON array' };
  return readBatch(toList(value), readSparkPostEvent);
}

/** In a test of the webhook, `msys` is empty. */
function readSparkPostEvent(member: Json): MemberResult {
  const msys = toObject(getMember(member, 'msys'));
  if (msys === null) return 'broken';
  const [entry] = Object.entries(msys);
  if (entry === undefined || entry[0] === INBOUND_CLASS) return 'ignored';
  const event = toObject(unwrapSingle(entry[1]));
  return event === null ? 'broken' : readEvent(event);
}

/** https://support.sparkpost.com/docs/tech-resources/preparing-for-async-suppressions */
function decideBounceMeaning({ bounce_class: value }: Json, diagnosis: Diagnosis): EventMeaning {
  const bounceClass = toText(value);
  if (bounceClass === ADMIN_FAILURE)
    return containsAny(diagnosis.diagnostic, ['suppress']) ? 'provider-suppressed' : 'block';
  return findRow(BOUNCE_CLASSES, bounceClass) ?? 'by-text';
}

function decideRejectionMeaning(_event: Json, diagnosis: Diagnosis): EventMeaning {
  return containsAny(diagnosis.diagnostic, ['suppress', '5.1.1']) ? 'provider-suppressed' : 'block';
}

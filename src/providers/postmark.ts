/** https://postmarkapp.com/developer/webhooks/bounce-webhook and the pages on the other webhooks. */
import { MESSAGE_ID_TAG } from '../model/feedback.ts';
import { BASIC_AUTHENTICATION } from './authentication.ts';
import { createEventReader, type EventMeaning, groupMeanings, readObject } from './event-reader.ts';
import { findRow, type Json, parseJson, toBoolean, toObject, toText } from './json.ts';
import { type Provider, RELAY_DEFAULTS } from './provider.ts';

/** https://postmarkapp.com/developer/api/bounce-api#bounce-types */
const BOUNCE_TYPES = groupMeanings({
  hard: ['HardBounce', 'BadEmailAddress'],
  soft: ['SoftBounce'],
  block: [
    ...['Blocked', 'DMARCPolicy', 'SpamNotification', 'VirusNotification'],
    // The relay accepted the message, but Postmark did not send it.
    ...['Unconfirmed', 'SMTPApiError', 'TemplateRenderingFailed'],
  ],
  complaint: ['SpamComplaint'],
  'provider-suppressed': ['ManuallyDeactivated'],
  unsubscribed: ['Unsubscribe'],
  deferred: ['Transient', 'DnsError'],
  'by-text': ['Unknown'],
  // Automatic replies, or about a different message.
  ignored: ['AutoResponder', 'Subscribe', 'AddressChange', 'OpenRelayTest', 'ChallengeVerification', 'InboundError'],
});

const OTHER_BOUNCE: EventMeaning = 'soft';

const readPostmarkEvent = createEventReader({
  sources: {
    // A received message, which Postmark calls inbound, has no `RecordType`.
    type: ['RecordType', ({ FromFull: sender }) => (toObject(sender) === null ? null : 'Inbound')],
    subtypes: ['Type'],
    messageId: ['Metadata'],
    reference: ['MessageID'],
    recipient: ['Recipient', 'Email'],
    diagnostic: ['Details', 'Description', 'SuppressionReason'],
  },
  meanings: {
    Bounce: decideBounceMeaning,
    SpamComplaint: 'complaint',
    Delivery: 'delivered',
    SubscriptionChange: decideSubscriptionMeaning,
  },
  hasListReason: () => true,
});

export const POSTMARK: Provider = {
  name: 'postmark',
  title: 'Postmark',
  // https://postmarkapp.com/developer/user-guide/send-email-with-smtp
  // https://postmarkapp.com/support/article/1125-custom-metadata-faq
  // https://postmarkapp.com/support/article/do-we-have-rate-limits-for-smtp
  relay: {
    ...RELAY_DEFAULTS,
    hosts: ['smtp.postmarkapp.com', 'smtp-broadcasts.postmarkapp.com'],
    parameters: ['stream'],
    metadata: (messageId, { stream }) => [
      { name: `X-PM-Metadata-${MESSAGE_ID_TAG}`, value: messageId },
      { name: 'X-PM-KeepID', value: 'true' },
      ...(stream === undefined ? [] : [{ name: 'X-PM-Message-Stream', value: stream }]),
    ],
    keepsEnvelopeSender: false,
    maxMessageBytes: 10 * 1024 * 1024,
    // No reply is documented: a failure is reported as a bounce of the type SMTPApiError.
    connections: 10,
  },
  events: {
    ...BASIC_AUTHENTICATION,
    read: ({ body }) => readObject(parseJson(body), readPostmarkEvent),
  },
};

function decideBounceMeaning({ Type: type }: Json): EventMeaning {
  return findRow(BOUNCE_TYPES, toText(type)) ?? OTHER_BOUNCE;
}

/** https://postmarkapp.com/developer/webhooks/subscription-change-webhook */
function decideSubscriptionMeaning({
  SuppressSending: suppressSending,
  SuppressionReason: reason,
}: Json): EventMeaning {
  const isSuppressed = toBoolean(suppressSending);
  if (isSuppressed === false) return 'reactivated';
  switch (toText(reason)) {
    case 'HardBounce':
      return 'hard';
    case 'SpamComplaint':
      return 'complaint';
    case null:
      // Without both members, it may be a reactivation.
      return isSuppressed === true ? 'unsubscribed' : 'ignored';
    default:
      return 'unsubscribed';
  }
}

/**
 * Reads the webhooks of Postmark. The type is in `RecordType`. A bounce also has a `Type`.
 * https://postmarkapp.com/developer/webhooks/bounce-webhook and the pages on the other webhooks.
 */
import { authenticateByAuthorization, createAuthenticatorFactory, parseBasicSecret } from '../authentication.ts';
import { readObject } from '../batch.ts';
import type { EventMeaning } from '../event.ts';
import { createEventReader } from '../event-shape.ts';
import { findRow, type Json, parseJson, toBoolean, toObject, toText } from '../json.ts';
import type { EventFormat } from '../provider.ts';

/** The meaning of each `Type` of a bounce. https://postmarkapp.com/developer/api/bounce-api#bounce-types */
const BOUNCE_TYPES: Readonly<Record<string, EventMeaning>> = {
  HardBounce: 'hard',
  BadEmailAddress: 'hard',
  SoftBounce: 'soft',
  Blocked: 'block',
  DMARCPolicy: 'block',
  SpamNotification: 'block',
  SpamComplaint: 'complaint',
  ManuallyDeactivated: 'provider-suppressed',
  Unsubscribe: 'unsubscribed',
  Transient: 'deferred',
  DnsError: 'deferred',
  Unknown: 'by-text',
  VirusNotification: 'block',
  // For the next three types, the relay accepted the message, but Postmark did not send it.
  Unconfirmed: 'block',
  SMTPApiError: 'block',
  TemplateRenderingFailed: 'block',
  // The next six types are automatic replies or concern a different message. They do not mean that the message failed.
  AutoResponder: 'ignored',
  Subscribe: 'ignored',
  AddressChange: 'ignored',
  OpenRelayTest: 'ignored',
  ChallengeVerification: 'ignored',
  InboundError: 'ignored',
};

/** The meaning of a bounce whose `Type` is not in `BOUNCE_TYPES`. Such a bounce suppresses no recipient. */
const OTHER_BOUNCE: EventMeaning = 'soft';

const readPostmarkEvent = createEventReader({
  sources: {
    // A received message, which Postmark calls inbound, has no `RecordType`.
    type: ['RecordType', ({ FromFull: sender }) => (toObject(sender) === null ? null : 'Inbound')],
    subtypes: ['Type'],
    messageId: ['Metadata'],
    reference: ['MessageID'],
    recipient: ['Recipient', 'Email'],
    at: ['BouncedAt', 'DeliveredAt', 'ChangedAt'],
    diagnostic: ['Details', 'Description', 'SuppressionReason'],
  },
  meanings: {
    Bounce: decideBounceMeaning,
    SpamComplaint: 'complaint',
    Delivery: 'delivered',
    SubscriptionChange: decideSubscriptionMeaning,
  },
  listReason: () => 'manual',
});

export const POSTMARK_EVENTS: EventFormat = {
  secretForm: 'USER:PASSWORD',
  secretExample: 'postrider:4ad0c3f1e7b2',
  createAuthenticator: createAuthenticatorFactory(parseBasicSecret, authenticateByAuthorization),
  authenticatesByHeader: true,
  read: ({ body }) => readObject(parseJson(body), readPostmarkEvent),
  storeFailureStatus: 503,
  table: [
    { type: 'Bounce, Type HardBounce', meaning: 'hard', sample: 'bounce-hard-bounce.json' },
    { type: 'Bounce, Type BadEmailAddress', meaning: 'hard', sample: 'bounce-bad-email-address.json' },
    { type: 'Bounce, Type SoftBounce', meaning: 'soft', sample: 'bounce-soft-bounce.json' },
    { type: 'Bounce, Type Blocked', meaning: 'block', sample: 'bounce-blocked.json' },
    { type: 'Bounce, Type DMARCPolicy', meaning: 'block', sample: 'bounce-dmarc-policy.json' },
    { type: 'Bounce, Type SpamNotification', meaning: 'block', sample: 'bounce-spam-notification.json' },
    {
      type: 'Bounce, Type ManuallyDeactivated',
      meaning: 'provider-suppressed',
      sample: 'bounce-manually-deactivated.json',
    },
    { type: 'Bounce, Type Unsubscribe', meaning: 'unsubscribed', sample: 'bounce-unsubscribe.json' },
    { type: 'Bounce, Type Transient', meaning: 'deferred', sample: 'bounce-transient.json' },
    { type: 'Bounce, Type DnsError', meaning: 'deferred', sample: 'bounce-dns-error.json' },
    { type: 'Bounce, Type AutoResponder', meaning: 'ignored', sample: 'bounce-auto-responder.json' },
    { type: 'Bounce, Type Unknown', meaning: 'by-text', sample: 'bounce-unknown.json' },
    { type: 'Bounce, Type VirusNotification', meaning: 'block', sample: 'bounce-virus-notification.json' },
    { type: 'Bounce, Type Unconfirmed', meaning: 'block', sample: 'bounce-unconfirmed.json' },
    { type: 'Bounce, Type SMTPApiError', meaning: 'block', sample: 'bounce-smtp-api-error.json' },
    { type: 'Bounce, Type TemplateRenderingFailed', meaning: 'block', sample: 'bounce-template-rendering-failed.json' },
    { type: 'Bounce, Type Subscribe', meaning: 'ignored', sample: 'bounce-subscribe.json' },
    { type: 'Bounce, Type AddressChange', meaning: 'ignored', sample: 'bounce-address-change.json' },
    { type: 'Bounce, Type OpenRelayTest', meaning: 'ignored', sample: 'bounce-open-relay-test.json' },
    { type: 'Bounce, Type ChallengeVerification', meaning: 'ignored', sample: 'bounce-challenge-verification.json' },
    { type: 'Bounce, Type InboundError', meaning: 'ignored', sample: 'bounce-inbound-error.json' },
    { type: 'Bounce, another Type', meaning: 'soft', sample: 'bounce-undocumented-type.json' },
    { type: 'SpamComplaint', meaning: 'complaint', sample: 'spam-complaint.json' },
    { type: 'Delivery', meaning: 'delivered', sample: 'delivery.json' },
    {
      type: 'SubscriptionChange, SuppressionReason HardBounce',
      meaning: 'hard',
      sample: 'subscription-change-hard-bounce.json',
    },
    {
      type: 'SubscriptionChange, SuppressionReason SpamComplaint',
      meaning: 'complaint',
      sample: 'subscription-change-spam-complaint.json',
    },
    {
      type: 'SubscriptionChange, SuppressionReason ManualSuppression',
      meaning: 'unsubscribed',
      sample: 'subscription-change-manual-suppression.json',
    },
    {
      type: 'SubscriptionChange, SuppressSending false',
      meaning: 'reactivated',
      sample: 'subscription-change-reactivated.json',
    },
    { type: 'Open', meaning: 'ignored', sample: 'open.json' },
    { type: 'Click', meaning: 'ignored', sample: 'click.json' },
    { type: 'Inbound', meaning: 'ignored', sample: 'inbound.json' },
  ],
  sources: ['https://postmarkapp.com/developer/webhooks/webhooks-overview'],
};

function decideBounceMeaning({ Type: type }: Json): EventMeaning {
  return findRow(BOUNCE_TYPES, toText(type)) ?? OTHER_BOUNCE;
}

/**
 * Returns the meaning of a change of the suppression list of Postmark.
 * https://postmarkapp.com/developer/webhooks/subscription-change-webhook
 */
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
      // If `SuppressSending` and `SuppressionReason` are missing, the event is ignored, because it may be a
      // reactivation.
      return isSuppressed === true ? 'unsubscribed' : 'ignored';
    default:
      return 'unsubscribed';
  }
}

/**
 * Reads the webhooks of Postmark. The type is in `RecordType`. A bounce also has a `Type`.
 * https://postmarkapp.com/developer/webhooks/bounce-webhook and the pages on the other webhooks.
 */
import { authenticateByAuthorization, createAuthenticateBy, parseBasicSecret } from '../authentication.ts';
import {
  createFact,
  type Diagnosis,
  type EventMeaning,
  NO_EVENTS,
  type ProviderEvent,
  type ProviderFact,
  type ReadResult,
} from '../event.ts';
import {
  digestOf,
  type Json,
  messageIdOfMetadata,
  parseJson,
  rowOf,
  timeOfIsoText,
  toBoolean,
  toId,
  toObject,
  toText,
} from '../json.ts';
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
  AutoResponder: 'ignored',
};

export const POSTMARK_EVENTS: EventFormat = {
  secretForm: 'USER:PASSWORD',
  secretExample: 'postrider:4ad0c3f1e7b2',
  createAuthenticate: createAuthenticateBy(parseBasicSecret, authenticateByAuthorization),
  authenticatesByHeader: true,
  read: ({ body }) => readPostmarkEvents(parseJson(body)),
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

function readPostmarkEvents(value: unknown): ReadResult {
  const body = toObject(value);
  if (body === null) return { kind: 'broken', reason: 'the body is not a JSON object' };
  const type = toText(body.RecordType);
  if (type === null) return { kind: 'broken', reason: 'the body has no RecordType' };
  const fact = factOf(type, body);
  if (fact === null) return { ...NO_EVENTS, ignored: 1 };
  return { kind: 'events', events: [createEvent(type, body, fact)], ignored: 0, broken: 0 };
}

function createEvent(type: string, body: Json, fact: ProviderFact): ProviderEvent {
  const bounceType = toText(body.Type);
  return {
    type: bounceType === null ? type : `${type}/${bounceType}`,
    key: digestOf(body),
    messageId: messageIdOfMetadata(body.Metadata),
    reference: toId(body.MessageID),
    recipient: toText(body.Recipient) ?? toText(body.Email),
    at: timeOfIsoText(body.BouncedAt ?? body.DeliveredAt ?? body.ChangedAt),
    fact,
  };
}

/** Returns the fact of the event, or null if Postrider ignores the event. */
function factOf(type: string, body: Json): ProviderFact | null {
  switch (type) {
    case 'Bounce':
    case 'SpamComplaint':
      return createFact(rowOf(BOUNCE_TYPES, toText(body.Type) ?? type) ?? 'ignored', diagnosisOf(body), 'manual');
    case 'Delivery':
      return { kind: 'delivered', diagnosis: diagnosisOf(body) };
    case 'SubscriptionChange':
      return factOfSubscription(body);
    default:
      return null;
  }
}

/**
 * Returns the fact of a change of the suppression list of Postmark.
 * https://postmarkapp.com/developer/webhooks/subscription-change-webhook
 */
function factOfSubscription(body: Json): ProviderFact {
  const reason = toText(body.SuppressionReason);
  const diagnosis = { status: null, diagnostic: reason, host: null };
  if (toBoolean(body.SuppressSending) === false) return { kind: 'reactivated', diagnosis };
  switch (reason) {
    case 'HardBounce':
      return { kind: 'bounce', failureClass: 'hard', diagnosis };
    case 'SpamComplaint':
      return { kind: 'complaint', diagnosis };
    default:
      return { kind: 'unsubscribed', diagnosis };
  }
}

function diagnosisOf(body: Json): Diagnosis {
  return { status: null, diagnostic: toText(body.Details) ?? toText(body.Description), host: null };
}

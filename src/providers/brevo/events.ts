/**
 * Reads the transactional webhooks of Brevo. The type is in `event`. The body is one event, or an array of events if
 * the webhook is batched.
 * https://developers.brevo.com/docs/transactional-webhooks
 */
import { authenticateByAuthorization, createAuthenticateBy, parseBasicOrBearerSecret } from '../authentication.ts';
import { type MemberResult, readObjectOrArray } from '../batch.ts';
import { createFact, type EventMeaning, type ProviderListReason } from '../event.ts';
import {
  digestOf,
  type Json,
  messageIdOfHeader,
  messageIdOfMetadata,
  parseJson,
  rowOf,
  timeOfUnixSeconds,
  toId,
  toNumber,
  toText,
} from '../json.ts';
import type { EventFormat } from '../provider.ts';

/**
 * The meaning of each `event`. An event without a row is ignored. Brevo writes both `unsubscribe` and `unsubscribed`.
 */
const EVENT_TYPES: Readonly<Record<string, EventMeaning>> = {
  hard_bounce: 'hard',
  invalid_email: 'hard',
  soft_bounce: 'soft',
  error: 'soft',
  spam: 'complaint',
  complaint: 'complaint',
  blocked: 'provider-suppressed',
  unsubscribe: 'unsubscribed',
  unsubscribed: 'unsubscribed',
  deferred: 'deferred',
  delivered: 'delivered',
};

/** Phrases in the `reason` of a blocked message, for example in `blocked : due to unsubscribed user`. */
const LIST_REASONS: readonly (readonly [part: string, reason: ProviderListReason])[] = [
  ['unsubscribe', 'unsubscribe'],
  ['bounce', 'bounce'],
  ['spam', 'complaint'],
  ['complain', 'complaint'],
  ['admin', 'manual'],
];

/** The maximum Unix time in seconds, in the year 5138. A greater value is a time in milliseconds. */
const MAX_SECONDS = 1e11;

export const BREVO_EVENTS: EventFormat = {
  secretForm: 'USER:PASSWORD, or Bearer TOKEN',
  secretExample: 'postrider:4ad0c3f1e7b2',
  createAuthenticate: createAuthenticateBy(parseBasicOrBearerSecret, authenticateByAuthorization),
  authenticatesByHeader: true,
  read: ({ body }) => readObjectOrArray(parseJson(body), readBrevoEvent),
  // Brevo discards an event after any 5xx and after any 4xx except 429.
  storeFailureStatus: 429,
  table: [
    { type: 'hard_bounce', meaning: 'hard', sample: 'hard-bounce.json' },
    { type: 'invalid_email', meaning: 'hard', sample: 'invalid-email.json' },
    { type: 'soft_bounce', meaning: 'soft', sample: 'soft-bounce.json' },
    { type: 'error', meaning: 'soft', sample: 'error.json' },
    { type: 'spam', meaning: 'complaint', sample: 'spam.json' },
    { type: 'complaint', meaning: 'complaint', sample: 'complaint.json' },
    { type: 'blocked', meaning: 'provider-suppressed', sample: 'blocked.json' },
    { type: 'unsubscribe', meaning: 'unsubscribed', sample: 'unsubscribe.json' },
    { type: 'unsubscribed', meaning: 'unsubscribed', sample: 'unsubscribed.json' },
    { type: 'deferred', meaning: 'deferred', sample: 'deferred.json' },
    { type: 'delivered', meaning: 'delivered', sample: 'delivered.json' },
    { type: 'request', meaning: 'ignored', sample: 'request.json' },
    { type: 'opened', meaning: 'ignored', sample: 'opened.json' },
    { type: 'unique_opened', meaning: 'ignored', sample: 'unique-opened.json' },
    { type: 'proxy_open', meaning: 'ignored', sample: 'proxy-open.json' },
    { type: 'unique_proxy_open', meaning: 'ignored', sample: 'unique-proxy-open.json' },
    { type: 'click', meaning: 'ignored', sample: 'click.json' },
  ],
  sources: [
    'https://developers.brevo.com/docs/transactional-webhooks',
    'https://developers.brevo.com/docs/batch-webhooks',
    'https://developers.brevo.com/docs/retry-mechanism',
    'https://developers.brevo.com/docs/username-and-password-authentication',
  ],
};

function readBrevoEvent(event: Json): MemberResult {
  const type = toText(event.event);
  if (type === null) return 'broken';
  const diagnostic = toText(event.reason);
  const diagnosis = { status: null, diagnostic, host: null };
  const fact = createFact(rowOf(EVENT_TYPES, type) ?? 'ignored', diagnosis, listReasonOf(diagnostic));
  if (fact === null) return 'ignored';
  return {
    type,
    // `id` is the id of the webhook. Two webhooks send the same event with different ids.
    key: digestOf({ ...event, id: null }),
    messageId: messageIdOfMetadata(event['X-Mailin-custom']) ?? messageIdOfHeader(event['message-id']),
    reference: toId(event['message-id']),
    recipient: toText(event.email),
    at: timeOf(event),
    fact,
  };
}

/**
 * Returns the time of the event in milliseconds since the epoch, or null. Brevo documents `ts_epoch` in milliseconds,
 * but its examples contain seconds. `date` is not read, because it has no time zone.
 */
function timeOf({ ts_epoch: epoch, ts_event: seconds, ts }: Json): number | null {
  const found = toNumber(epoch);
  const at = found !== null && found > MAX_SECONDS ? timeOfUnixSeconds(found / 1000) : timeOfUnixSeconds(epoch);
  return at ?? timeOfUnixSeconds(seconds) ?? timeOfUnixSeconds(ts);
}

function listReasonOf(diagnostic: string | null): ProviderListReason {
  const text = diagnostic?.toLowerCase() ?? '';
  return LIST_REASONS.find(([part]) => text.includes(part))?.[1] ?? 'unknown';
}

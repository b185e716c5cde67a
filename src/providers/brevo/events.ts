/**
 * Reads the transactional webhooks of Brevo. The type is in `event`. The body is one event, or an array of events if
 * the webhook is batched.
 * https://developers.brevo.com/docs/transactional-webhooks
 */
import {
  authenticateByAuthorization,
  createAuthenticatorFactory,
  parseBasicOrBearerSecret,
} from '../authentication.ts';
import { readObjectOrArray } from '../batch.ts';
import type { ProviderListReason } from '../event.ts';
import { createEventReader, findListReason } from '../event-shape.ts';
import { computeDigest, type Json, parseJson, toNumber } from '../json.ts';
import type { EventFormat } from '../provider.ts';

/** Phrases in the `reason` of a blocked message, for example in `blocked : due to unsubscribed user`. */
const LIST_REASONS: readonly (readonly [part: string, reason: ProviderListReason])[] = [
  ['unsubscribe', 'unsubscribe'],
  ['bounce', 'bounce'],
  ['spam', 'complaint'],
  ['complain', 'complaint'],
  ['admin', 'manual'],
];

/**
 * The maximum value of `ts_epoch` that is read as seconds (in the year 5138). A greater value is read as milliseconds.
 */
const MAX_SECONDS = 1e11;

const readBrevoEvent = createEventReader({
  sources: {
    type: ['event'],
    // `id` is the id of the webhook. Two webhooks send the same event with different ids.
    key: [(event) => computeDigest({ ...event, id: null })],
    messageId: ['X-Mailin-custom', 'message-id'],
    reference: ['message-id'],
    recipient: ['email'],
    // `date` is not read, because it has no time zone.
    at: [readEpochSeconds, 'ts_event', 'ts'],
    diagnostic: ['reason'],
  },
  meanings: {
    hard_bounce: 'hard',
    invalid_email: 'hard',
    soft_bounce: 'soft',
    error: 'soft',
    spam: 'complaint',
    complaint: 'complaint',
    blocked: 'provider-suppressed',
    // Brevo uses both `unsubscribe` and `unsubscribed`.
    unsubscribe: 'unsubscribed',
    unsubscribed: 'unsubscribed',
    deferred: 'deferred',
    delivered: 'delivered',
  },
  listReason: (_event, { diagnostic }) => findListReason(diagnostic, LIST_REASONS),
});

export const BREVO_EVENTS: EventFormat = {
  secretForm: 'USER:PASSWORD, or Bearer TOKEN',
  secretExample: 'postrider:4ad0c3f1e7b2',
  createAuthenticator: createAuthenticatorFactory(parseBasicOrBearerSecret, authenticateByAuthorization),
  authenticatesByHeader: true,
  read: ({ body }) => readObjectOrArray(parseJson(body), readBrevoEvent),
  // Brevo discards an event after any 5xx response and after any 4xx response except 429.
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

/** Returns `ts_epoch` in seconds, or null. Brevo documents milliseconds, but its examples contain seconds. */
function readEpochSeconds({ ts_epoch: epoch }: Json): number | null {
  const epochNumber = toNumber(epoch);
  return epochNumber !== null && epochNumber > MAX_SECONDS ? epochNumber / 1000 : epochNumber;
}

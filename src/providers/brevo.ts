/** https://developers.brevo.com/docs/transactional-webhooks. A batched body is an array. */
import { CONFIGURATION_FAULT, nameRules } from '../model/failure.ts';
import { MESSAGE_ID_TAG } from '../model/feedback.ts';
import { authenticateByAuthorization, createAuthenticatorFactory, parseBasicOrBearerSecret } from './authentication.ts';
import { containsAny, createEventReader, readObjectOrArray } from './event-reader.ts';
import { computeDigest, parseJson } from './json.ts';
import { type Provider, RELAY_DEFAULTS } from './provider.ts';

/** Phrases in the `reason` of a blocked message, for example in `blocked : due to unsubscribed user`. */
const LIST_REASONS = ['unsubscribe', 'bounce', 'spam', 'complain', 'admin'];

const readBrevoEvent = createEventReader({
  sources: {
    type: ['event'],
    // `id` is the id of the webhook. Two webhooks send the same event with different ids.
    key: [(event) => computeDigest({ ...event, id: null })],
    messageId: ['X-Mailin-custom', 'message-id'],
    reference: ['message-id'],
    recipient: ['email'],
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
    unsubscribe: 'unsubscribed',
    unsubscribed: 'unsubscribed',
    deferred: 'deferred',
    delivered: 'delivered',
  },
  hasListReason: (_event, { diagnostic }) => containsAny(diagnostic, LIST_REASONS),
});

export const BREVO: Provider = {
  name: 'brevo',
  title: 'Brevo',
  // https://developers.brevo.com/docs/smtp-integration
  relay: {
    ...RELAY_DEFAULTS,
    hosts: ['smtp-relay.brevo.com'],
    metadata: (messageId) => [{ name: 'X-Mailin-custom', value: JSON.stringify({ [MESSAGE_ID_TAG]: messageId }) }],
    // The texts are from public logs of the relay. https://help.brevo.com/hc/en-us/articles/115000188150
    replies: nameRules({
      'address of this service not authorized': {
        codes: [525],
        phrases: ['unauthorized ip address'],
        verdict: CONFIGURATION_FAULT,
      },
      'account not activated': {
        codes: [450, 502],
        phrases: ['smtp account is not yet activated'],
        verdict: CONFIGURATION_FAULT,
      },
    }),
  },
  events: {
    secretForm: 'USER:PASSWORD, or Bearer TOKEN',
    secretExample: 'postrider:4ad0c3f1e7b2',
    createAuthenticator: createAuthenticatorFactory(parseBasicOrBearerSecret, authenticateByAuthorization),
    authenticatesByHeader: true,
    read: ({ body }) => readObjectOrArray(parseJson(body), readBrevoEvent),
    // Brevo discards an event after any 5xx response and after any 4xx response except 429.
    storeFailureStatus: 429,
  },
};

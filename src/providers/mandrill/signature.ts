/**
 * Authenticates the webhooks of Mandrill by the HMAC-SHA1 of the URL and the form fields, in base64.
 * https://mailchimp.com/developer/transactional/guides/track-respond-activity-webhooks/#authenticating-webhook-requests
 */
import { AUTHENTICATED, createRefusal, isBase64Hmac, matchesAny } from '../authentication.ts';
import type { AuthenticationResult, ProviderRequest } from '../event.ts';
import { type FormField, findField, parseForm } from '../form.ts';

export const EVENTS_FIELD = 'mandrill_events';

/**
 * The publicly known key with which Mandrill signs the request that tests the URL of a new webhook. The key of the
 * webhook does not exist before this test has succeeded.
 */
const TEST_KEY = 'test-webhook';
const MAX_TEST_BYTES = 4_096;
/** The length of an HMAC-SHA1 in base64. */
const SIGNATURE_LENGTH = 28;

export function authenticateByUrlAndForm(
  { headers, body, url }: ProviderRequest,
  keys: readonly string[],
): AuthenticationResult {
  if (url === null) return createRefusal('the signature covers the URL of the endpoint; set POSTRIDER_FEEDBACK_URL');
  const signature = headers['x-mandrill-signature'];
  if (signature === undefined) return createRefusal('the request has no X-Mandrill-Signature header field');
  // The signature covers the decoded fields, so the form is parsed before it is authenticated. A request whose
  // signature has the wrong length is refused before the form is parsed.
  if (signature.trim().length !== SIGNATURE_LENGTH)
    return createRefusal('X-Mandrill-Signature is not an HMAC-SHA1 in base64');
  const fields = parseForm(body);
  if (fields === null) return createRefusal('the body has too many form fields');
  const content =
    url +
    sortByName(fields)
      .map(({ name, value }) => name + value)
      .join('');
  return matchesAny(keys, (key) => isBase64Hmac('sha1', key, content, signature.trim()))
    ? AUTHENTICATED
    : createRefusal(
        'the signature is invalid; POSTRIDER_FEEDBACK_URL must be the registered URL without /events/mandrill',
      );
}

/**
 * Returns true if the request is the test of the URL: an empty list of events, signed with the publicly known key
 * `test-webhook`.
 */
export function isEndpointTest(request: ProviderRequest): boolean {
  if (request.body.length > MAX_TEST_BYTES) return false;
  if (authenticateByUrlAndForm(request, [TEST_KEY]).kind === 'refused') return false;
  return findField(parseForm(request.body) ?? [], EVENTS_FIELD)?.trim() === '[]';
}

/** Returns the fields, sorted by name in the order of UTF-16 code units. */
function sortByName(fields: readonly FormField[]): readonly FormField[] {
  return fields.toSorted((one, other) => (one.name < other.name ? -1 : one.name > other.name ? 1 : 0));
}

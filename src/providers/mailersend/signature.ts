/**
 * Authenticates the webhooks of MailerSend by the HMAC-SHA256 of the body.
 * https://developers.mailersend.com/api/v1/webhooks.html#security
 */
import { AUTHENTICATED, createRefusal, isHexHmacSha256, matchesAny } from '../authentication.ts';
import type { AuthenticationResult, ProviderRequest } from '../event.ts';
import { parseJson, toObject } from '../json.ts';

/**
 * The publicly known secret that signs the request `webhook.test`. MailerSend saves a webhook only if the response to
 * this request is 2xx.
 */
const TEST_SECRET = 'test_Am3L1GuOIc4blLUuHqAPxxwkZaJyEk8G';
const MAX_TEST_BYTES = 4_096;

export function authenticateBySignature(
  { headers, body }: ProviderRequest,
  secrets: readonly string[],
): AuthenticationResult {
  const { signature } = headers;
  if (signature === undefined) return createRefusal('the request has no Signature header field');
  const normalizedSignature = signature.trim().toLowerCase();
  return matchesAny(secrets, (secret) => isHexHmacSha256(secret, body, normalizedSignature))
    ? AUTHENTICATED
    : createRefusal('the signature is invalid');
}

/**
 * Returns true for the request with which MailerSend tests the URL. The signing secret does not exist before the test
 * has succeeded.
 */
export function isEndpointTest(request: ProviderRequest): boolean {
  if (request.body.length > MAX_TEST_BYTES) return false;
  if (authenticateBySignature(request, [TEST_SECRET]).kind === 'refused') return false;
  return toObject(parseJson(request.body))?.type === 'webhook.test';
}

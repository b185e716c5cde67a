/**
 * Authenticates the webhooks of Resend by their Svix signature: the HMAC-SHA256 of id, timestamp and body.
 * https://resend.com/docs/webhooks/verify-webhooks-requests,
 * https://docs.svix.com/receiving/verifying-payloads/how-manual
 */
import { createHmac } from 'node:crypto';
import {
  AUTHENTICATED,
  createRefusal,
  equalsInConstantTime,
  matchesAny,
  type ParsedSecret,
} from '../authentication.ts';
import type { AuthenticationResult, ProviderRequest } from '../event.ts';
import { toNumber } from '../json.ts';

const SECRET_PREFIX = 'whsec_';
const MIN_KEY_BYTES = 16;
const MAX_CLOCK_DIFFERENCE_SECONDS = 300;

/** Parses a signing secret: `whsec_`, followed by the key in base64. Returns the key. */
export function parseWebhookSecret(text: string): ParsedSecret<Buffer> {
  if (!text.startsWith(SECRET_PREFIX))
    return { ok: false, fault: `the secret does not begin with ${SECRET_PREFIX}; copy it from Resend` };
  const encodedKey = text.slice(SECRET_PREFIX.length);
  const key = Buffer.from(encodedKey, 'base64');
  if (key.toString('base64') !== encodedKey || key.length < MIN_KEY_BYTES)
    return { ok: false, fault: `the text after ${SECRET_PREFIX} is not a key in base64; copy the secret from Resend` };
  return { ok: true, secret: key };
}

/**
 * Authenticates a request by its signatures and its timestamp. The timestamp may differ from `now` by at most 5
 * minutes.
 */
export function authenticateBySvix(
  { headers, body }: ProviderRequest,
  keys: readonly Buffer[],
  now: number,
): AuthenticationResult {
  const { 'svix-id': id, 'svix-timestamp': timestamp, 'svix-signature': signatures } = headers;
  if (id === undefined || timestamp === undefined || signatures === undefined)
    return createRefusal('the request lacks one of the header fields svix-id, svix-timestamp and svix-signature');
  const content = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body]);
  const requestSignatures = signatures.split(' ');
  const isSigned = matchesAny(keys, (key) => {
    const expectedSignature = `v1,${createHmac('sha256', key).update(content).digest('base64')}`;
    return matchesAny(requestSignatures, (signature) => equalsInConstantTime(expectedSignature, signature));
  });
  if (!isSigned) return createRefusal('the signature is invalid');
  const seconds = toNumber(timestamp);
  if (seconds === null || Math.abs(now / 1000 - seconds) > MAX_CLOCK_DIFFERENCE_SECONDS)
    return createRefusal('the timestamp of the signature differs from the clock by more than 5 minutes');
  return AUTHENTICATED;
}

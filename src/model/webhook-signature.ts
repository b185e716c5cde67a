/**
 * Signs webhooks according to version 1 of the Standard Webhooks specification. Pure.
 *
 * The signature is the HMAC-SHA256 of `ID.TIMESTAMP.BODY`. The key is the decoded secret. During a rotation an endpoint
 * has several secrets, and the header `webhook-signature` contains one signature for each secret.
 */
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';

/** The prefix of a signing secret, which precedes the base64 encoding of the key. */
const SECRET_PREFIX = 'whsec_';
/** The size of a new key. The specification allows 24 to 64 bytes. */
const KEY_BYTES = 32;
const MIN_KEY_BYTES = 24;
const MAX_KEY_BYTES = 64;

/** The headers that identify and authenticate an attempt. */
export interface SignatureHeaders {
  /** The id of the event, the same in every attempt. */
  readonly 'webhook-id': string;
  /** The time of the attempt in Unix seconds. */
  readonly 'webhook-timestamp': string;
  /** One signature `v1,BASE64` for each secret, separated by spaces. */
  readonly 'webhook-signature': string;
}

/** Creates a signing secret, such as `whsec_…`. `random` returns cryptographically secure random bytes. */
export function createSigningSecret(random: (bytes: number) => Buffer): string {
  return SECRET_PREFIX + random(KEY_BYTES).toString('base64');
}

/** Returns true for a signing secret: `whsec_`, followed by the base64 encoding of 24 to 64 bytes. */
export function isSigningSecret(text: string): boolean {
  if (!text.startsWith(SECRET_PREFIX)) return false;
  const encodedKey = text.slice(SECRET_PREFIX.length);
  const key = Buffer.from(encodedKey, 'base64');
  return key.length >= MIN_KEY_BYTES && key.length <= MAX_KEY_BYTES && key.toString('base64') === encodedKey;
}

/** Returns the key of a signing secret, for `signWebhook`. Throws if `isSigningSecret` returns false for the secret. */
export function createSigningKey(secret: string): KeyObject {
  if (!isSigningSecret(secret)) throw new Error('a signing secret of a webhook is invalid');
  return createSecretKey(secret.slice(SECRET_PREFIX.length), 'base64');
}

/**
 * Returns the headers of an attempt. `id` must not contain a full stop, because the full stop separates the signed
 * parts. `timestampMs` is the time of the attempt in milliseconds since the epoch. `secrets` has at least one element:
 * a secret that `isSigningSecret` accepts, or the key of such a secret. With a key the function is faster than with a
 * secret, which it must decode. Throws if the id or a secret is invalid.
 */
export function signWebhook(
  id: string,
  timestampMs: number,
  body: Uint8Array,
  secrets: readonly (string | KeyObject)[],
): SignatureHeaders {
  if (id === '' || id.includes('.')) throw new Error('the id of a webhook is empty or contains a full stop');
  if (secrets.length === 0) throw new Error('a webhook needs a signing secret');
  const timestamp = String(Math.floor(timestampMs / 1000));
  const signatures = secrets.map((secret) => {
    const key = typeof secret === 'string' ? createSigningKey(secret) : secret;
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`;
  });
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') };
}

/**
 * Signs webhooks as version 1 of Standard Webhooks: the HMAC-SHA256 of `ID.TIMESTAMP.BODY` with the decoded secret.
 * During a rotation there is one signature for each secret. Pure.
 */
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';

const SECRET_PREFIX = 'whsec_';
/** The specification allows 24 to 64 bytes. */
const KEY_BYTES = 32;
const MIN_KEY_BYTES = 24;
const MAX_KEY_BYTES = 64;

export interface SignatureHeaders {
  readonly 'webhook-id': string;
  /** Unix seconds. */
  readonly 'webhook-timestamp': string;
  /** `v1,BASE64` for each secret, separated by spaces. */
  readonly 'webhook-signature': string;
}

export function createSigningSecret(random: (bytes: number) => Buffer): string {
  return SECRET_PREFIX + random(KEY_BYTES).toString('base64');
}

export function isSigningSecret(text: string): boolean {
  if (!text.startsWith(SECRET_PREFIX)) return false;
  const encodedKey = text.slice(SECRET_PREFIX.length);
  const key = Buffer.from(encodedKey, 'base64');
  return key.length >= MIN_KEY_BYTES && key.length <= MAX_KEY_BYTES && key.toString('base64') === encodedKey;
}

export function createSigningKey(secret: string): KeyObject {
  if (!isSigningSecret(secret)) throw new Error('a signing secret of a webhook is invalid');
  return createSecretKey(secret.slice(SECRET_PREFIX.length), 'base64');
}

/**
 * `id` contains no full stop, which separates the signed parts. `secrets` has at least one element. A key is faster
 * than a secret, which must be decoded. Throws if the id or a secret is invalid.
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

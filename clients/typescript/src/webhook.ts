/**
 * Verifies a webhook of Postrider by the rules of Standard Webhooks: HMAC-SHA256 over `id.timestamp.body`, header
 * `webhook-signature` with one or more signatures `v1,BASE64`.
 *
 * Guarantees: an event is returned only if one of the signatures is valid for the received body and one of the secrets,
 * and the timestamp is within the tolerance. Signatures are compared in constant time. The body is hashed once per
 * secret, regardless of the number of signatures in the header.
 * @see https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
import { WebhookError } from './errors.ts';
import type { WebhookEvent } from './events.ts';
import { parseJson } from './json.ts';

/**
 * The headers of a request: `Headers`, a Map or other pairs, or an object such as `request.headers` of Node. The letter
 * case of the names is ignored.
 */
export type WebhookHeaders =
  | Iterable<readonly [string, string]>
  | { readonly [name: string]: string | readonly string[] | undefined };

/** Options of `verifyWebhook`. */
export interface VerifyOptions {
  /** The largest difference between `webhook-timestamp` and the clock. Default: 300,000 (5 minutes). */
  readonly toleranceMs?: number;
  /** Returns the current time in milliseconds since 1970. Default: `Date.now`. For tests. */
  readonly now?: () => number;
}

/** Standard Webhooks requires 24 to 64 random bytes. A shorter key would be easier to guess. */
const MIN_SECRET_BYTES = 24;

/**
 * Returns the event of a webhook request. Every attempt to deliver an event has the same `id`, so that the receiver can
 * ignore repetitions.
 *
 * @param body the received bytes, unchanged: a string or a Uint8Array, not a parsed object
 * @param headers the headers of the request
 * @param secret the secret that `webhook create` printed (`whsec_…`), or several secrets during a rotation
 * @throws WebhookError (the promise rejects) with `kind`, if the request is not authentic or the arguments are invalid
 */
export async function verifyWebhook(
  body: string | Uint8Array,
  headers: WebhookHeaders,
  secret: string | readonly string[],
  { toleranceMs = 300_000, now = Date.now }: VerifyOptions = {},
): Promise<WebhookEvent> {
  const signingKeys = [secret].flat().map(decodeSecret);
  if (typeof body !== 'string' && !ArrayBuffer.isView(body))
    throw new WebhookError('invalid-body', 'body must be the received text or bytes, not a parsed object');
  // Both the signature check and the parser use this text. Bytes that are not UTF-8 become U+FFFD, so their signature
  // does not match.
  const text = typeof body === 'string' ? body : new TextDecoder('utf-8', { ignoreBOM: true }).decode(body);

  // A dot separates the parts of the signed content, so an id with a dot would make this content ambiguous.
  const id = readHeader(headers, 'webhook-id', /^[^.]+$/);
  const timestamp = readHeader(headers, 'webhook-timestamp', /^\d+$/);
  const signatures = readHeader(headers, 'webhook-signature', /./).split(' ');
  if (!(Math.abs(now() - Number(timestamp) * 1000) <= toleranceMs))
    throw new WebhookError('expired', 'webhook-timestamp is too old or too new; check the clock');

  const content = new TextEncoder().encode(`${id}.${timestamp}.${text}`);
  let isValid = false;
  for (const key of signingKeys) {
    const expectedSignature = await signContent(key, content);
    for (const signature of signatures) if (isEqual(signature, expectedSignature)) isValid = true;
  }
  if (!isValid)
    throw new WebhookError('invalid-signature', 'no valid signature; check the secret, and that the body is unchanged');
  const event = parseJson(text);
  if (typeof event?.type !== 'string' || typeof event.data !== 'object' || event.data === null)
    throw new WebhookError('invalid-payload', 'the signed body is not an event');
  return { ...event, id } as WebhookEvent;
}

function decodeSecret(secret: string): Uint8Array<ArrayBuffer> {
  let binaryText = '';
  try {
    binaryText = atob(`${secret}`.trim().replace('whsec_', ''));
  } catch {
    // `binaryText` remains empty, so the error below is thrown. This error has no `cause`, because the error of `atob`
    // could contain the secret.
  }
  if (binaryText.length < MIN_SECRET_BYTES)
    throw new WebhookError('invalid-secret', 'secret must be the text whsec_… of the endpoint');
  return Uint8Array.from(binaryText, (character) => character.charCodeAt(0));
}

/**
 * Returns the value of a header. Joins several values with commas, as `Headers` does. Ignores the letter case of the
 * name.
 * @throws WebhookError if the header is absent or does not match `pattern`
 */
function readHeader(headers: WebhookHeaders, name: string, pattern: RegExp): string {
  const pairs = Symbol.iterator in headers ? headers : Object.entries(headers);
  const value = [...pairs].flatMap(([key, values]) => (key.toLowerCase() === name ? (values ?? []) : [])).join();
  if (!pattern.test(value)) throw new WebhookError('invalid-header', `${name} is absent or malformed`);
  return value;
}

async function signContent(key: Uint8Array<ArrayBuffer>, content: Uint8Array<ArrayBuffer>): Promise<string> {
  const hmacKey = await crypto.subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  const mac = new Uint8Array(await crypto.subtle.sign('HMAC', hmacKey, content));
  return `v1,${btoa(String.fromCharCode(...mac))}`;
}

/** Compares two texts. The duration of the comparison depends only on the lengths of the texts. */
function isEqual(text: string, expected: string): boolean {
  let differingBits = text.length ^ expected.length;
  for (let index = 0; index < expected.length; index += 1)
    differingBits |= text.charCodeAt(index) ^ expected.charCodeAt(index);
  return differingBits === 0;
}

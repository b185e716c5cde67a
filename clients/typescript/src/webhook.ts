/**
 * Verifies a webhook of Postrider by the rules of Standard Webhooks: HMAC-SHA256 over `id.timestamp.body`, header
 * `webhook-signature` with one or more signatures `v1,BASE64`.
 *
 * Guarantees: an event is returned only if one of the signatures belongs to the received bytes and one of the secrets, and the
 * timestamp is within the tolerance. Signatures are compared in constant time. The body is hashed once per secret, however many
 * signatures the header has.
 * @see https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
import { WebhookError } from './errors.ts';
import type { WebhookEvent } from './events.ts';
import { isObject, parseObject } from './json.ts';

/** The headers of a request: `Headers`, a Map or other pairs, or an object such as `request.headers` of Node. Any letter case. */
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

const SECRET_PREFIX = 'whsec_';
/** Standard Webhooks requires 24 to 64 random bytes. A shorter key would be easier to guess. */
const MIN_SECRET_BYTES = 24;
const DEFAULT_TOLERANCE_MS = 300_000;

/**
 * Returns the event of a webhook request. `id` of the event is the same at every delivery of the event, so that the receiver can
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
  { toleranceMs = DEFAULT_TOLERANCE_MS, now = Date.now }: VerifyOptions = {},
): Promise<WebhookEvent> {
  const secrets = [secret].flat().map(decodeSecret);
  if (secrets.length === 0) throw invalidSecret();
  if (typeof body !== 'string' && !ArrayBuffer.isView(body))
    throw new WebhookError('invalid-body', 'The body must be the received string or Uint8Array, not a parsed object.');
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;

  const id = readHeader(headers, 'webhook-id');
  const timestamp = readHeader(headers, 'webhook-timestamp');
  const signatures = readHeader(headers, 'webhook-signature').split(' ');
  // A dot separates the parts of the signed content, so an id with a dot would be ambiguous.
  if (id.includes('.')) throw new WebhookError('invalid-header', 'The header webhook-id contains a dot.');
  if (!/^\d{1,12}$/.test(timestamp))
    throw new WebhookError('invalid-header', 'The header webhook-timestamp is not a number of seconds.');
  if (Math.abs(now() - Number(timestamp) * 1000) > toleranceMs)
    throw new WebhookError(
      'expired',
      'The header webhook-timestamp is outside the tolerance: an old request, or a wrong clock.',
    );

  const prefix = new TextEncoder().encode(`${id}.${timestamp}.`);
  const content = new Uint8Array(prefix.length + bytes.length);
  content.set(prefix);
  content.set(bytes, prefix.length);
  let isValid = false;
  for (const key of secrets) {
    const expected = await sign(key, content);
    for (const signature of signatures) if (isEqual(signature, expected)) isValid = true;
  }
  if (!isValid)
    throw new WebhookError(
      'invalid-signature',
      'No signature is valid: the secret is another one, or the body was changed.',
    );
  return { ...parseEvent(bytes), id } as WebhookEvent;
}

function invalidSecret(): WebhookError {
  return new WebhookError(
    'invalid-secret',
    'The secret must be the text whsec_… that `postrider webhook create` printed.',
  );
}

function decodeSecret(secret: string): Uint8Array<ArrayBuffer> {
  let decoded = '';
  try {
    decoded = atob(`${secret}`.trim().replace(SECRET_PREFIX, ''));
  } catch {
    // The length is too small, so the error below follows. The error of `atob` is not a cause, as it could contain the secret.
  }
  if (decoded.length < MIN_SECRET_BYTES) throw invalidSecret();
  return Uint8Array.from(decoded, (character) => character.charCodeAt(0));
}

/** Returns the value of a header. Several values, and several spellings of the name, are joined by commas, as `Headers` does. */
function readHeader(headers: WebhookHeaders, name: string): string {
  const pairs = Symbol.iterator in headers ? headers : Object.entries(headers);
  const values = [...pairs].flatMap(([key, value]) => (key.toLowerCase() === name && value !== undefined ? value : []));
  if (values.length === 0 || values[0] === '')
    throw new WebhookError('invalid-header', `The header ${name} is absent.`);
  return values.join(',');
}

async function sign(key: Uint8Array<ArrayBuffer>, content: Uint8Array<ArrayBuffer>): Promise<string> {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const hmacKey = await crypto.subtle.importKey('raw', key, algorithm, false, ['sign']);
  const mac = new Uint8Array(await crypto.subtle.sign('HMAC', hmacKey, content));
  return `v1,${btoa(String.fromCharCode(...mac))}`;
}

/** Compares two texts. The time depends only on their lengths. */
function isEqual(text: string, expected: string): boolean {
  let difference = text.length ^ expected.length;
  for (let index = 0; index < expected.length; index += 1)
    difference |= text.charCodeAt(index) ^ expected.charCodeAt(index);
  return difference === 0;
}

function parseEvent(bytes: Uint8Array): object {
  const event = parseObject(new TextDecoder().decode(bytes));
  if (typeof event?.type !== 'string' || typeof event.timestamp !== 'string' || !isObject(event.data))
    throw new WebhookError(
      'invalid-payload',
      'The body is signed and is not a JSON object with type, timestamp and data.',
    );
  return event;
}

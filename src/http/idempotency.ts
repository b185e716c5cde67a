/**
 * Validates the Idempotency-Key header (draft-ietf-httpapi-idempotency-key-header-07) and computes the fingerprint of a request.
 */
import { hash } from 'node:crypto';

const MAX_KEY_LENGTH = 255;

/**
 * Returns true for 1 to 255 visible ASCII characters. Node joins repeated headers with a comma and a space (RFC 9110 section 5.3).
 * The space makes the value invalid.
 */
export function isIdempotencyKey(value: string): boolean {
  if (value.length === 0 || value.length > MAX_KEY_LENGTH) return false;
  for (let i = 0; i < value.length; i += 1) {
    const codeUnit = value.charCodeAt(i);
    if (codeUnit < 0x21 || codeUnit > 0x7e) return false;
  }
  return true;
}

/**
 * Returns the SHA-256 of the four fields, in hexadecimal. Each field is preceded by its length, so the hash inputs of different
 * payloads differ.
 */
export function fingerprint(fields: {
  readonly to: string;
  readonly from: string;
  readonly subject: string;
  readonly message: string;
}): string {
  const { to, from, subject, message } = fields;
  const input = `${to.length}:${to}${from.length}:${from}${subject.length}:${subject}${message.length}:${message}`;
  return hash('sha256', input, 'hex');
}

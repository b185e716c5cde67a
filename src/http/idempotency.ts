/**
 * Validates the Idempotency-Key header (draft-ietf-httpapi-idempotency-key-header-07) and computes the fingerprint of a
 * payload.
 */
import { hash } from 'node:crypto';

const MAX_KEY_LENGTH = 255;

/**
 * Returns true for 1 to 255 visible ASCII characters. Repeated headers are joined with a comma and a space (RFC 9110
 * section 5.3), and the space makes the value invalid.
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
 * Returns the SHA-256 of the four fields, in hexadecimal. In the hash input, each field is preceded by its length, so
 * that different payloads have different hash inputs.
 */
export function computeFingerprint(fields: {
  readonly to: string;
  readonly from: string;
  readonly subject: string;
  readonly message: string;
}): string {
  const { to, from, subject, message } = fields;
  const hashInput = `${to.length}:${to}${from.length}:${from}${subject.length}:${subject}${message.length}:${message}`;
  return hash('sha256', hashInput, 'hex');
}

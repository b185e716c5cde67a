/** Base64 in lines (RFC 2045 section 6.8), straight into bytes. */

/** Octets that fill a line of 76 columns. */
const OCTETS_PER_LINE = 57;

const CR = 0x0d;
const LF = 0x0a;
const PAD = 0x3d;

const ALPHABET = new Uint8Array(
  Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/', 'latin1'),
);

/** Octets that `length` octets become, line breaks between the lines included. */
export function base64Length(length: number): number {
  return Math.ceil(length / 3) * 4 + 2 * Math.max(0, Math.ceil(length / OCTETS_PER_LINE) - 1);
}

/** Encodes `source` in lines of 76 columns; no line break is added at the end. */
export function encodeBase64(source: Uint8Array): Buffer {
  const length = source.length;
  const out = Buffer.allocUnsafe(base64Length(length));
  const whole = length - (length % 3);
  let at = 0;
  let lineEnd = OCTETS_PER_LINE;
  let i = 0;
  for (; i < whole; i += 3) {
    if (i === lineEnd) {
      at = lineBreak(out, at);
      lineEnd += OCTETS_PER_LINE;
    }
    const bits = ((source[i] ?? 0) << 16) | ((source[i + 1] ?? 0) << 8) | (source[i + 2] ?? 0);
    out[at] = ALPHABET[bits >> 18] ?? 0;
    out[at + 1] = ALPHABET[(bits >> 12) & 63] ?? 0;
    out[at + 2] = ALPHABET[(bits >> 6) & 63] ?? 0;
    out[at + 3] = ALPHABET[bits & 63] ?? 0;
    at += 4;
  }
  if (i < length) {
    if (i === lineEnd) at = lineBreak(out, at);
    const bits = ((source[i] ?? 0) << 16) | ((i + 1 < length ? (source[i + 1] ?? 0) : 0) << 8);
    out[at] = ALPHABET[bits >> 18] ?? 0;
    out[at + 1] = ALPHABET[(bits >> 12) & 63] ?? 0;
    out[at + 2] = i + 1 < length ? (ALPHABET[(bits >> 6) & 63] ?? 0) : PAD;
    out[at + 3] = PAD;
  }
  return out;
}

function lineBreak(out: Uint8Array, at: number): number {
  out[at] = CR;
  out[at + 1] = LF;
  return at + 2;
}

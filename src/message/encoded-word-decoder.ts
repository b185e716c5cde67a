/**
 * Reads encoded words (RFC 2047) in UTF-8 back into text: the other way of encoded-word.ts, for showing a header. Linear,
 * and bounded: of a longer value the rest stays as it stands, as does whatever is no well-formed encoded word.
 */

/** Ten times what a Subject of 998 bytes takes. */
const MOST = 32_768;

/** The value, unfolded, with its encoded words decoded and the white space between two of them left out (section 6.2). */
export function decodeEncodedWords(value: string): string {
  let out = '';
  let bytes: Uint8Array[] = [];
  const flush = (): void => {
    // Joined before decoding: other writers cut characters between two words.
    if (bytes.length > 0) out += Buffer.concat(bytes).toString('utf8');
    bytes = [];
  };
  let gap = '';
  for (const token of value.slice(0, MOST).split(' ')) {
    const decoded = decodeWord(token);
    if (decoded === null) {
      flush();
      out += gap + token;
    } else {
      if (bytes.length === 0) out += gap;
      bytes.push(decoded);
    }
    gap = ' ';
  }
  flush();
  return out + value.slice(MOST);
}

/** `=?utf-8?B?…?=` or `=?utf-8?Q?…?=`, any case, as bytes; null for anything else. */
function decodeWord(token: string): Uint8Array | null {
  if (!token.startsWith('=?') || !token.endsWith('?=')) return null;
  const [charset, encoding, text, rest] = token.slice(2, -2).split('?');
  if (charset?.toLowerCase() !== 'utf-8' || text === undefined || rest !== undefined) return null;
  switch (encoding?.toUpperCase()) {
    case 'B':
      return Buffer.from(text, 'base64');
    case 'Q':
      return decodeQ(text);
    default:
      return null;
  }
}

/** Section 4.2: `_` is a space, `=` and two hexadecimal digits a byte, the rest stands for itself. */
function decodeQ(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length);
  let length = 0;
  for (let i = 0; i < text.length; i += 1) {
    const unit = text.charCodeAt(i);
    const octet = unit === 0x3d ? hexDigit(text, i + 1) * 16 + hexDigit(text, i + 2) : Number.NaN;
    if (Number.isNaN(octet)) bytes[length] = unit === 0x5f ? 0x20 : unit;
    else {
      bytes[length] = octet;
      i += 2;
    }
    length += 1;
  }
  return bytes.subarray(0, length);
}

function hexDigit(text: string, at: number): number {
  const unit = text.charCodeAt(at) | 0x20;
  if (unit >= 0x61 && unit <= 0x66) return unit - 0x57;
  const digit = text.charCodeAt(at) - 0x30;
  return digit >= 0 && digit <= 9 ? digit : Number.NaN;
}

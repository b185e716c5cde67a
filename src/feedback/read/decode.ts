/**
 * Decodes transfer encodings (RFC 2045 section 6), charsets and encoded words (RFC 2047) of untrusted messages. Each function
 * makes one pass, has bounded output and never throws. Content with a wrong declaration is decoded by its actual encoding.
 */

const EQUALS = 0x3d;
const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const TAB = 0x09;
const ESCAPE = 0x1b;

/** Maximum number of characters of one header value. */
const MAX_VALUE_LENGTH = 16_384;

/** Decodes `body` (one character per octet) with the named encoding. Returns the octets unchanged if the encoding is unknown. */
export function decodeTransfer(body: string, encoding: string): Uint8Array {
  switch (firstWord(encoding)) {
    case 'base64':
      return Buffer.from(body, 'base64');
    case 'quoted-printable':
      return decodeQuotedPrintable(body, false);
    default:
      return Buffer.from(body, 'latin1');
  }
}

/** Returns `base64` for `Base64 (comment)`. */
function firstWord(value: string): string {
  const trimmed = value.trim().toLowerCase();
  let end = 0;
  while (end < trimmed.length && !' \t;('.includes(trimmed.charAt(end))) end += 1;
  return trimmed.slice(0, end);
}

/** Decodes quoted-printable (RFC 2045 section 6.7). With `isEncodedWord`, `_` is a space (RFC 2047 section 4.2). */
function decodeQuotedPrintable(body: string, isEncodedWord: boolean): Uint8Array {
  const octets = new Uint8Array(body.length);
  let length = 0;
  for (let at = 0; at < body.length; at += 1) {
    const c = body.charCodeAt(at);
    if (c === EQUALS) {
      const value = hexDigit(body.charCodeAt(at + 1)) * 16 + hexDigit(body.charCodeAt(at + 2));
      if (value >= 0) {
        octets[length++] = value;
        at += 2;
        continue;
      }
      const end = findSoftBreakEnd(body, at + 1);
      if (end > 0) {
        at = end - 1;
        continue;
      }
    }
    octets[length++] = isEncodedWord && c === 0x5f ? SPACE : c;
  }
  return octets.subarray(0, length);
}

/**
 * Returns the index after a soft line break (rule 5) and the white space before it (rule 3). Returns -1 if there is no soft
 * line break.
 */
function findSoftBreakEnd(body: string, from: number): number {
  let at = from;
  // Lines have at most 76 columns. The limit keeps the cost linear for a line of equals signs and spaces.
  while (at < from + 80 && (body.charCodeAt(at) === SPACE || body.charCodeAt(at) === TAB)) at += 1;
  if (body.charCodeAt(at) === CR) at += 1;
  if (body.charCodeAt(at) === LF) return at + 1;
  return at >= body.length ? body.length : -1;
}

/**
 * Returns the value of a hexadecimal digit. For other characters, returns a number so low that the value of the octet is
 * negative.
 */
function hexDigit(c: number): number {
  if (c >= 0x30 && c <= 0x39) return c - 0x30;
  const letter = c | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1_000;
}

/**
 * Decodes `octets` to text: as UTF-8 when they are valid UTF-8, else by the declared charset when they are valid in it, else as
 * Windows-1252. UTF-8 comes first because other text is almost never valid UTF-8, while Chinese charsets accept nearly any octets.
 */
export function decodeCharset(octets: Uint8Array, charset: string): string {
  const label = charset.trim().toLowerCase();
  const isUtf16 = label.startsWith('utf-16');
  if (!isUtf16 && !hasHighOctets(octets)) {
    // ISO-2022-JP (RFC 1468) is often not declared. It has escape sequences and no octet above 0x7f.
    const japanese = octets.includes(ESCAPE) ? decodeStrictly(octets, 'iso-2022-jp') : null;
    return japanese ?? Buffer.from(octets.buffer, octets.byteOffset, octets.byteLength).toString('latin1');
  }
  const first = isUtf16 ? label : 'utf-8';
  const text = decodeStrictly(octets, first) ?? decodeStrictly(octets, isUtf16 ? 'utf-8' : label);
  return text ?? new TextDecoder('windows-1252').decode(octets);
}

function decodeStrictly(octets: Uint8Array, label: string): string | null {
  if (label === '') return null;
  try {
    return new TextDecoder(label, { fatal: true }).decode(octets);
  } catch {
    // The charset is unknown or wrong.
    return null;
  }
}

function hasHighOctets(octets: Uint8Array): boolean {
  for (const octet of octets) if (octet >= 0x80) return true;
  return false;
}

/** Decodes a header value with one character per octet: octets above 0x7f and encoded words. */
export function decodeHeaderValue(value: string): string {
  return decodeEncodedWords(decodeCharset(Buffer.from(value, 'latin1'), ''));
}

/** Decodes the encoded words of a text. */
export function decodeEncodedWords(value: string): string {
  let out = '';
  /** Adjacent words of one charset are decoded together, because some senders split a character between two words. */
  let charset = '';
  let octets: Uint8Array[] = [];
  const flush = (): void => {
    if (octets.length > 0) out += decodeCharset(Buffer.concat(octets), charset);
    octets = [];
  };
  let separator = '';
  for (const token of value.slice(0, MAX_VALUE_LENGTH).split(' ')) {
    const word = parseEncodedWord(token);
    if (word === null) {
      flush();
      out += separator + token;
    } else if (octets.length > 0 && charset === word.charset) {
      octets.push(word.octets);
    } else {
      // RFC 2047 section 6.2: white space between two encoded words is ignored.
      const isBetweenWords = octets.length > 0;
      flush();
      if (!isBetweenWords) out += separator;
      charset = word.charset;
      octets = [word.octets];
    }
    separator = ' ';
  }
  flush();
  return out;
}

/** Parses `=?charset?B?…?=` or `=?charset?Q?…?=`. Returns null for any other text. */
function parseEncodedWord(token: string): { readonly charset: string; readonly octets: Uint8Array } | null {
  if (!token.startsWith('=?') || !token.endsWith('?=')) return null;
  const [charset, encoding, text, extra] = token.slice(2, -2).split('?');
  if (charset === undefined || text === undefined || extra !== undefined) return null;
  // RFC 2231 section 5: a language follows an asterisk.
  const name = (charset.split('*')[0] ?? '').toLowerCase();
  switch (encoding?.toLowerCase()) {
    case 'b':
      return { charset: name, octets: Buffer.from(text, 'base64') };
    case 'q':
      return { charset: name, octets: decodeQuotedPrintable(text, true) };
    default:
      return null;
  }
}

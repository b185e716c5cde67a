/**
 * Transfer encodings (RFC 2045 section 6), charsets and encoded words (RFC 2047) of messages from outside, undone as far
 * as they go. Promises one pass, bounded output, and never throws: what is not what it claims to be is read as what it
 * looks like.
 */

const EQUALS = 0x3d;
const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const TAB = 0x09;
const ESCAPE = 0x1b;

/** Of one encoded header value. */
const LONGEST_VALUE = 16_384;

/** The octets of `body` (one character for each octet) under the encoding's name as written; an unknown one is none. */
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

/** `Base64 (comment)` as `base64`. */
function firstWord(value: string): string {
  const trimmed = value.trim().toLowerCase();
  let end = 0;
  while (end < trimmed.length && !' \t;('.includes(trimmed.charAt(end))) end += 1;
  return trimmed.slice(0, end);
}

/** RFC 2045 section 6.7, and with `words` RFC 2047 section 4.2, where `_` is a space. */
function decodeQuotedPrintable(body: string, words: boolean): Uint8Array {
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
      const end = endOfSoftBreak(body, at + 1);
      if (end > 0) {
        at = end - 1;
        continue;
      }
    }
    octets[length++] = words && c === 0x5f ? SPACE : c;
  }
  return octets.subarray(0, length);
}

/** Rule 5, with the white space that rule 3 has readers drop; behind the last line of `body` as well. -1 where it is none. */
function endOfSoftBreak(body: string, from: number): number {
  let at = from;
  // No line is longer than 76 columns, so that this stays linear on a line of equals signs and blanks.
  while (at < from + 80 && (body.charCodeAt(at) === SPACE || body.charCodeAt(at) === TAB)) at += 1;
  if (body.charCodeAt(at) === CR) at += 1;
  if (body.charCodeAt(at) === LF) return at + 1;
  return at >= body.length ? body.length : -1;
}

/** The value of a hexadecimal digit, or a number that makes any sum with it negative. */
function hexDigit(c: number): number {
  if (c >= 0x30 && c <= 0x39) return c - 0x30;
  const letter = c | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1_000;
}

/**
 * Text of `octets`: UTF-8 where they are that, whatever the charset named (no other text of some length is UTF-8 by
 * accident, and Chinese charsets decode nearly anything); else by the charset named where it fits, else Windows-1252.
 */
export function decodeCharset(octets: Uint8Array, charset: string): string {
  const named = charset.trim().toLowerCase();
  const wide = named.startsWith('utf-16');
  if (!wide && !hasHighOctets(octets)) {
    // ISO-2022-JP often stands without its name (RFC 1468): escapes, and no octet above 0x7f.
    const escaped = octets.includes(ESCAPE) ? decodeStrictly(octets, 'iso-2022-jp') : null;
    return escaped ?? Buffer.from(octets.buffer, octets.byteOffset, octets.byteLength).toString('latin1');
  }
  const first = wide ? named : 'utf-8';
  const text = decodeStrictly(octets, first) ?? decodeStrictly(octets, wide ? 'utf-8' : named);
  return text ?? new TextDecoder('windows-1252').decode(octets);
}

function decodeStrictly(octets: Uint8Array, label: string): string | null {
  if (label === '') return null;
  try {
    return new TextDecoder(label, { fatal: true }).decode(octets);
  } catch {
    // Unknown, or a lie.
    return null;
  }
}

function hasHighOctets(octets: Uint8Array): boolean {
  for (const octet of octets) if (octet >= 0x80) return true;
  return false;
}

/** A header value, one character for each octet: raw octets above 0x7f read as text, encoded words decoded. */
export function decodeHeaderValue(value: string): string {
  return decodeEncodedWords(decodeCharset(Buffer.from(value, 'latin1'), ''));
}

/** Text with its encoded words decoded. */
export function decodeEncodedWords(value: string): string {
  let out = '';
  /** Words of one charset in a row: some writers cut characters between two words. */
  let charset = '';
  let octets: Uint8Array[] = [];
  const flush = (): void => {
    if (octets.length > 0) out += decodeCharset(Buffer.concat(octets), charset);
    octets = [];
  };
  let gap = '';
  for (const token of value.slice(0, LONGEST_VALUE).split(' ')) {
    const word = encodedWord(token);
    if (word === null) {
      flush();
      out += gap + token;
    } else if (octets.length > 0 && charset === word.charset) {
      octets.push(word.octets);
    } else {
      // RFC 2047 section 6.2: white space between two encoded words is none.
      const between = octets.length > 0;
      flush();
      if (!between) out += gap;
      charset = word.charset;
      octets = [word.octets];
    }
    gap = ' ';
  }
  flush();
  return out;
}

/** `=?charset?B?…?=` or `=?charset?Q?…?=`; null for anything else. */
function encodedWord(token: string): { readonly charset: string; readonly octets: Uint8Array } | null {
  if (!token.startsWith('=?') || !token.endsWith('?=')) return null;
  const [charset, encoding, text, rest] = token.slice(2, -2).split('?');
  if (charset === undefined || text === undefined || rest !== undefined) return null;
  // RFC 2231 section 5: a language behind a star.
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

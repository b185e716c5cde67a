/** RFC 2045 section 6 and RFC 2047, for untrusted text, in one pass with bounded output. Never throws. */

const EQUALS = 0x3d;
const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const TAB = 0x09;
const ESCAPE = 0x1b;

const MAX_VALUE_LENGTH = 16_384;

/** `body` has one character per octet. An unknown encoding is none. */
export function decodeTransfer(body: string, encoding: string): Uint8Array {
  switch (readFirstWord(encoding)) {
    case 'base64':
      return Buffer.from(body, 'base64');
    case 'quoted-printable':
      return decodeQuotedPrintable(body, false);
    default:
      return Buffer.from(body, 'latin1');
  }
}

function readFirstWord(value: string): string {
  const trimmedText = value.trim().toLowerCase();
  let wordEnd = 0;
  while (wordEnd < trimmedText.length && !' \t;('.includes(trimmedText.charAt(wordEnd))) wordEnd += 1;
  return trimmedText.slice(0, wordEnd);
}

/** RFC 2045 section 6.7. In an encoded word, `_` is a space (RFC 2047 section 4.2). */
function decodeQuotedPrintable(body: string, isEncodedWord: boolean): Uint8Array {
  const octets = new Uint8Array(body.length);
  let length = 0;
  for (let index = 0; index < body.length; index += 1) {
    const charCode = body.charCodeAt(index);
    if (charCode === EQUALS) {
      const value = parseHexDigit(body.charCodeAt(index + 1)) * 16 + parseHexDigit(body.charCodeAt(index + 2));
      if (value >= 0) {
        octets[length++] = value;
        index += 2;
        continue;
      }
      const softBreakEnd = findSoftBreakEnd(body, index + 1);
      if (softBreakEnd > 0) {
        index = softBreakEnd - 1;
        continue;
      }
    }
    octets[length++] = isEncodedWord && charCode === 0x5f ? SPACE : charCode;
  }
  return octets.subarray(0, length);
}

/** The index after the soft break (rule 5) of the `=` before, over white space (rule 3); -1 if none. */
function findSoftBreakEnd(body: string, startIndex: number): number {
  let index = startIndex;
  // At most 80 characters of white space are skipped, so that the time is linear for equals signs and spaces.
  while (index < startIndex + 80 && (body.charCodeAt(index) === SPACE || body.charCodeAt(index) === TAB)) index += 1;
  if (body.charCodeAt(index) === CR) index += 1;
  if (body.charCodeAt(index) === LF) return index + 1;
  return index >= body.length ? body.length : -1;
}

function parseHexDigit(charCode: number): number {
  if (charCode >= 0x30 && charCode <= 0x39) return charCode - 0x30;
  const lowerCaseCode = charCode | 0x20;
  return lowerCaseCode >= 0x61 && lowerCaseCode <= 0x66 ? lowerCaseCode - 0x57 : -1_000;
}

/** Valid UTF-8 is almost never another charset, while Chinese charsets accept nearly all octets. */
export function decodeCharset(octets: Uint8Array, charset: string): string {
  const charsetLabel = charset.trim().toLowerCase();
  const isUtf16 = charsetLabel.startsWith('utf-16');
  if (!isUtf16 && !hasHighOctets(octets)) {
    // ISO-2022-JP (RFC 1468), which has escape sequences and no octet above 0x7f, is often not declared.
    const japaneseText = octets.includes(ESCAPE) ? decodeStrictly(octets, 'iso-2022-jp') : null;
    return japaneseText ?? Buffer.from(octets.buffer, octets.byteOffset, octets.byteLength).toString('latin1');
  }
  const firstCharset = isUtf16 ? charsetLabel : 'utf-8';
  const text = decodeStrictly(octets, firstCharset) ?? decodeStrictly(octets, isUtf16 ? 'utf-8' : charsetLabel);
  return text ?? new TextDecoder('windows-1252').decode(octets);
}

function decodeStrictly(octets: Uint8Array, label: string): string | null {
  if (label === '') return null;
  try {
    return new TextDecoder(label, { fatal: true }).decode(octets);
  } catch {
    return null;
  }
}

function hasHighOctets(octets: Uint8Array): boolean {
  for (const octet of octets) if (octet >= 0x80) return true;
  return false;
}

export function decodeHeaderValue(value: string): string {
  return decodeEncodedWords(decodeCharset(Buffer.from(value, 'latin1'), ''));
}

export function decodeEncodedWords(value: string): string {
  let decodedText = '';
  /** Some senders split a character between two words with the same charset, so adjacent ones are decoded together. */
  let charset = '';
  let octets: Uint8Array[] = [];
  const flushOctets = (): void => {
    if (octets.length > 0) decodedText += decodeCharset(Buffer.concat(octets), charset);
    octets = [];
  };
  let separator = '';
  for (const token of value.slice(0, MAX_VALUE_LENGTH).split(' ')) {
    const encodedWord = parseEncodedWord(token);
    if (encodedWord === null) {
      flushOctets();
      decodedText += separator + token;
    } else if (octets.length > 0 && charset === encodedWord.charset) {
      octets.push(encodedWord.octets);
    } else {
      // RFC 2047 section 6.2: white space between two encoded words is ignored.
      const isBetweenWords = octets.length > 0;
      flushOctets();
      if (!isBetweenWords) decodedText += separator;
      charset = encodedWord.charset;
      octets = [encodedWord.octets];
    }
    separator = ' ';
  }
  flushOctets();
  return decodedText;
}

function parseEncodedWord(token: string): { readonly charset: string; readonly octets: Uint8Array } | null {
  if (!token.startsWith('=?') || !token.endsWith('?=')) return null;
  const [charset, encoding, text, excessPart] = token.slice(2, -2).split('?');
  if (charset === undefined || text === undefined || excessPart !== undefined) return null;
  // RFC 2231 section 5: a language can follow.
  const charsetName = (charset.split('*')[0] ?? '').toLowerCase();
  switch (encoding?.toLowerCase()) {
    case 'b':
      return { charset: charsetName, octets: Buffer.from(text, 'base64') };
    case 'q':
      return { charset: charsetName, octets: decodeQuotedPrintable(text, true) };
    default:
      return null;
  }
}

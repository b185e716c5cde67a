/** Throws for control characters, so that no value adds a field or ends the header. */

const COLON = 0x3a;

/** RFC 5322 section 2.1.1, without CRLF. */
const MAX_LINE_OCTETS = 998;

export class HeaderWriter {
  #text = '';
  readonly #utf8: boolean;

  /** With `utf8`, values may contain UTF-8 (RFC 6532 section 3.2). */
  constructor(utf8: boolean) {
    this.#utf8 = utf8;
  }

  /** Each further piece begins a new line with one space, part of the value (RFC 5322 section 2.2.3). */
  add(name: string, value: string | readonly string[]): void {
    checkName(name);
    if (typeof value === 'string') {
      this.#checkPiece(name, value, name.length + 2);
      this.#text += `${name}: ${value}\r\n`;
      return;
    }
    let field = `${name}:`;
    for (const [index, piece] of value.entries()) {
      this.#checkPiece(name, piece, index === 0 ? name.length + 2 : 1);
      field += index === 0 ? ` ${piece}` : `\r\n ${piece}`;
    }
    if (value.length === 0) throw new TypeError(`Header ${name} has no value`);
    this.#text += `${field}\r\n`;
  }

  get text(): string {
    return this.#text;
  }

  #checkPiece(name: string, piece: string, column: number): void {
    let isBlank = true;
    let isAscii = true;
    for (let i = 0; i < piece.length; i++) {
      const codeUnit = piece.charCodeAt(i);
      if (codeUnit < 0x20 ? codeUnit !== 0x09 : codeUnit === 0x7f) {
        throw new TypeError(`Header ${name} contains the control character ${codeUnit}; only tabs are allowed`);
      }
      if (codeUnit >= 0x80) isAscii = false;
      if (codeUnit !== 0x20 && codeUnit !== 0x09) isBlank = false;
    }
    // RFC 5322 section 3.2.2: no line of a folded field may consist of white space only.
    if (isBlank) throw new TypeError(`Header ${name} has a blank line`);
    if (!isAscii && !this.#utf8) throw new TypeError(`Header ${name} contains characters that are not ASCII`);
    if (column + (isAscii ? piece.length : Buffer.byteLength(piece, 'utf8')) > MAX_LINE_OCTETS) {
      throw new TypeError(`Header ${name} has a line of more than ${MAX_LINE_OCTETS} octets`);
    }
  }
}

/** RFC 5322 section 3.6.8. */
function checkName(name: string): void {
  for (let i = 0; i < name.length; i++) {
    const codeUnit = name.charCodeAt(i);
    if (codeUnit < 0x21 || codeUnit > 0x7e || codeUnit === COLON) {
      throw new TypeError(`Header name ${JSON.stringify(name)} contains a character that is not allowed in a name`);
    }
  }
  if (name.length === 0) throw new TypeError('A header has an empty name');
}

// Plain if servers transport it unchanged, else encoded words. Decoded, it equals the submitted one exactly.

/** RFC 5322 section 2.1.1. */
const MAX_COLUMNS = 78;

const SPACE = 0x20;

export function formatSubject(subject: string, column: number): string | readonly string[] {
  if (!isPlain(subject)) return formatEncodedWords(subject, column);
  if (column + subject.length <= MAX_COLUMNS) return subject;
  return foldAtSpaces(subject, column) ?? formatEncodedWords(subject, column);
}

/** The name as a quoted string, or as encoded words in B, of which RFC 2047 section 5 allows every character here. */
export function formatNamedMailbox(name: string, address: string, column: number): string | readonly string[] {
  const quotedName = `"${name.replaceAll(/["\\]/g, '\\$&')}"`;
  const canQuote = isPlain(name) && column + quotedName.length <= MAX_COLUMNS;
  if (!canQuote) return [...formatEncodedWords(name, column, () => false), `<${address}>`];
  const mailbox = `${quotedName} <${address}>`;
  return column + mailbox.length <= MAX_COLUMNS ? mailbox : [quotedName, `<${address}>`];
}

/** Parsers remove white space at the ends, and decode what looks like an encoded word. */
function isPlain(subject: string): boolean {
  for (let i = 0; i < subject.length; i++) {
    const codeUnit = subject.charCodeAt(i);
    if (codeUnit < SPACE || codeUnit > 0x7e) return false;
  }
  return (
    subject.charCodeAt(0) !== SPACE && subject.charCodeAt(subject.length - 1) !== SPACE && subject.indexOf('=?') === -1
  );
}

/** Runs of spaces are not folded: some parsers keep one only. Null if a word is too long. */
function foldAtSpaces(subject: string, column: number): readonly string[] | null {
  const lines: string[] = [];
  let start = 0;
  let columnsLeft = MAX_COLUMNS - column;
  while (subject.length - start > columnsLeft) {
    let spaceIndex = start + columnsLeft;
    while (spaceIndex > start && !isLoneSpace(subject, spaceIndex)) spaceIndex--;
    if (spaceIndex === start) return null;
    lines.push(subject.slice(start, spaceIndex));
    start = spaceIndex + 1;
    columnsLeft = MAX_COLUMNS - 1;
  }
  lines.push(subject.slice(start));
  return lines;
}

function isLoneSpace(subject: string, index: number): boolean {
  return (
    subject.charCodeAt(index) === SPACE &&
    subject.charCodeAt(index - 1) !== SPACE &&
    subject.charCodeAt(index + 1) !== SPACE
  );
}

// RFC 2047, each of complete characters. White space between adjacent words is ignored (section 6.2).

/** Of a word, and of a line with a word (RFC 2047 section 2). */
const MAX_WORD_COLUMNS = 75;
const MAX_WORD_LINE_COLUMNS = 76;

const PREFIX_B = '=?UTF-8?B?';
const PREFIX_Q = '=?UTF-8?Q?';
const WORD_SUFFIX = '?=';
const FRAME_COLUMNS = PREFIX_B.length + WORD_SUFFIX.length;

const Q_LITERAL = new Uint8Array(128);
for (let codeUnit = 0x21; codeUnit <= 0x7e; codeUnit++) Q_LITERAL[codeUnit] = 1;
for (const codeUnit of '=?_') Q_LITERAL[codeUnit.charCodeAt(0)] = 0;

const HEX = '0123456789ABCDEF';

/** One word per line, all B or all Q. A lone surrogate becomes U+FFFD. */
function formatEncodedWords(value: string, column: number, selectQ = isShorterInQ): readonly string[] {
  const text = value.toWellFormed();
  const usesQ = selectQ(text);
  const lines: string[] = [];
  let start = 0;
  let usedCapacity = 0;
  let capacity = getPayloadCapacity(Math.min(MAX_WORD_COLUMNS, MAX_WORD_LINE_COLUMNS - column), usesQ);
  for (let i = 0; i < text.length; ) {
    const codePoint = text.codePointAt(i) ?? 0;
    const width = usesQ ? getQWidth(codePoint) : getUtf8Width(codePoint);
    if (usedCapacity + width > capacity) {
      lines.push(encodeWord(text.slice(start, i), usesQ));
      start = i;
      usedCapacity = 0;
      capacity = getPayloadCapacity(Math.min(MAX_WORD_COLUMNS, MAX_WORD_LINE_COLUMNS - 1), usesQ);
    }
    usedCapacity += width;
    i += codePoint > 0xffff ? 2 : 1;
  }
  lines.push(encodeWord(text.slice(start), usesQ));
  return lines;
}

function isShorterInQ(text: string): boolean {
  return getQLength(text) <= Math.ceil(Buffer.byteLength(text, 'utf8') / 3) * 4;
}

function getPayloadCapacity(columns: number, usesQ: boolean): number {
  const payloadColumns = columns - FRAME_COLUMNS;
  return usesQ ? payloadColumns : Math.floor(payloadColumns / 4) * 3;
}

function encodeWord(text: string, usesQ: boolean): string {
  if (!usesQ) return PREFIX_B + Buffer.from(text, 'utf8').toString('base64') + WORD_SUFFIX;
  let payload = '';
  for (const byte of Buffer.from(text, 'utf8')) {
    if (byte === SPACE) payload += '_';
    else if (Q_LITERAL[byte] === 1) payload += String.fromCharCode(byte);
    else payload += `=${HEX.charAt(byte >> 4)}${HEX.charAt(byte & 15)}`;
  }
  return PREFIX_Q + payload + WORD_SUFFIX;
}

function getQLength(text: string): number {
  let length = 0;
  for (const character of text) length += getQWidth(character.codePointAt(0) ?? 0);
  return length;
}

function getQWidth(codePoint: number): number {
  if (codePoint === SPACE || Q_LITERAL[codePoint] === 1) return 1;
  return 3 * getUtf8Width(codePoint);
}

function getUtf8Width(codePoint: number): number {
  if (codePoint < 0x80) return 1;
  if (codePoint < 0x800) return 2;
  return codePoint < 0x10000 ? 3 : 4;
}

// Decodes for display, in linear time. Malformed words and the text after 32 Ki characters stay unchanged.

/** An encoded subject of 998 bytes has about a tenth of this length. */
const MAX_DECODED_CHARACTERS = 32_768;

/** Removes the white space between adjacent encoded words (section 6.2). */
export function decodeEncodedWords(value: string): string {
  let decodedText = '';
  let pendingBytes: Uint8Array[] = [];
  const decodePendingBytes = (): void => {
    // Other programs may split a character between two words.
    if (pendingBytes.length > 0) decodedText += Buffer.concat(pendingBytes).toString('utf8');
    pendingBytes = [];
  };
  let separator = '';
  for (const token of value.slice(0, MAX_DECODED_CHARACTERS).split(' ')) {
    const decodedBytes = decodeWord(token);
    if (decodedBytes === null) {
      decodePendingBytes();
      decodedText += separator + token;
    } else {
      if (pendingBytes.length === 0) decodedText += separator;
      pendingBytes.push(decodedBytes);
    }
    separator = ' ';
  }
  decodePendingBytes();
  return decodedText + value.slice(MAX_DECODED_CHARACTERS);
}

function decodeWord(token: string): Uint8Array | null {
  if (!token.startsWith('=?') || !token.endsWith('?=')) return null;
  const [charset, encoding, text, excessPart] = token.slice(2, -2).split('?');
  if (charset?.toLowerCase() !== 'utf-8' || text === undefined || excessPart !== undefined) return null;
  switch (encoding?.toUpperCase()) {
    case 'B':
      return Buffer.from(text, 'base64');
    case 'Q':
      return decodeQ(text);
    default:
      return null;
  }
}

function decodeQ(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length);
  let length = 0;
  for (let i = 0; i < text.length; i += 1) {
    const codeUnit = text.charCodeAt(i);
    const octet = codeUnit === 0x3d ? readHexDigit(text, i + 1) * 16 + readHexDigit(text, i + 2) : Number.NaN;
    if (Number.isNaN(octet)) bytes[length] = codeUnit === 0x5f ? 0x20 : codeUnit;
    else {
      bytes[length] = octet;
      i += 2;
    }
    length += 1;
  }
  return bytes.subarray(0, length);
}

function readHexDigit(text: string, index: number): number {
  const codeUnit = text.charCodeAt(index) | 0x20;
  if (codeUnit >= 0x61 && codeUnit <= 0x66) return codeUnit - 0x57;
  const digit = text.charCodeAt(index) - 0x30;
  return digit >= 0 && digit <= 9 ? digit : Number.NaN;
}

/**
 * The one writer of header fields. A field is a name and its pieces, one for each physical line; the line ends
 * and the white space of a fold are the writer's own, so that no value can bring in another field or end the
 * header. Throws on whatever would (a bug of the caller: admission has refused it before).
 */

const COLON = 0x3a;

/** Octets of one line without its CRLF (RFC 5322 section 2.1.1). */
const MAX_LINE_OCTETS = 998;

export class HeaderWriter {
  #text = '';
  readonly #utf8: boolean;

  /** With `utf8`, values may hold raw UTF-8 (RFC 6532 section 3.2); otherwise they are ASCII. */
  constructor(utf8: boolean) {
    this.#utf8 = utf8;
  }

  /**
   * Adds one field. A list of pieces is folded (RFC 5322 section 2.2.3): each piece but the first begins a new
   * line with one space, which belongs to the value when it is unfolded.
   */
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

  /** Every field added so far, each ended by CRLF. */
  get text(): string {
    return this.#text;
  }

  #checkPiece(name: string, piece: string, column: number): void {
    let blank = true;
    let ascii = true;
    for (let i = 0; i < piece.length; i++) {
      const c = piece.charCodeAt(i);
      if (c < 0x20 ? c !== 0x09 : c === 0x7f) {
        throw new TypeError(`Header ${name} holds the control character ${c}: only tabs are allowed`);
      }
      if (c >= 0x80) ascii = false;
      if (c !== 0x20 && c !== 0x09) blank = false;
    }
    // RFC 5322 section 3.2.2: no line of a folded field is white space alone.
    if (blank) throw new TypeError(`Header ${name} has a blank line`);
    if (!ascii && !this.#utf8) throw new TypeError(`Header ${name} holds other than ASCII characters`);
    if (column + (ascii ? piece.length : Buffer.byteLength(piece, 'utf8')) > MAX_LINE_OCTETS) {
      throw new TypeError(`Header ${name} has a line of more than ${MAX_LINE_OCTETS} octets`);
    }
  }
}

/** RFC 5322 section 3.6.8: printable ASCII but the colon. */
function checkName(name: string): void {
  for (let i = 0; i < name.length; i++) {
    const c = name.charCodeAt(i);
    if (c < 0x21 || c > 0x7e || c === COLON) {
      throw new TypeError(`Header name ${JSON.stringify(name)} holds a character that no name may hold`);
    }
  }
  if (name.length === 0) throw new TypeError('A header has an empty name');
}

// The Subject field: plain where plain text survives every mail server unchanged, else encoded words. Unfolded
// and decoded it is the submitted subject exactly, white space and all.

/** RFC 5322 section 2.1.1: columns a line should not exceed. */
const MAX_COLUMNS = 78;

const SPACE = 0x20;

/** The lines of the field's value, for a field whose value begins at `column`. */
export function subjectLines(subject: string, column: number): string | readonly string[] {
  if (!isPlain(subject)) return encodedWords(subject, column);
  if (column + subject.length <= MAX_COLUMNS) return subject;
  return foldAtSpaces(subject, column) ?? encodedWords(subject, column);
}

/** Printable ASCII, no white space at its ends (parsers trim it), nothing that reads as an encoded word. */
function isPlain(subject: string): boolean {
  for (let i = 0; i < subject.length; i++) {
    const c = subject.charCodeAt(i);
    if (c < SPACE || c > 0x7e) return false;
  }
  return (
    subject.charCodeAt(0) !== SPACE && subject.charCodeAt(subject.length - 1) !== SPACE && subject.indexOf('=?') === -1
  );
}

/**
 * Lines of at most 78 columns, folded at lone spaces: of a run of spaces some parsers keep but one where a line
 * ends in it. Null where a word is too long for that.
 */
function foldAtSpaces(subject: string, column: number): readonly string[] | null {
  const lines: string[] = [];
  let start = 0;
  let columnsLeft = MAX_COLUMNS - column;
  while (subject.length - start > columnsLeft) {
    let space = start + columnsLeft;
    while (space > start && !isLoneSpace(subject, space)) space--;
    if (space === start) return null;
    lines.push(subject.slice(start, space));
    start = space + 1;
    columnsLeft = MAX_COLUMNS - 1;
  }
  lines.push(subject.slice(start));
  return lines;
}

function isLoneSpace(subject: string, at: number): boolean {
  return (
    subject.charCodeAt(at) === SPACE && subject.charCodeAt(at - 1) !== SPACE && subject.charCodeAt(at + 1) !== SPACE
  );
}

// Encoded words (RFC 2047) in UTF-8 for an unstructured field. Each holds whole characters; adjacent ones decode
// to the text exactly, since the white space between them is ignored (section 6.2).

/** RFC 2047 section 2: characters of one encoded word, and of a line that holds one. */
const MAX_WORD_COLUMNS = 75;
const MAX_WORD_LINE_COLUMNS = 76;

const PREFIX_B = '=?UTF-8?B?';
const PREFIX_Q = '=?UTF-8?Q?';
const SUFFIX = '?=';
const FRAME_COLUMNS = PREFIX_B.length + SUFFIX.length;

/** Section 4.2 (3): printable ASCII that stands for itself in an unstructured field. */
const Q_LITERAL = new Uint8Array(128);
for (let c = 0x21; c <= 0x7e; c++) Q_LITERAL[c] = 1;
for (const c of '=?_') Q_LITERAL[c.charCodeAt(0)] = 0;

const HEX = '0123456789ABCDEF';

/**
 * The lines of a value that begins at `column`, one encoded word each, in whichever of the encodings B and Q
 * is the shorter for the whole. A lone surrogate becomes U+FFFD.
 */
function encodedWords(value: string, column: number): readonly string[] {
  const text = value.toWellFormed();
  const bytes = Buffer.byteLength(text, 'utf8');
  const usesQ = qLength(text) <= Math.ceil(bytes / 3) * 4;
  const lines: string[] = [];
  let start = 0;
  let used = 0;
  let capacity = payloadCapacity(Math.min(MAX_WORD_COLUMNS, MAX_WORD_LINE_COLUMNS - column), usesQ);
  for (let i = 0; i < text.length; ) {
    const codePoint = text.codePointAt(i) ?? 0;
    const width = usesQ ? qWidth(codePoint) : utf8Width(codePoint);
    if (used + width > capacity) {
      lines.push(encodeWord(text.slice(start, i), usesQ));
      start = i;
      used = 0;
      // One column goes to the space that begins the line.
      capacity = payloadCapacity(Math.min(MAX_WORD_COLUMNS, MAX_WORD_LINE_COLUMNS - 1), usesQ);
    }
    used += width;
    i += codePoint > 0xffff ? 2 : 1;
  }
  lines.push(encodeWord(text.slice(start), usesQ));
  return lines;
}

/** What one word may hold: characters of Q, or bytes before B. */
function payloadCapacity(columns: number, usesQ: boolean): number {
  const payloadColumns = columns - FRAME_COLUMNS;
  return usesQ ? payloadColumns : Math.floor(payloadColumns / 4) * 3;
}

function encodeWord(text: string, usesQ: boolean): string {
  if (!usesQ) return PREFIX_B + Buffer.from(text, 'utf8').toString('base64') + SUFFIX;
  let payload = '';
  for (const byte of Buffer.from(text, 'utf8')) {
    if (byte === SPACE) payload += '_';
    else if (Q_LITERAL[byte] === 1) payload += String.fromCharCode(byte);
    else payload += `=${HEX.charAt(byte >> 4)}${HEX.charAt(byte & 15)}`;
  }
  return PREFIX_Q + payload + SUFFIX;
}

function qLength(text: string): number {
  let length = 0;
  for (let i = 0; i < text.length; ) {
    const codePoint = text.codePointAt(i) ?? 0;
    length += qWidth(codePoint);
    i += codePoint > 0xffff ? 2 : 1;
  }
  return length;
}

function qWidth(codePoint: number): number {
  if (codePoint === SPACE || Q_LITERAL[codePoint] === 1) return 1;
  return 3 * utf8Width(codePoint);
}

function utf8Width(codePoint: number): number {
  if (codePoint < 0x80) return 1;
  if (codePoint < 0x800) return 2;
  return codePoint < 0x10000 ? 3 : 4;
}

// Reads encoded words (RFC 2047) in UTF-8 back into text: the other way of `encodedWords`, for showing a header. Linear,
// and bounded: of a longer value the rest stays as it stands, as does whatever is no well-formed encoded word.

/** Ten times what a Subject of 998 bytes takes. */
const MAX_DECODED_CHARACTERS = 32_768;

/** The value, unfolded, with its encoded words decoded and the white space between two of them left out (section 6.2). */
export function decodeEncodedWords(value: string): string {
  let decodedText = '';
  let bytes: Uint8Array[] = [];
  const flush = (): void => {
    // Joined before decoding: other writers cut characters between two words.
    if (bytes.length > 0) decodedText += Buffer.concat(bytes).toString('utf8');
    bytes = [];
  };
  let separator = '';
  for (const token of value.slice(0, MAX_DECODED_CHARACTERS).split(' ')) {
    const decoded = decodeWord(token);
    if (decoded === null) {
      flush();
      decodedText += separator + token;
    } else {
      if (bytes.length === 0) decodedText += separator;
      bytes.push(decoded);
    }
    separator = ' ';
  }
  flush();
  return decodedText + value.slice(MAX_DECODED_CHARACTERS);
}

/** `=?utf-8?B?…?=` or `=?utf-8?Q?…?=`, any case, as bytes; null for anything else. */
function decodeWord(token: string): Uint8Array | null {
  if (!token.startsWith('=?') || !token.endsWith('?=')) return null;
  const [charset, encoding, text, extra] = token.slice(2, -2).split('?');
  if (charset?.toLowerCase() !== 'utf-8' || text === undefined || extra !== undefined) return null;
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

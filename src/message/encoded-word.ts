/**
 * Encoded words (RFC 2047) in UTF-8 for an unstructured field. Each holds whole characters; adjacent ones decode
 * to the text exactly, since the white space between them is ignored (section 6.2).
 */

/** RFC 2047 section 2: characters of one encoded word, and of a line that holds one. */
const MAX_WORD = 75;
const MAX_LINE = 76;

const PREFIX_B = '=?UTF-8?B?';
const PREFIX_Q = '=?UTF-8?Q?';
const SUFFIX = '?=';
const FRAME = PREFIX_B.length + SUFFIX.length;

const SPACE = 0x20;

/** Section 4.2 (3): printable ASCII that stands for itself in an unstructured field. */
const Q_LITERAL = new Uint8Array(128);
for (let c = 0x21; c <= 0x7e; c++) Q_LITERAL[c] = 1;
for (const c of '=?_') Q_LITERAL[c.charCodeAt(0)] = 0;

const HEX = '0123456789ABCDEF';

/**
 * The lines of a value that begins at `column`, one encoded word each, in whichever of the encodings B and Q
 * is the shorter for the whole. A lone surrogate becomes U+FFFD.
 */
export function encodedWords(value: string, column: number): readonly string[] {
  const text = value.toWellFormed();
  const bytes = Buffer.byteLength(text, 'utf8');
  const q = qLength(text) <= Math.ceil(bytes / 3) * 4;
  const lines: string[] = [];
  let start = 0;
  let used = 0;
  let room = payloadRoom(Math.min(MAX_WORD, MAX_LINE - column), q);
  for (let i = 0; i < text.length; ) {
    const codePoint = text.codePointAt(i) ?? 0;
    const width = q ? qWidth(codePoint) : utf8Width(codePoint);
    if (used + width > room) {
      lines.push(word(text.slice(start, i), q));
      start = i;
      used = 0;
      // One column goes to the space that begins the line.
      room = payloadRoom(Math.min(MAX_WORD, MAX_LINE - 1), q);
    }
    used += width;
    i += codePoint > 0xffff ? 2 : 1;
  }
  lines.push(word(text.slice(start), q));
  return lines;
}

/** What one word may hold: characters of Q, or bytes before B. */
function payloadRoom(columns: number, q: boolean): number {
  const room = columns - FRAME;
  return q ? room : Math.floor(room / 4) * 3;
}

function word(text: string, q: boolean): string {
  if (!q) return PREFIX_B + Buffer.from(text, 'utf8').toString('base64') + SUFFIX;
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

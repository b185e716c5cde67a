/**
 * The one writer of header fields. A field is a name and its pieces, one for each physical line; the line ends
 * and the white space of a fold are the writer's own, so that no value can bring in another field or end the
 * header. Throws on whatever would (a bug of the caller: admission has refused it before).
 */
import { encodedWords } from './encoded-word.ts';

const COLON = 0x3a;

/** Octets of one line without its CRLF (RFC 5322 section 2.1.1). */
const MAX_LINE = 998;

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
    if (column + (ascii ? piece.length : Buffer.byteLength(piece, 'utf8')) > MAX_LINE) {
      throw new TypeError(`Header ${name} has a line of more than ${MAX_LINE} octets`);
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
  let room = MAX_COLUMNS - column;
  while (subject.length - start > room) {
    let space = start + room;
    while (space > start && !isLoneSpace(subject, space)) space--;
    if (space === start) return null;
    lines.push(subject.slice(start, space));
    start = space + 1;
    room = MAX_COLUMNS - 1;
  }
  lines.push(subject.slice(start));
  return lines;
}

function isLoneSpace(subject: string, at: number): boolean {
  return (
    subject.charCodeAt(at) === SPACE && subject.charCodeAt(at - 1) !== SPACE && subject.charCodeAt(at + 1) !== SPACE
  );
}

/**
 * The relaxed canonical forms of DKIM (RFC 6376 sections 3.4.2 and 3.4.4): what is hashed and signed, so that relays
 * may fold fields anew and touch white space without breaking a signature.
 *
 * Promises: pure, one pass, nothing copied where the message is canonical already. Expects CRLF line ends, which
 * composition promises; a bare CR or LF is an octet like any other. Header text is one character per octet (latin1),
 * so that raw UTF-8 of SMTPUTF8 messages passes through unharmed. White space is space and tab, as in the RFC.
 */
import { hash } from 'node:crypto';

export interface HeaderField {
  /** Lower-case, without white space around it. */
  readonly name: string;
  /** The whole field as it stands, folds included, without its last CRLF. */
  readonly text: string;
}

const TAB = 0x09;
const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;

/**
 * The fields of a header, in order. `header` ends where the body's empty line begins or behind it.
 * A line without a colon has the empty name, which nothing signs.
 */
export function splitFields(header: string): HeaderField[] {
  const fields: HeaderField[] = [];
  let start = 0;
  while (start < header.length) {
    let end = header.indexOf('\r\n', start);
    if (end === start) break;
    while (end !== -1 && isWhite(header.charCodeAt(end + 2))) end = header.indexOf('\r\n', end + 2);
    if (end === -1) end = header.length;
    const text = header.slice(start, end);
    const colon = text.indexOf(':');
    fields.push({ name: colon === -1 ? '' : text.slice(0, colon).trimEnd().toLowerCase(), text });
    start = end + 2;
  }
  return fields;
}

/** RFC 6376 section 3.4.2, without the CRLF that ends it. */
export function relaxedField(field: HeaderField): string {
  return `${field.name}:${relaxedValue(field.text, field.text.indexOf(':') + 1)}`;
}

/**
 * Unfolds, makes each run of white space one space and drops it at both ends. Inside a field a CRLF always stands
 * before white space, so that dropping it and taking it for white space are the same.
 */
function relaxedValue(text: string, from: number): string {
  let out = '';
  let word = -1;
  for (let i = from; i < text.length; i++) {
    const c = text.charCodeAt(i);
    const white = isWhite(c) || (c === CR ? text.charCodeAt(i + 1) === LF : c === LF && text.charCodeAt(i - 1) === CR);
    if (!white) {
      if (word === -1) word = i;
    } else if (word !== -1) {
      // A single space between two words stays: most values are one slice.
      if (c === SPACE && i + 1 < text.length && text.charCodeAt(i + 1) > SPACE) continue;
      out += out === '' ? text.slice(word, i) : ` ${text.slice(word, i)}`;
      word = -1;
    }
  }
  if (word === -1) return out;
  return out === '' ? text.slice(word) : `${out} ${text.slice(word)}`;
}

function isWhite(c: number): boolean {
  return c === SPACE || c === TAB;
}

/** `bh=`: base64 of the SHA-256 of the canonical body, which begins at `bodyAt`. */
export function bodyHash(data: Buffer, bodyAt: number): string {
  return hash('sha256', relaxedBody(data, bodyAt), 'base64');
}

/** RFC 6376 section 3.4.4. A view of `data` where the body is canonical but for empty lines at its end. */
export function relaxedBody(data: Buffer, bodyAt: number): Buffer {
  const first = firstExcess(data, bodyAt);
  return first === -1 ? endedOnce(data, bodyAt, data.length) : reduced(data, bodyAt, first);
}

/** Where white space is first doubled, a tab, or at the end of a line; -1 where it nowhere is. */
function firstExcess(data: Buffer, from: number): number {
  for (let i = from; i < data.length; i++) {
    const c = data[i] as number;
    if (c > SPACE) continue;
    if (c === TAB) return i;
    if (c === SPACE) {
      const next = data[i + 1];
      if (next === SPACE || next === TAB || next === undefined || (next === CR && data[i + 2] === LF)) return i;
    }
  }
  return -1;
}

/** A copy with each run of white space made one space, or nothing at the end of a line. Nothing to do before `first`. */
function reduced(data: Buffer, from: number, first: number): Buffer {
  const end = data.length;
  const out = Buffer.allocUnsafe(end - from);
  let length = data.copy(out, 0, from, first);
  for (let i = first; i < end; i++) {
    const c = data[i] as number;
    if (c > SPACE || (c !== SPACE && c !== TAB)) {
      out[length++] = c;
      continue;
    }
    while (i + 1 < end && (data[i + 1] === SPACE || data[i + 1] === TAB)) i++;
    const endsLine = i + 1 === end || (data[i + 1] === CR && data[i + 2] === LF);
    if (!endsLine) out[length++] = SPACE;
  }
  return endedOnce(out, 0, length);
}

/** Without the empty lines at the end; what remains, unless it is nothing, ends in one CRLF. */
function endedOnce(data: Buffer, from: number, to: number): Buffer {
  let end = to;
  while (end - from >= 2 && data[end - 1] === LF && data[end - 2] === CR) end -= 2;
  if (end === from) return data.subarray(from, from);
  if (end < to) return data.subarray(from, end + 2);
  return Buffer.concat([data.subarray(from, end), Buffer.from('\r\n')]);
}

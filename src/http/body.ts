/**
 * Reads a request's body, bounded, and decodes it strictly.
 *
 * Promises: holds `maxBytes` at most, and twice that only while the parts of a body are joined; what comes after a body
 * was given up is not kept; invalid UTF-8 is an error and never U+FFFD; calls back exactly once.
 */
import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { FIELDS } from '../model/submission.ts';
import type { Shed } from './shed.ts';

/** The bytes, or why there are none: too many of them, no room for them, or the client went away. */
export type Body = Buffer | 'body-too-large' | Shed | 'aborted';

const EMPTY = Buffer.alloc(0);

/** True where the headers announce a body (RFC 9112 section 6.3). */
export function hasBody(req: IncomingMessage): boolean {
  const length = req.headers['content-length'];
  return req.headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
}

/** True where Content-Length alone shows that the body is too large. */
export function announcesMoreThan(req: IncomingMessage, maxBytes: number): boolean {
  const length = req.headers['content-length'];
  return length !== undefined && Number(length) > maxBytes;
}

/**
 * Reads the body of at most `maxBytes`; `hold` is asked for room for each part as it arrives. A body given up is not
 * paused: what still comes of it goes by.
 */
export function readBody(
  req: IncomingMessage,
  maxBytes: number,
  hold: (bytes: number) => Shed | null,
  done: (body: Body) => void,
): void {
  let first: Buffer | null = null;
  let rest: Buffer[] | null = null;
  let size = 0;
  let over = false;
  const end = (body: Body): void => {
    over = true;
    first = null;
    rest = null;
    done(body);
  };
  req.on('data', (chunk: Buffer) => {
    if (over) return;
    size += chunk.length;
    const fault = size > maxBytes ? 'body-too-large' : hold(chunk.length);
    if (fault !== null) end(fault);
    else if (first === null) first = chunk;
    else if (rest === null) rest = [first, chunk];
    else rest.push(chunk);
  });
  req.on('end', () => {
    if (!over) end(rest === null ? (first ?? EMPTY) : Buffer.concat(rest, size));
  });
  // Emitted only where the connection ends before the body does.
  req.on('error', () => {
    if (!over) end('aborted');
  });
}

/**
 * The JSON value (RFC 8259), or undefined where the bytes are no UTF-8 or no JSON. A byte order mark is no JSON
 * (section 8.1). Any depth: V8's parser keeps its own stack.
 */
export function parseJson(bytes: Buffer): unknown {
  if (bytes.length === 0 || !isUtf8(bytes)) return undefined;
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    return undefined;
  }
}

// Members of a body that the interface does not know. They are ignored, and a 201 names them, so that a client that sends `cc` or
// `attachments` learns that nothing comes of it.
//
// Guarantees: a name that is given has 1 to 64 ASCII letters, digits, hyphens or underscores, so that it is safe in a header;
// names come in the order of the body, each once, ten at most. A body with the four fields alone costs one count of its members;
// any other is scanned once, up to the tenth name.

export interface IgnoredFields {
  /** Of all unknown members, named or not. */
  readonly count: number;
  readonly names: readonly string[];
}

const MAX_NAMES = 10;
const MAX_NAME_LENGTH = 64;
/** Every character written as an escape of six. */
const MAX_WRITTEN_LENGTH = 6 * MAX_NAME_LENGTH;

const QUOTE = 0x22;
const COMMA = 0x2c;
const BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const BRACKET_END = 0x5d;
const BRACE = 0x7b;
const BRACE_END = 0x7d;

/**
 * The unknown members, or null where there are none. `bytes` is a JSON object in UTF-8 and `body` what it parses to, which has
 * the four fields.
 */
export function ignoredFields(bytes: Buffer, body: object): IgnoredFields | null {
  const count = Object.keys(body).length - FIELDS.length;
  return count === 0 ? null : { count, names: namesIn(bytes) };
}

/** Names as they stand in the text: the parsed object has numbers before other names, wherever they stood. */
function namesIn(bytes: Buffer): readonly string[] {
  const names = new Set<string>();
  let depth = 0;
  let nameNext = false;
  for (let at = 0; at < bytes.length && names.size < MAX_NAMES; at += 1) {
    switch (bytes[at]) {
      case QUOTE: {
        const end = endOfString(bytes, at + 1);
        if (nameNext) {
          const name = nameOf(bytes, at + 1, end);
          if (name !== null) names.add(name);
          nameNext = false;
        }
        at = end;
        break;
      }
      case COMMA:
        nameNext = depth === 1;
        break;
      case BRACE:
      case BRACKET:
        depth += 1;
        nameNext = depth === 1;
        break;
      case BRACE_END:
      case BRACKET_END:
        depth -= 1;
        break;
    }
  }
  return [...names];
}

/** Where the quotation mark stands that ends the string of which `from` is the first byte. */
function endOfString(bytes: Buffer, from: number): number {
  let at = from;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return at;
}

/** The unknown name between two quotation marks, or null where a header must not hold it. */
function nameOf(bytes: Buffer, from: number, end: number): string | null {
  if (end - from > MAX_WRITTEN_LENGTH) return null;
  // Bytes beyond ASCII become characters that no name may have.
  const written = bytes.toString('latin1', from, end);
  const name: unknown = written.includes('\\') ? JSON.parse(`"${written}"`) : written;
  if (typeof name !== 'string' || !isPermitted(name)) return null;
  return FIELDS.some((field) => field === name) ? null : name;
}

function isPermitted(name: string): boolean {
  if (name.length === 0 || name.length > MAX_NAME_LENGTH) return false;
  for (let i = 0; i < name.length; i += 1) {
    const c = name.charCodeAt(i);
    const letter = (c | 0x20) >= 0x61 && (c | 0x20) <= 0x7a;
    if (!letter && !(c >= 0x30 && c <= 0x39) && c !== 0x2d && c !== 0x5f) return false;
  }
  return true;
}

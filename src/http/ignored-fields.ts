/**
 * Members of a body that the interface does not know. They are ignored, and a 201 names them, so that a client that sends `cc` or
 * `attachments` learns that nothing comes of it.
 *
 * Guarantees: a name that is given has 1 to 64 ASCII letters, digits, hyphens or underscores, so that it is safe in a header;
 * names come in the order of the body, each once, ten at most. A body with the four fields alone costs one count of its members;
 * any other is scanned once, up to the tenth name.
 */
import { FIELDS } from '../model/submission.ts';

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

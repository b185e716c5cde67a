/**
 * A message cut into its MIME entities (RFC 2045, RFC 2046), as far as reports need it. For octets that a stranger chose:
 * one pass over the lines with a table of the boundaries that are open, so that depth costs nothing; depth, parts and
 * header are bounded; never throws, and never in need of a valid message. A message within a message stays one leaf.
 */
import { decodeCharset, decodeTransfer } from './decode.ts';
import { type Field, fieldValue, readFields } from './fields.ts';

/** Deeper multiparts are leaves. No report needs more than five. */
const DEEPEST = 40;
const MOST_PARTS = 400;
const LONGEST_HEADER = 131_072;
/** RFC 2046 section 5.1.1 allows 70 characters; some write more. */
const LONGEST_BOUNDARY = 250;
/** Of one Content-Type, those of the same name counted each. */
const MAX_PARAMETERS = 64;
/** Characters of a leaf that are decoded, unless more are asked for. Whoever reports has said it by then. */
const LONGEST_TEXT = 262_144;

export interface Entity {
  readonly fields: readonly Field[];
  /** Lower case, such as `message/delivery-status`. */
  readonly type: string;
  /** Of Content-Type, by lower-case name. */
  readonly parameters: ReadonlyMap<string, string>;
  /** Those of a multipart in which a boundary was found; of a leaf none. */
  readonly parts: readonly Entity[];
  /** The content of a leaf with its transfer encoding undone, one character for each octet, up to the longest. */
  readonly octets: () => string;
  /** The content of a leaf as text, LF at line ends. */
  readonly text: () => string;
}

interface Open {
  readonly fields: readonly Field[];
  readonly type: string;
  readonly parameters: ReadonlyMap<string, string>;
  readonly parts: Entity[];
  readonly boundary: string | null;
  readonly bodyStart: number;
}

/** Reads a whole message. Line ends may be bare LF, as files and gateways leave them. Of a leaf at most `longest` octets are decoded. */
export function readEntity(raw: Uint8Array, longest: number = LONGEST_TEXT): Entity {
  return parse(Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength).toString('latin1'), longest);
}

/** Every leaf in order. */
export function leafParts(entity: Entity): readonly Entity[] {
  return entity.parts.length === 0 ? [entity] : entity.parts.flatMap(leafParts);
}

function parse(text: string, longest: number): Entity {
  /** From the whole message inwards; the last one is being read. */
  const stack: Open[] = [];
  /** Delimiter to the depth of the entity whose parts it parts. */
  const delimiters = new Map<string, number>();
  let parts = 0;

  const open = (from: number, fallback: string): number => {
    const { header, bodyStart } = cutHeader(text, from, delimiters);
    const fields = readFields(header);
    const content = readContentType(fieldValue(fields, 'content-type') ?? fallback);
    const named = content.type.startsWith('multipart/') ? (content.parameters.get('boundary')?.trimEnd() ?? '') : '';
    const usable =
      named !== '' && named.length <= LONGEST_BOUNDARY && stack.length < DEEPEST && !delimiters.has(`--${named}`);
    if (usable) delimiters.set(`--${named}`, stack.length);
    stack.push({ fields, ...content, parts: [], boundary: usable ? named : null, bodyStart });
    parts += 1;
    return bodyStart;
  };
  const closeTo = (depth: number, end: number): void => {
    while (stack.length > depth) {
      const entity = stack.pop();
      if (entity === undefined) return;
      if (entity.boundary !== null) delimiters.delete(`--${entity.boundary}`);
      stack.at(-1)?.parts.push(closed(entity, text, end, longest));
    }
  };

  let at = open(startOf(text), 'text/plain');
  const root = stack[0];
  while (at < text.length) {
    const dashes = text.startsWith('--', at) ? at : text.indexOf('\n--', at) + 1;
    if (dashes === 0) break;
    const lineEnd = endOfLine(text, dashes);
    const found = delimiterAt(text, dashes, lineEnd, delimiters);
    at = lineEnd + 1;
    if (found === null || root === undefined) continue;
    closeTo(found.depth + 1, dashes);
    if (found.last) {
      // What follows up to the parent's next delimiter is nobody's (RFC 2046 section 5.1.1).
      closeMultipart(stack, delimiters);
    } else if (parts < MOST_PARTS) {
      at = open(at, stack.at(-1)?.type === 'multipart/digest' ? 'message/rfc822' : 'text/plain');
    }
  }
  closeTo(1, text.length);
  return root === undefined ? NOTHING : closed(root, text, text.length, longest);
}

/** The end of a multipart: its delimiter counts no more, and it stays open for nothing but being closed. */
function closeMultipart(stack: readonly Open[], delimiters: Map<string, number>): void {
  const boundary = stack.at(-1)?.boundary;
  if (boundary !== undefined && boundary !== null && stack.length > 1) delimiters.delete(`--${boundary}`);
}

const NOTHING: Entity = {
  fields: [],
  type: 'text/plain',
  parameters: new Map(),
  parts: [],
  octets: () => '',
  text: () => '',
};

function closed(
  { fields, type, parameters, parts, bodyStart }: Open,
  text: string,
  end: number,
  longest: number,
): Entity {
  if (parts.length > 0) return { fields, type, parameters, parts, octets: () => '', text: () => '' };
  // A multipart whose boundary never came is text, and so is an unknown leaf: whoever asks for it reads it as that.
  const real = type.startsWith('multipart/') ? 'text/plain' : type;
  let octets: Uint8Array | null = null;
  let decodedText: string | null = null;
  const decoded = (): Uint8Array => {
    if (octets !== null) return octets;
    const body = text.slice(bodyStart, Math.max(bodyStart, Math.min(end, bodyStart + 2 * longest)));
    octets = decodeTransfer(body, fieldValue(fields, 'content-transfer-encoding') ?? '').subarray(0, longest);
    return octets;
  };
  return {
    fields,
    type: real,
    parameters,
    parts: [],
    octets: () => Buffer.from(decoded()).toString('latin1'),
    text: () => {
      decodedText ??= decodeCharset(decoded(), parameters.get('charset') ?? '')
        .replaceAll('\r\n', '\n')
        .replaceAll('\r', '\n');
      return decodedText;
    },
  };
}

/** Mailbox files put a line `From …` before a message, some gateways blank lines. */
function startOf(text: string): number {
  let at = 0;
  while (text.charAt(at) === '\n' || text.charAt(at) === '\r') at += 1;
  return text.startsWith('From ', at) || text.startsWith('>From ', at)
    ? Math.min(text.length, endOfLine(text, at) + 1)
    : at;
}

/** The header from `from` on, up to a blank line, the end, or a delimiter of an entity around it. */
function cutHeader(
  text: string,
  from: number,
  delimiters: ReadonlyMap<string, number>,
): { readonly header: string; readonly bodyStart: number } {
  let at = from;
  while (at < text.length) {
    const end = endOfLine(text, at);
    if (end === at || (end === at + 1 && text.charAt(at) === '\r')) {
      return { header: text.slice(from, Math.min(at, from + LONGEST_HEADER)), bodyStart: end + 1 };
    }
    if (text.startsWith('--', at) && delimiterAt(text, at, end, delimiters) !== null) break;
    at = end + 1;
  }
  const bodyStart = Math.min(at, text.length);
  return { header: text.slice(from, Math.min(bodyStart, from + LONGEST_HEADER)), bodyStart };
}

/** Which multipart the line parts, and whether it ends it; null for any other line. */
function delimiterAt(
  text: string,
  from: number,
  end: number,
  delimiters: ReadonlyMap<string, number>,
): { readonly depth: number; readonly last: boolean } | null {
  if (end - from > LONGEST_BOUNDARY + 80) return null;
  const line = text.slice(from, end).trimEnd();
  const depth = delimiters.get(line);
  if (depth !== undefined) return { depth, last: false };
  const ended = line.endsWith('--') ? delimiters.get(line.slice(0, -2)) : undefined;
  return ended === undefined ? null : { depth: ended, last: true };
}

/** Where the line's LF stands, or the length of the text. */
function endOfLine(text: string, from: number): number {
  const end = text.indexOf('\n', from);
  return end < 0 ? text.length : end;
}

interface ContentType {
  readonly type: string;
  readonly parameters: ReadonlyMap<string, string>;
}

/** RFC 2045 section 5.1, continued values of RFC 2231 section 3 joined. */
function readContentType(value: string): ContentType {
  const parameters = new Map<string, string>();
  let at = 0;
  while (at < value.length && !'; \t('.includes(value.charAt(at))) at += 1;
  const type = value.slice(0, at).toLowerCase();
  at = afterSemicolon(value, at);
  for (let read = 0; read < MAX_PARAMETERS && at < value.length; read += 1) {
    const equals = value.indexOf('=', at);
    if (equals < 0) break;
    const before = value.slice(at, equals);
    // White space stands where a semicolon was forgotten.
    const name = before
      .slice(before.slice(0, -1).lastIndexOf(' ') + 1)
      .trim()
      .toLowerCase();
    const { text, end } = readParameter(value, equals + 1);
    const [base = '', section] = name.split('*');
    if (!parameters.has(base)) parameters.set(base, text);
    else if (section !== undefined && section !== '0') parameters.set(base, `${parameters.get(base)}${text}`);
    at = end;
  }
  return { type: type.includes('/') ? type : 'text/plain', parameters };
}

/** A token or quoted string (RFC 2045 section 5.1), and where the next parameter begins. */
function readParameter(value: string, start: number): { readonly text: string; readonly end: number } {
  let at = start;
  while (value.charAt(at) === ' ' || value.charAt(at) === '\t') at += 1;
  if (value.charAt(at) !== '"') {
    const from = at;
    while (at < value.length && !'; \t'.includes(value.charAt(at))) at += 1;
    return { text: value.slice(from, at), end: afterSemicolon(value, at) };
  }
  let text = '';
  for (at += 1; at < value.length && value.charAt(at) !== '"'; at += 1) {
    if (value.charAt(at) === '\\') at += 1;
    text += value.charAt(at);
  }
  return { text, end: afterSemicolon(value, at + 1) };
}

/** Behind the next semicolon, or where there is none before the next parameter, at it. */
function afterSemicolon(value: string, from: number): number {
  const end = value.indexOf(';', from);
  const equals = value.indexOf('=', from);
  if (end < 0 || (equals >= 0 && equals < end)) return Math.min(from, value.length);
  return end + 1;
}

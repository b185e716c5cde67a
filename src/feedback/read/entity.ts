/**
 * Parses an untrusted message into its MIME entities (RFC 2045, RFC 2046). The parser makes one pass over the lines with a table
 * of open boundaries, so the depth of nesting adds no cost. Depth, number of parts and header size are bounded. The parser never
 * throws and accepts invalid messages. An embedded message is one leaf.
 */
import { decodeCharset, decodeTransfer } from './decode.ts';
import { type Field, fieldValue, readFields } from './fields.ts';

/** Multiparts at a greater depth are leaves. Reports have at most five levels. */
const MAX_DEPTH = 40;
const MAX_PARTS = 400;
const MAX_HEADER_LENGTH = 131_072;
/** RFC 2046 section 5.1.1 allows 70 characters; some senders write more. */
const MAX_BOUNDARY_LENGTH = 250;
/** Parameters of one Content-Type, including repeated ones. */
const MAX_PARAMETERS = 64;
/** Default maximum number of characters that are decoded from a leaf. Reports have their content before this point. */
const MAX_TEXT_LENGTH = 262_144;

export interface Entity {
  readonly fields: readonly Field[];
  /** Lower case, such as `message/delivery-status`. */
  readonly type: string;
  /** Parameters of Content-Type, by lower-case name. */
  readonly parameters: ReadonlyMap<string, string>;
  /** Parts of a multipart whose boundary occurs; empty for a leaf. */
  readonly parts: readonly Entity[];
  /** Returns the decoded content of a leaf, one character per octet, up to the maximum length. */
  readonly octets: () => string;
  /** Returns the content of a leaf as text with LF line ends. */
  readonly text: () => string;
}

interface OpenEntity {
  readonly fields: readonly Field[];
  readonly type: string;
  readonly parameters: ReadonlyMap<string, string>;
  readonly parts: Entity[];
  readonly boundary: string | null;
  readonly bodyStart: number;
}

/** Parses a whole message. Lines may end with LF or CRLF. At most `maxOctets` octets of each leaf are decoded. */
export function readEntity(raw: Uint8Array, maxOctets: number = MAX_TEXT_LENGTH): Entity {
  return parse(Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength).toString('latin1'), maxOctets);
}

/** Returns all leaves in order. */
export function leafParts(entity: Entity): readonly Entity[] {
  return entity.parts.length === 0 ? [entity] : entity.parts.flatMap(leafParts);
}

function parse(text: string, maxOctets: number): Entity {
  /** The open entities, from the outermost to the innermost, which is being parsed. */
  const stack: OpenEntity[] = [];
  /** Maps each delimiter to the depth of its multipart. */
  const delimiters = new Map<string, number>();
  let parts = 0;

  const open = (from: number, defaultType: string): number => {
    const { header, bodyStart } = splitHeader(text, from, delimiters);
    const fields = readFields(header);
    const content = readContentType(fieldValue(fields, 'content-type') ?? defaultType);
    const boundaryName = content.type.startsWith('multipart/')
      ? (content.parameters.get('boundary')?.trimEnd() ?? '')
      : '';
    const isUsable =
      boundaryName !== '' &&
      boundaryName.length <= MAX_BOUNDARY_LENGTH &&
      stack.length < MAX_DEPTH &&
      !delimiters.has(`--${boundaryName}`);
    if (isUsable) delimiters.set(`--${boundaryName}`, stack.length);
    stack.push({ fields, ...content, parts: [], boundary: isUsable ? boundaryName : null, bodyStart });
    parts += 1;
    return bodyStart;
  };
  const closeTo = (depth: number, end: number): void => {
    while (stack.length > depth) {
      const entity = stack.pop();
      if (entity === undefined) return;
      if (entity.boundary !== null) delimiters.delete(`--${entity.boundary}`);
      stack.at(-1)?.parts.push(closeEntity(entity, text, end, maxOctets));
    }
  };

  let at = open(findMessageStart(text), 'text/plain');
  const root = stack[0];
  while (at < text.length) {
    const delimiterStart = text.startsWith('--', at) ? at : text.indexOf('\n--', at) + 1;
    if (delimiterStart === 0) break;
    const lineEnd = endOfLine(text, delimiterStart);
    const found = parseDelimiter(text, delimiterStart, lineEnd, delimiters);
    at = lineEnd + 1;
    if (found === null || root === undefined) continue;
    closeTo(found.depth + 1, delimiterStart);
    if (found.isLast) {
      // The text up to the parent's next delimiter is ignored (RFC 2046 section 5.1.1).
      closeMultipart(stack, delimiters);
    } else if (parts < MAX_PARTS) {
      at = open(at, stack.at(-1)?.type === 'multipart/digest' ? 'message/rfc822' : 'text/plain');
    }
  }
  closeTo(1, text.length);
  return root === undefined ? EMPTY_ENTITY : closeEntity(root, text, text.length, maxOctets);
}

/** Handles the close delimiter of a multipart: later delimiters of the multipart are ignored. */
function closeMultipart(stack: readonly OpenEntity[], delimiters: Map<string, number>): void {
  const boundary = stack.at(-1)?.boundary;
  if (boundary !== undefined && boundary !== null && stack.length > 1) delimiters.delete(`--${boundary}`);
}

const EMPTY_ENTITY: Entity = {
  fields: [],
  type: 'text/plain',
  parameters: new Map(),
  parts: [],
  octets: () => '',
  text: () => '',
};

function closeEntity(
  { fields, type, parameters, parts, bodyStart }: OpenEntity,
  text: string,
  end: number,
  maxOctets: number,
): Entity {
  if (parts.length > 0) return { fields, type, parameters, parts, octets: () => '', text: () => '' };
  // A multipart whose boundary does not occur is text.
  const effectiveType = type.startsWith('multipart/') ? 'text/plain' : type;
  let octets: Uint8Array | null = null;
  let decodedText: string | null = null;
  const decoded = (): Uint8Array => {
    if (octets !== null) return octets;
    const body = text.slice(bodyStart, Math.max(bodyStart, Math.min(end, bodyStart + 2 * maxOctets)));
    octets = decodeTransfer(body, fieldValue(fields, 'content-transfer-encoding') ?? '').subarray(0, maxOctets);
    return octets;
  };
  return {
    fields,
    type: effectiveType,
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

/** Skips the `From …` line of mailbox files and the blank lines of some gateways. */
function findMessageStart(text: string): number {
  let at = 0;
  while (text.charAt(at) === '\n' || text.charAt(at) === '\r') at += 1;
  return text.startsWith('From ', at) || text.startsWith('>From ', at)
    ? Math.min(text.length, endOfLine(text, at) + 1)
    : at;
}

/** Returns the header from `from` to a blank line, the end, or a delimiter of an enclosing entity. */
function splitHeader(
  text: string,
  from: number,
  delimiters: ReadonlyMap<string, number>,
): { readonly header: string; readonly bodyStart: number } {
  let at = from;
  while (at < text.length) {
    const end = endOfLine(text, at);
    if (end === at || (end === at + 1 && text.charAt(at) === '\r')) {
      return { header: text.slice(from, Math.min(at, from + MAX_HEADER_LENGTH)), bodyStart: end + 1 };
    }
    if (text.startsWith('--', at) && parseDelimiter(text, at, end, delimiters) !== null) break;
    at = end + 1;
  }
  const bodyStart = Math.min(at, text.length);
  return { header: text.slice(from, Math.min(bodyStart, from + MAX_HEADER_LENGTH)), bodyStart };
}

/** Returns the multipart of a delimiter line and whether the line closes it; null for any other line. */
function parseDelimiter(
  text: string,
  from: number,
  end: number,
  delimiters: ReadonlyMap<string, number>,
): { readonly depth: number; readonly isLast: boolean } | null {
  if (end - from > MAX_BOUNDARY_LENGTH + 80) return null;
  const line = text.slice(from, end).trimEnd();
  const depth = delimiters.get(line);
  if (depth !== undefined) return { depth, isLast: false };
  const closedDepth = line.endsWith('--') ? delimiters.get(line.slice(0, -2)) : undefined;
  return closedDepth === undefined ? null : { depth: closedDepth, isLast: true };
}

/** Returns the index of the line's LF, or the length of the text. */
function endOfLine(text: string, from: number): number {
  const end = text.indexOf('\n', from);
  return end < 0 ? text.length : end;
}

interface ContentType {
  readonly type: string;
  readonly parameters: ReadonlyMap<string, string>;
}

/** Parses Content-Type (RFC 2045 section 5.1) and joins continued values (RFC 2231 section 3). */
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
    // Some senders write white space instead of a semicolon.
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

/** Parses a token or quoted string (RFC 2045 section 5.1). `end` is the index of the next parameter. */
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

/** Returns the index after the next semicolon, or `from` when the next parameter comes first. */
function afterSemicolon(value: string, from: number): number {
  const end = value.indexOf(';', from);
  const equals = value.indexOf('=', from);
  if (end < 0 || (equals >= 0 && equals < end)) return Math.min(from, value.length);
  return end + 1;
}

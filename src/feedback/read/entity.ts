/**
 * Parses an untrusted message into its MIME entities (RFC 2045, RFC 2046). The parser makes one pass over the lines
 * with a table of open boundaries, so that the cost does not depend on the depth of nesting. Depth, number of parts and
 * header size are bounded. The parser never throws and accepts invalid messages. An embedded message is one leaf.
 */
import { decodeCharset, decodeTransfer } from './decode.ts';
import { type Field, findFieldValue, readFields } from './fields.ts';

/** Maximum depth of nesting. Multiparts at a greater depth are leaves. Reports have at most five levels. */
const MAX_DEPTH = 40;
const MAX_PARTS = 400;
const MAX_HEADER_LENGTH = 131_072;
/**
 * Maximum length of a boundary. RFC 2046 section 5.1.1 allows 70 characters, but some senders write longer boundaries.
 */
const MAX_BOUNDARY_LENGTH = 250;
/** Maximum number of parameters of one Content-Type, including repeated parameters. */
const MAX_PARAMETERS = 64;
/** Default maximum number of characters that are decoded from a leaf. The content of a report is within this length. */
const MAX_TEXT_LENGTH = 262_144;

export interface Entity {
  readonly fields: readonly Field[];
  /** The media type in lower case, such as `message/delivery-status`. */
  readonly type: string;
  /** Parameters of Content-Type, by lower-case name. */
  readonly parameters: ReadonlyMap<string, string>;
  /** The parts of a multipart whose boundary occurs in the text. Empty for a leaf. */
  readonly parts: readonly Entity[];
  /** Returns the decoded octets of a leaf, up to the maximum length, as one character per octet. */
  readonly decodeOctets: () => string;
  /** Returns the content of a leaf as text with LF line ends. */
  readonly decodeText: () => string;
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
  return parseEntity(Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength).toString('latin1'), maxOctets);
}

/** Media types of the machine-readable part. RFC 6533 section 3 defines the second type. */
const REPORT_TYPES: readonly string[] = [
  'message/delivery-status',
  'message/global-delivery-status',
  'text/delivery-status',
  'application/delivery-status',
  'message/x-delivery-status',
];

/** Returns true for the machine-readable part of a delivery status notification. */
export function isDeliveryStatus({ type }: Entity): boolean {
  return REPORT_TYPES.includes(type);
}

/** Returns all leaves of an entity in order. */
export function listLeafParts(entity: Entity): readonly Entity[] {
  return entity.parts.length === 0 ? [entity] : entity.parts.flatMap(listLeafParts);
}

function parseEntity(text: string, maxOctets: number): Entity {
  /** The open entities, from the outermost to the innermost. The innermost entity is being parsed. */
  const stack: OpenEntity[] = [];
  /** Maps each delimiter to the depth of its multipart. */
  const delimiters = new Map<string, number>();
  let partCount = 0;

  const openEntity = (startIndex: number, defaultType: string): number => {
    const { header, bodyStart } = splitHeader(text, startIndex, delimiters);
    const fields = readFields(header);
    const contentType = readContentType(findFieldValue(fields, 'content-type') ?? defaultType);
    const boundaryName = contentType.type.startsWith('multipart/')
      ? (contentType.parameters.get('boundary')?.trimEnd() ?? '')
      : '';
    const opensMultipart =
      boundaryName !== '' &&
      boundaryName.length <= MAX_BOUNDARY_LENGTH &&
      stack.length < MAX_DEPTH &&
      !delimiters.has(`--${boundaryName}`);
    if (opensMultipart) delimiters.set(`--${boundaryName}`, stack.length);
    stack.push({ fields, ...contentType, parts: [], boundary: opensMultipart ? boundaryName : null, bodyStart });
    partCount += 1;
    return bodyStart;
  };
  const closeEntitiesDeeperThan = (depth: number, endIndex: number): void => {
    while (stack.length > depth) {
      const entity = stack.pop();
      if (entity === undefined) return;
      if (entity.boundary !== null) delimiters.delete(`--${entity.boundary}`);
      stack.at(-1)?.parts.push(closeEntity(entity, text, endIndex, maxOctets));
    }
  };

  let index = openEntity(findMessageStart(text), 'text/plain');
  const root = stack[0];
  while (index < text.length) {
    const delimiterStart = text.startsWith('--', index) ? index : text.indexOf('\n--', index) + 1;
    if (delimiterStart === 0) break;
    const lineEnd = findLineEnd(text, delimiterStart);
    const foundDelimiter = parseDelimiter(text, delimiterStart, lineEnd, delimiters);
    index = lineEnd + 1;
    if (foundDelimiter === null || root === undefined) continue;
    closeEntitiesDeeperThan(foundDelimiter.depth + 1, delimiterStart);
    if (foundDelimiter.isLast) {
      // The text up to the next delimiter of the enclosing multipart is ignored (RFC 2046 section 5.1.1).
      closeMultipart(stack, delimiters);
    } else if (partCount < MAX_PARTS) {
      index = openEntity(index, stack.at(-1)?.type === 'multipart/digest' ? 'message/rfc822' : 'text/plain');
    }
  }
  closeEntitiesDeeperThan(1, text.length);
  return root === undefined ? EMPTY_ENTITY : closeEntity(root, text, text.length, maxOctets);
}

/**
 * Called after the close delimiter of the innermost multipart: removes the delimiter of the multipart from
 * `delimiters`, so that later occurrences are ignored. Keeps the delimiter of the outermost multipart.
 */
function closeMultipart(stack: readonly OpenEntity[], delimiters: Map<string, number>): void {
  const boundary = stack.at(-1)?.boundary;
  if (boundary !== undefined && boundary !== null && stack.length > 1) delimiters.delete(`--${boundary}`);
}

const EMPTY_ENTITY: Entity = {
  fields: [],
  type: 'text/plain',
  parameters: new Map(),
  parts: [],
  decodeOctets: () => '',
  decodeText: () => '',
};

function closeEntity(
  { fields, type, parameters, parts, bodyStart }: OpenEntity,
  text: string,
  end: number,
  maxOctets: number,
): Entity {
  if (parts.length > 0) return { fields, type, parameters, parts, decodeOctets: () => '', decodeText: () => '' };
  // A multipart whose boundary does not occur is read as text.
  const effectiveType = type.startsWith('multipart/') ? 'text/plain' : type;
  let octets: Uint8Array | null = null;
  let decodedText: string | null = null;
  const decodeBody = (): Uint8Array => {
    if (octets !== null) return octets;
    const body = text.slice(bodyStart, Math.max(bodyStart, Math.min(end, bodyStart + 2 * maxOctets)));
    octets = decodeTransfer(body, findFieldValue(fields, 'content-transfer-encoding') ?? '').subarray(0, maxOctets);
    return octets;
  };
  return {
    fields,
    type: effectiveType,
    parameters,
    parts: [],
    decodeOctets: () => Buffer.from(decodeBody()).toString('latin1'),
    decodeText: () => {
      decodedText ??= decodeCharset(decodeBody(), parameters.get('charset') ?? '')
        .replaceAll('\r\n', '\n')
        .replaceAll('\r', '\n');
      return decodedText;
    },
  };
}

/** Returns the index after the `From …` line of mailbox files and the leading blank lines that some gateways add. */
function findMessageStart(text: string): number {
  let index = 0;
  while (text.charAt(index) === '\n' || text.charAt(index) === '\r') index += 1;
  return text.startsWith('From ', index) || text.startsWith('>From ', index)
    ? Math.min(text.length, findLineEnd(text, index) + 1)
    : index;
}

/**
 * Returns the header that begins at `startIndex` and ends at a blank line, at the end of the text, or at a delimiter of
 * an enclosing entity.
 */
function splitHeader(
  text: string,
  startIndex: number,
  delimiters: ReadonlyMap<string, number>,
): { readonly header: string; readonly bodyStart: number } {
  let index = startIndex;
  while (index < text.length) {
    const end = findLineEnd(text, index);
    if (end === index || (end === index + 1 && text.charAt(index) === '\r')) {
      return { header: text.slice(startIndex, Math.min(index, startIndex + MAX_HEADER_LENGTH)), bodyStart: end + 1 };
    }
    if (text.startsWith('--', index) && parseDelimiter(text, index, end, delimiters) !== null) break;
    index = end + 1;
  }
  const bodyStart = Math.min(index, text.length);
  return { header: text.slice(startIndex, Math.min(bodyStart, startIndex + MAX_HEADER_LENGTH)), bodyStart };
}

/**
 * Returns the depth of the multipart to which a delimiter line belongs, and whether the line closes the multipart.
 * Returns null for any other line.
 */
function parseDelimiter(
  text: string,
  startIndex: number,
  end: number,
  delimiters: ReadonlyMap<string, number>,
): { readonly depth: number; readonly isLast: boolean } | null {
  if (end - startIndex > MAX_BOUNDARY_LENGTH + 80) return null;
  const line = text.slice(startIndex, end).trimEnd();
  const depth = delimiters.get(line);
  if (depth !== undefined) return { depth, isLast: false };
  const closedDepth = line.endsWith('--') ? delimiters.get(line.slice(0, -2)) : undefined;
  return closedDepth === undefined ? null : { depth: closedDepth, isLast: true };
}

/** Returns the index of the LF that ends the line, or the length of the text. */
function findLineEnd(text: string, startIndex: number): number {
  const end = text.indexOf('\n', startIndex);
  return end < 0 ? text.length : end;
}

interface ContentType {
  readonly type: string;
  readonly parameters: ReadonlyMap<string, string>;
}

/** Parses Content-Type (RFC 2045 section 5.1) and joins continued values (RFC 2231 section 3). */
function readContentType(value: string): ContentType {
  const parameters = new Map<string, string>();
  let index = 0;
  while (index < value.length && !'; \t('.includes(value.charAt(index))) index += 1;
  const type = value.slice(0, index).toLowerCase();
  index = skipSemicolon(value, index);
  for (let parameterCount = 0; parameterCount < MAX_PARAMETERS && index < value.length; parameterCount += 1) {
    const equalsIndex = value.indexOf('=', index);
    if (equalsIndex < 0) break;
    const precedingText = value.slice(index, equalsIndex);
    // Some senders separate parameters with white space instead of a semicolon.
    const name = precedingText
      .slice(precedingText.slice(0, -1).lastIndexOf(' ') + 1)
      .trim()
      .toLowerCase();
    const { text, end } = readParameter(value, equalsIndex + 1);
    const [baseName = '', sectionText] = name.split('*');
    if (!parameters.has(baseName)) parameters.set(baseName, text);
    else if (sectionText !== undefined && sectionText !== '0')
      parameters.set(baseName, `${parameters.get(baseName)}${text}`);
    index = end;
  }
  return { type: type.includes('/') ? type : 'text/plain', parameters };
}

/** Parses a token or quoted string (RFC 2045 section 5.1). `end` is the index of the next parameter. */
function readParameter(value: string, start: number): { readonly text: string; readonly end: number } {
  let index = start;
  while (value.charAt(index) === ' ' || value.charAt(index) === '\t') index += 1;
  if (value.charAt(index) !== '"') {
    const tokenStart = index;
    while (index < value.length && !'; \t'.includes(value.charAt(index))) index += 1;
    return { text: value.slice(tokenStart, index), end: skipSemicolon(value, index) };
  }
  let text = '';
  for (index += 1; index < value.length && value.charAt(index) !== '"'; index += 1) {
    if (value.charAt(index) === '\\') index += 1;
    text += value.charAt(index);
  }
  return { text, end: skipSemicolon(value, index + 1) };
}

/**
 * Returns the index after the next semicolon. If no semicolon follows, or an equals sign precedes the semicolon,
 * returns the smaller of `startIndex` and the length of `value`.
 */
function skipSemicolon(value: string, startIndex: number): number {
  const semicolonIndex = value.indexOf(';', startIndex);
  const equalsIndex = value.indexOf('=', startIndex);
  if (semicolonIndex < 0 || (equalsIndex >= 0 && equalsIndex < semicolonIndex))
    return Math.min(startIndex, value.length);
  return semicolonIndex + 1;
}

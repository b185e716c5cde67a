/** RFC 2045, 2046. One pass whose cost does not depend on nesting; an embedded message is a leaf. Never throws. */
import { decodeCharset, decodeTransfer } from './decode.ts';

/** Multiparts at a greater depth are leaves. Reports have at most five levels. */
const MAX_DEPTH = 40;
const MAX_PARTS = 400;
const MAX_HEADER_LENGTH = 131_072;
/** RFC 2046 section 5.1.1 allows 70 characters, but some senders write longer ones. */
const MAX_BOUNDARY_LENGTH = 250;
const MAX_PARAMETERS = 64;
const MAX_TEXT_LENGTH = 262_144;

export interface Entity {
  readonly fields: readonly Field[];
  readonly type: string;
  readonly parameters: ReadonlyMap<string, string>;
  readonly parts: readonly Entity[];
  readonly decodeOctets: () => string;
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

export function readEntity(raw: Uint8Array, maxOctets: number = MAX_TEXT_LENGTH): Entity {
  return parseEntity(Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength).toString('latin1'), maxOctets);
}

/** RFC 6533 section 3 defines the second one. */
const REPORT_TYPES: readonly string[] = [
  'message/delivery-status',
  'message/global-delivery-status',
  'text/delivery-status',
  'application/delivery-status',
  'message/x-delivery-status',
];

export function isDeliveryStatus({ type }: Entity): boolean {
  return REPORT_TYPES.includes(type);
}

export function listLeafParts(entity: Entity): readonly Entity[] {
  return entity.parts.length === 0 ? [entity] : entity.parts.flatMap(listLeafParts);
}

function parseEntity(text: string, maxOctets: number): Entity {
  const stack: OpenEntity[] = [];
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
      // RFC 2046 section 5.1.1: the text up to the next delimiter is ignored.
      closeMultipart(stack, delimiters);
    } else if (partCount < MAX_PARTS) {
      index = openEntity(index, stack.at(-1)?.type === 'multipart/digest' ? 'message/rfc822' : 'text/plain');
    }
  }
  closeEntitiesDeeperThan(1, text.length);
  return root === undefined ? EMPTY_ENTITY : closeEntity(root, text, text.length, maxOctets);
}

/** Later occurrences of the delimiter are ignored, except that of the outermost multipart. */
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

/** After the `From …` line of mailbox files and the blank lines that some gateways add. */
function findMessageStart(text: string): number {
  let index = 0;
  while (text.charAt(index) === '\n' || text.charAt(index) === '\r') index += 1;
  return text.startsWith('From ', index) || text.startsWith('>From ', index)
    ? Math.min(text.length, findLineEnd(text, index) + 1)
    : index;
}

/** Ends at a blank line, at the end of the text, or at a delimiter of an enclosing entity. */
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

export function findLineEnd(text: string, startIndex: number): number {
  const end = text.indexOf('\n', startIndex);
  return end < 0 ? text.length : end;
}

interface ContentType {
  readonly type: string;
  readonly parameters: ReadonlyMap<string, string>;
}

/** RFC 2045 section 5.1, with continued values (RFC 2231 section 3). */
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
    // Some senders write white space instead of a semicolon.
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

/** A token or quoted string (RFC 2045 section 5.1). `end` is the index of the next parameter. */
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

/** After the next semicolon, unless an equals sign precedes it. */
function skipSemicolon(value: string, startIndex: number): number {
  const semicolonIndex = value.indexOf(';', startIndex);
  const equalsIndex = value.indexOf('=', startIndex);
  if (semicolonIndex < 0 || (equalsIndex >= 0 && equalsIndex < semicolonIndex))
    return Math.min(startIndex, value.length);
  return semicolonIndex + 1;
}

const MAX_FIELDS = 1_000;
const MAX_VALUE_LENGTH = 16_384;
/** RFC 5322 section 2.2 defines none. The longest registered name has fewer than 40 characters. */
const MAX_NAME_LENGTH = 80;

export interface Field {
  readonly name: string;
  /** Without surrounding white space. Each fold (RFC 5322 section 2.2.3) becomes one space. */
  readonly value: string;
}

export function readFields(text: string): readonly Field[] {
  return readGroups(text, true)[0] ?? [];
}

/** Separated by blank lines (RFC 3464 section 2.1). */
export function readFieldGroups(text: string): readonly (readonly Field[])[] {
  return readGroups(text, false);
}

export function findFieldValue(fields: readonly Field[], name: string): string | null {
  for (const field of fields) if (field.name === name && field.value !== '') return field.value;
  return null;
}

function readGroups(text: string, stopsAfterFirstGroup: boolean): readonly (readonly Field[])[] {
  const groups: Field[][] = [];
  let group: Field[] = [];
  let fieldCount = 0;
  let name = '';
  let valueParts: string[] = [];
  let valueLength = 0;
  const endField = (): void => {
    if (name !== '') group.push({ name, value: valueParts.join(' ').trim() });
    name = '';
  };
  const endGroup = (): void => {
    endField();
    if (group.length > 0) groups.push(group);
    group = [];
  };
  let lineStart = 0;
  while (lineStart < text.length && fieldCount < MAX_FIELDS) {
    const lineEnd = text.indexOf('\n', lineStart);
    const line = text.slice(lineStart, lineEnd < 0 ? text.length : lineEnd);
    lineStart = lineEnd < 0 ? text.length : lineEnd + 1;
    if (isBlank(line)) {
      endGroup();
      if (stopsAfterFirstGroup && groups.length > 0) break;
    } else if (line.startsWith(' ') || line.startsWith('\t')) {
      if (valueLength < MAX_VALUE_LENGTH) valueParts.push(line.slice(0, MAX_VALUE_LENGTH - valueLength).trim());
      valueLength += line.length;
    } else {
      endField();
      const colonIndex = findColon(line);
      if (colonIndex < 0) continue;
      fieldCount += 1;
      name = line.slice(0, colonIndex).trimEnd().toLowerCase();
      valueParts = [line.slice(colonIndex + 1, colonIndex + 1 + MAX_VALUE_LENGTH).trim()];
      valueLength = line.length;
    }
  }
  endGroup();
  return groups;
}

function findColon(line: string): number {
  for (let i = 0; i < line.length && i <= MAX_NAME_LENGTH; i += 1) {
    const charCode = line.charCodeAt(i);
    if (charCode === 0x3a) return i === 0 ? -1 : i;
    // Obsolete (RFC 5322 section 4.5.8), but some servers still write it.
    if (charCode === 0x20 || charCode === 0x09)
      return line
        .slice(i, i + MAX_NAME_LENGTH)
        .trimStart()
        .startsWith(':')
        ? line.indexOf(':', i)
        : -1;
    if (charCode < 0x21 || charCode > 0x7e) return -1;
  }
  return -1;
}

function isBlank(line: string): boolean {
  for (let i = 0; i < line.length; i += 1) {
    const charCode = line.charCodeAt(i);
    if (charCode !== 0x20 && charCode !== 0x09 && charCode !== 0x0d) return false;
  }
  return true;
}

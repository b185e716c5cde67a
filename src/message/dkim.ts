/**
 * RFC 6376, RFC 8463, relaxed/relaxed. Without `l=`, a signature does not survive appended text; `t=` is the time of
 * acceptance, the same for every attempt. docs/decisions/dkim.md explains the signed fields.
 */
import { hash } from 'node:crypto';
import type { DkimAlgorithm } from '../model/domain.ts';

export interface SignatureIdentity {
  readonly domain: string;
  readonly selector: string;
  readonly algorithm: DkimAlgorithm;
}

interface SignedHeader {
  /** A name occurs once for each of its fields, and once more if it is oversigned. */
  readonly names: readonly string[];
  readonly text: string;
}

export interface SignableMessage {
  readonly header: SignedHeader;
  readonly bodyHash: string;
}

/** Equal for all messages with the same key and signed fields: up to `s=`. */
interface SignaturePrefix {
  readonly names: readonly string[];
  readonly canonicalText: string;
  readonly text: string;
  readonly column: number;
}

interface SignatureInput {
  readonly text: string;
  readonly column: number;
  /** For RSA the canonical header; for Ed25519 its SHA-256 (RFC 8463 section 3). */
  readonly bytes: Buffer;
}

/** An added copy then fails (RFC 6376 sections 5.4.2, 8.15). Mail programs show these or read the body by them. */
const OVERSIGNED_FIELDS = [
  'From',
  'To',
  'Cc',
  'Subject',
  'Date',
  'Message-ID',
  'Reply-To',
  'MIME-Version',
  'Content-Type',
  'Content-Transfer-Encoding',
];

/** Relays and mailing lists may add these, so they are signed only if they occur. */
const SIGNED_FIELDS = [
  'Sender',
  'In-Reply-To',
  'References',
  'Auto-Submitted',
  'Feedback-ID',
  'List-ID',
  'List-Unsubscribe',
  'List-Unsubscribe-Post',
  'List-Help',
  'List-Subscribe',
  'List-Post',
  'List-Owner',
  'List-Archive',
];

interface FieldRule {
  readonly name: string;
  readonly lowerCaseName: string;
  readonly isOversigned: boolean;
}

const RULES: readonly FieldRule[] = [
  ...OVERSIGNED_FIELDS.map((name) => ({ name, lowerCaseName: name.toLowerCase(), isOversigned: true })),
  ...SIGNED_FIELDS.map((name) => ({ name, lowerCaseName: name.toLowerCase(), isOversigned: false })),
];

const RULE_INDEX: ReadonlyMap<string, number> = new Map(
  RULES.map(({ lowerCaseName }, index) => [lowerCaseName, index]),
);

const NO_FIELDS: ReadonlySet<string> = new Set();

/** `h=` for each set of excluded and present fields (a bit per entry of `RULES`), and the prefix of each key. */
const CACHED_NAMES = new WeakMap<ReadonlySet<string>, Map<number, readonly string[]>>();
const MAX_CACHED_NAMES = 64;
const CACHED_PREFIXES = new WeakMap<SignatureIdentity, SignaturePrefix>();

/** The 76th column is reserved for a space. */
const MAX_COLUMNS = 75;

/** `excludedNames`: what the next hop replaces, in lower case. From is always signed (RFC 6376 section 5.4). */
export function prepareSignableMessage(
  data: Buffer,
  bodyAt: number,
  excludedNames: ReadonlySet<string> = NO_FIELDS,
): SignableMessage {
  const header = data.toString('latin1', 0, bodyAt);
  return { header: selectSignedHeader(splitFields(header), excludedNames), bodyHash: computeBodyHash(data, bodyAt) };
}

/** Fields with the same name are signed from the last to the first (RFC 6376 section 5.4.2). */
function selectSignedHeader(fields: readonly HeaderField[], excluded: ReadonlySet<string>): SignedHeader {
  const textsByRule = new Array<string>(RULES.length).fill('');
  const counts = new Array<number>(RULES.length).fill(0);
  let presentFields = 0;
  let areNamesUnique = true;
  for (let i = fields.length - 1; i >= 0; i--) {
    const field = fields[i] as HeaderField;
    const rule = RULE_INDEX.get(field.name);
    if (rule === undefined || (excluded.size > 0 && excluded.has(field.name) && field.name !== 'from')) continue;
    if (counts[rule] !== 0) areNamesUnique = false;
    counts[rule] = (counts[rule] as number) + 1;
    presentFields |= 1 << rule;
    textsByRule[rule] = `${textsByRule[rule]}${toRelaxedField(field)}\r\n`;
  }
  const text = textsByRule.join('');
  if (!areNamesUnique) return { names: listNames(counts, excluded), text };
  const cachedNames = CACHED_NAMES.get(excluded) ?? new Map<number, readonly string[]>();
  CACHED_NAMES.set(excluded, cachedNames);
  const names = cachedNames.get(presentFields) ?? listNames(counts, excluded);
  if (cachedNames.size < MAX_CACHED_NAMES) cachedNames.set(presentFields, names);
  return { names, text };
}

/** `counts` has the number of fields for each entry of `RULES`. */
function listNames(counts: readonly number[], excluded: ReadonlySet<string>): readonly string[] {
  return RULES.flatMap(({ name, lowerCaseName, isOversigned }, index) => {
    const count = counts[index] ?? 0;
    const isExcluded = excluded.has(lowerCaseName) && lowerCaseName !== 'from';
    return new Array<string>(isOversigned && !isExcluded ? count + 1 : count).fill(name);
  });
}

export function createSignatureInput(
  { header, bodyHash }: SignableMessage,
  key: SignatureIdentity,
  at: number,
): SignatureInput {
  let prefix = CACHED_PREFIXES.get(key);
  if (prefix === undefined || prefix.names !== header.names) {
    prefix = createPrefix(header.names, key);
    CACHED_PREFIXES.set(key, prefix);
  }
  const timeTag = `t=${Math.floor(at / 1000)};`;
  const bodyHashTag = `bh=${bodyHash};`;
  // RFC 6376 section 3.7: last, with an empty b=, without CRLF. Folds at spaces change nothing.
  const bytes = Buffer.from(`${header.text}${prefix.canonicalText} ${timeTag} ${bodyHashTag} b=`, 'latin1');
  return {
    ...appendFoldedTokens(prefix.text, prefix.column, [timeTag, bodyHashTag]),
    bytes: key.algorithm === 'rsa' ? bytes : hash('sha256', bytes, 'buffer'),
  };
}

function createPrefix(names: readonly string[], key: SignatureIdentity): SignaturePrefix {
  const nameTokens = names.map((name, i) => `${i === 0 ? 'h=' : ''}${name}${i === names.length - 1 ? ';' : ':'}`);
  const algorithm = key.algorithm === 'rsa' ? 'a=rsa-sha256;' : 'a=ed25519-sha256;';
  const tokensBeforeNames = [algorithm, 'c=relaxed/relaxed;', `d=${key.domain};`];
  const tokens = ['v=1;', ...tokensBeforeNames, ...nameTokens, 'q=dns/txt;', `s=${key.selector};`];
  const field = 'DKIM-Signature:';
  return {
    names,
    canonicalText: `dkim-signature:${tokens.join(' ')}`,
    ...appendFoldedTokens(field, field.length, tokens),
  };
}

/** A space or a fold precedes each token. */
function appendFoldedTokens(
  text: string,
  column: number,
  tokens: readonly string[],
): { readonly text: string; readonly column: number } {
  let [fieldText, lineColumn] = [text, column];
  for (const token of tokens) {
    const fitsLine = lineColumn + 1 + token.length <= MAX_COLUMNS;
    fieldText += fitsLine ? ` ${token}` : `\r\n ${token}`;
    lineColumn = (fitsLine ? lineColumn : 0) + 1 + token.length;
  }
  return { text: fieldText, column: lineColumn };
}

export function formatSignatureField({ text, column }: SignatureInput, signature: Buffer): string {
  const value = `b=${signature.toString('base64')}`;
  let field = text;
  if (column + 1 + Math.min(value.length, MAX_COLUMNS) <= MAX_COLUMNS) field += ' ';
  else field += '\r\n ';
  for (let offset = 0; offset < value.length; offset += MAX_COLUMNS) {
    field += offset === 0 ? value.slice(0, MAX_COLUMNS) : `\r\n ${value.slice(offset, offset + MAX_COLUMNS)}`;
  }
  return `${field}\r\n`;
}

export function prependSignatures(fields: readonly string[], data: Buffer): Buffer {
  const header = fields.join('');
  const signedMessage = Buffer.allocUnsafe(header.length + data.length);
  signedMessage.write(header, 0, 'latin1');
  signedMessage.set(data, header.length);
  return signedMessage;
}

// RFC 6376 sections 3.4.2 and 3.4.4: survives changed folds or white space. One pass, no copy of what is canonical.
// Expects CRLF; a bare CR or LF is ordinary. One character is one octet (latin1), for SMTPUTF8.

interface HeaderField {
  readonly name: string;
  readonly text: string;
}

const TAB = 0x09;
const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;

export function splitFields(header: string): HeaderField[] {
  const fields: HeaderField[] = [];
  let start = 0;
  while (start < header.length) {
    let end = header.indexOf('\r\n', start);
    if (end === start) break;
    while (end !== -1 && isWhiteSpace(header.charCodeAt(end + 2))) end = header.indexOf('\r\n', end + 2);
    if (end === -1) end = header.length;
    const text = header.slice(start, end);
    const colon = text.indexOf(':');
    fields.push({ name: colon === -1 ? '' : text.slice(0, colon).trimEnd().toLowerCase(), text });
    start = end + 2;
  }
  return fields;
}

/** RFC 6376 section 3.4.2, without its final CRLF. */
export function toRelaxedField(field: HeaderField): string {
  return `${field.name}:${toRelaxedValue(field.text, field.text.indexOf(':') + 1)}`;
}

/** In a field, white space always follows a CRLF, so that the CRLF counts as white space. */
function toRelaxedValue(text: string, start: number): string {
  let relaxedValue = '';
  let wordStart = -1;
  for (let i = start; i < text.length; i++) {
    const codeUnit = text.charCodeAt(i);
    const isSpace =
      isWhiteSpace(codeUnit) ||
      (codeUnit === CR ? text.charCodeAt(i + 1) === LF : codeUnit === LF && text.charCodeAt(i - 1) === CR);
    if (!isSpace) {
      if (wordStart === -1) wordStart = i;
    } else if (wordStart !== -1) {
      // Words that a single space separates are copied in one slice.
      if (codeUnit === SPACE && i + 1 < text.length && text.charCodeAt(i + 1) > SPACE) continue;
      relaxedValue += relaxedValue === '' ? text.slice(wordStart, i) : ` ${text.slice(wordStart, i)}`;
      wordStart = -1;
    }
  }
  if (wordStart === -1) return relaxedValue;
  return relaxedValue === '' ? text.slice(wordStart) : `${relaxedValue} ${text.slice(wordStart)}`;
}

function isWhiteSpace(code: number): boolean {
  return code === SPACE || code === TAB;
}

export function computeBodyHash(data: Buffer, bodyAt: number): string {
  return hash('sha256', toRelaxedBody(data, bodyAt), 'base64');
}

/** RFC 6376 section 3.4.4. A view of `data` if only empty lines at its end change. */
export function toRelaxedBody(data: Buffer, bodyAt: number): Buffer {
  const firstExcess = findExcessWhiteSpace(data, bodyAt);
  return firstExcess === -1 ? trimEmptyLines(data, bodyAt, data.length) : collapseWhiteSpace(data, bodyAt, firstExcess);
}

function findExcessWhiteSpace(data: Buffer, start: number): number {
  for (let i = start; i < data.length; i++) {
    const octet = data[i] as number;
    if (octet > SPACE) continue;
    if (octet === TAB) return i;
    if (octet === SPACE) {
      const nextOctet = data[i + 1];
      if (
        nextOctet === SPACE ||
        nextOctet === TAB ||
        nextOctet === undefined ||
        (nextOctet === CR && data[i + 2] === LF)
      )
        return i;
    }
  }
  return -1;
}

function collapseWhiteSpace(data: Buffer, start: number, firstExcess: number): Buffer {
  const end = data.length;
  const collapsedData = Buffer.allocUnsafe(end - start);
  let length = data.copy(collapsedData, 0, start, firstExcess);
  for (let i = firstExcess; i < end; i++) {
    const octet = data[i] as number;
    if (octet > SPACE || (octet !== SPACE && octet !== TAB)) {
      collapsedData[length++] = octet;
      continue;
    }
    while (i + 1 < end && (data[i + 1] === SPACE || data[i + 1] === TAB)) i++;
    const endsLine = i + 1 === end || (data[i + 1] === CR && data[i + 2] === LF);
    if (!endsLine) collapsedData[length++] = SPACE;
  }
  return trimEmptyLines(collapsedData, 0, length);
}

export function trimEmptyLines(data: Buffer, start: number, bodyEnd: number): Buffer {
  let end = bodyEnd;
  while (end - start >= 2 && data[end - 1] === LF && data[end - 2] === CR) end -= 2;
  if (end === start) return data.subarray(start, start);
  if (end < bodyEnd) return data.subarray(start, end + 2);
  return Buffer.concat([data.subarray(start, end), Buffer.from('\r\n')]);
}

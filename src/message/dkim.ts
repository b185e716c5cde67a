/**
 * Builds the bytes that a DKIM key signs, and the header field with the signature (RFC 6376, RFC 8463). The functions
 * are pure. domains/signing.ts computes the signature.
 *
 * Guarantees: the canonicalization is relaxed/relaxed. A signature has no `l=`, so it becomes invalid if text is
 * appended to the body. A signature also has no `x=`, so it does not expire. `t=` is the time of acceptance, so every
 * attempt with the same keys has the same signature. Lines are folded at 76 columns unless a domain name is longer. A
 * test compares the field with the output of mailauth byte for byte. docs/decisions/dkim.md explains the list of signed
 * fields.
 */
import { hash } from 'node:crypto';
import type { DkimAlgorithm } from '../model/domain.ts';

/**
 * The identity of a key. `domain` is in A-labels and `selector` is a host label. Both are in lower case, and the caller
 * has checked them.
 */
export interface SignatureIdentity {
  readonly domain: string;
  readonly selector: string;
  readonly algorithm: DkimAlgorithm;
}

interface SignedHeader {
  /**
   * The `h=` list. The list contains a name once for each field of that name, and once more if the name is oversigned.
   */
  readonly names: readonly string[];
  /** The canonical fields in the order of `names`, each ended by CRLF. One character represents one octet. */
  readonly text: string;
}

/** The input that all signatures of one message share. */
export interface SignableMessage {
  readonly header: SignedHeader;
  /** The value of `bh=`. */
  readonly bodyHash: string;
}

/**
 * The beginning of a DKIM-Signature field: the part that is equal for all messages with the same key and the same
 * signed fields.
 */
interface SignaturePrefix {
  readonly names: readonly string[];
  /** The canonical form of the field, up to and including `s=`. */
  readonly canonicalText: string;
  /** The folded form of the field, up to and including `s=`, and the column at its end. */
  readonly text: string;
  readonly column: number;
}

interface SignatureInput {
  /** The folded DKIM-Signature field before `b=`, and the column at its end. */
  readonly text: string;
  readonly column: number;
  /**
   * The bytes that the key signs: for RSA the canonical header, which is signed with SHA-256; for Ed25519 the SHA-256
   * of the canonical header (RFC 8463 section 3).
   */
  readonly bytes: Buffer;
}

/**
 * Fields that `h=` lists once more than they occur in the message. A copy of the message with an additional field that
 * has one of these names therefore does not verify (RFC 6376 sections 5.4.2 and 8.15). Mail programs display these
 * fields, or use them to interpret the body.
 */
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

/**
 * Fields that are signed if they occur in the message. Relays and mailing lists may add them, so they are not
 * oversigned.
 */
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

/**
 * Caches of values that are equal for many messages. `CACHED_NAMES` contains the `h=` list for each set of excluded
 * fields and each set of present fields (one bit for each entry of `RULES`). `CACHED_PREFIXES` contains the signature
 * prefix of each key. These values are most of the text of a signature.
 */
const CACHED_NAMES = new WeakMap<ReadonlySet<string>, Map<number, readonly string[]>>();
const MAX_CACHED_NAMES = 64;
const CACHED_PREFIXES = new WeakMap<SignatureIdentity, SignaturePrefix>();

/** The maximum length of a line that has more than one token. The 76th column is reserved for a space. */
const MAX_COLUMNS = 75;

/**
 * Prepares a message for signing. The message has CRLF line ends, and its body begins at `bodyAt`. `excludedNames`
 * contains the lower-case names of fields that the next hop replaces: the replacement of a signed field would
 * invalidate the signature. From is always signed (RFC 6376 section 5.4).
 */
export function prepareSignableMessage(
  data: Buffer,
  bodyAt: number,
  excludedNames: ReadonlySet<string> = NO_FIELDS,
): SignableMessage {
  const header = data.toString('latin1', 0, bodyAt);
  return { header: selectSignedHeader(splitFields(header), excludedNames), bodyHash: computeBodyHash(data, bodyAt) };
}

/**
 * Selects the fields to sign. Fields with the same name are signed from the last to the first (RFC 6376 section 5.4.2).
 */
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

/** Returns the `h=` list. `counts` contains the number of fields for each entry of `RULES`. */
function listNames(counts: readonly number[], excluded: ReadonlySet<string>): readonly string[] {
  return RULES.flatMap(({ name, lowerCaseName, isOversigned }, index) => {
    const count = counts[index] ?? 0;
    const isExcluded = excluded.has(lowerCaseName) && lowerCaseName !== 'from';
    return new Array<string>(isOversigned && !isExcluded ? count + 1 : count).fill(name);
  });
}

/**
 * Builds the DKIM-Signature field of one key without the signature. `at` is in milliseconds since the epoch. `t=`
 * contains whole seconds.
 */
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
  // RFC 6376 section 3.7: the DKIM-Signature field itself is signed last, with an empty b= and without a CRLF. The
  // field is folded only at spaces, so its relaxed form does not depend on the folds.
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

/** Appends `tokens` to a field that ends at `column`. A space or a fold precedes each token. */
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

/** Returns the complete DKIM-Signature field, ended by CRLF. */
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

/** Returns a copy of the message with `fields` before its header, in the given order. */
export function prependSignatures(fields: readonly string[], data: Buffer): Buffer {
  const header = fields.join('');
  const signedMessage = Buffer.allocUnsafe(header.length + data.length);
  signedMessage.write(header, 0, 'latin1');
  signedMessage.set(data, header.length);
  return signedMessage;
}

// Computes the relaxed canonical forms of DKIM (RFC 6376 sections 3.4.2 and 3.4.4). A signature remains valid if a
// relay changes the folds or the amount of white space.
//
// Guarantees: the functions are pure, make one pass, and do not copy a message that is already canonical. Composition
// guarantees the CRLF line ends that the functions expect. A bare CR or LF is treated like any other octet. One
// character of the header text represents one octet (latin1), so the UTF-8 of SMTPUTF8 messages is preserved. White
// space means the space and the tab, as in the RFC.

interface HeaderField {
  /** The name in lower case, without surrounding white space. */
  readonly name: string;
  /** The complete field with its folds and without its final CRLF. */
  readonly text: string;
}

const TAB = 0x09;
const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;

/**
 * Splits a header into its fields, in order. `header` may include the empty line after the fields. A line without a
 * colon becomes a field with an empty name, which is never signed.
 */
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

/** Returns the relaxed form of a field (RFC 6376 section 3.4.2) without its final CRLF. */
export function toRelaxedField(field: HeaderField): string {
  return `${field.name}:${toRelaxedValue(field.text, field.text.indexOf(':') + 1)}`;
}

/**
 * Unfolds the value, replaces each run of white space with one space, and removes white space at both ends. In a field,
 * white space always follows a CRLF, so the CRLF can be treated as white space.
 */
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
      // Words that are separated by a single space are copied in one slice, so most values are copied in one slice.
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

/** Returns the value of `bh=`: the SHA-256 of the canonical body in base64. The body begins at `bodyAt`. */
export function computeBodyHash(data: Buffer, bodyAt: number): string {
  return hash('sha256', toRelaxedBody(data, bodyAt), 'base64');
}

/**
 * Returns the relaxed body (RFC 6376 section 3.4.4). The result is a view of `data` if the body is canonical except for
 * empty lines at its end.
 */
export function toRelaxedBody(data: Buffer, bodyAt: number): Buffer {
  const firstExcess = findExcessWhiteSpace(data, bodyAt);
  return firstExcess === -1 ? trimEmptyLines(data, bodyAt, data.length) : collapseWhiteSpace(data, bodyAt, firstExcess);
}

/**
 * Returns the index of the first white space that the relaxed form changes: a run of several characters, a tab, or
 * white space at the end of a line. Returns -1 if there is no such white space.
 */
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

/**
 * Returns a copy in which one space replaces each run of white space, and no line ends in white space. The octets
 * before `firstExcess` are copied unchanged.
 */
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

/** Removes the empty lines at the end of a body. The result is empty or ends in exactly one CRLF. */
export function trimEmptyLines(data: Buffer, start: number, bodyEnd: number): Buffer {
  let end = bodyEnd;
  while (end - start >= 2 && data[end - 1] === LF && data[end - 2] === CR) end -= 2;
  if (end === start) return data.subarray(start, start);
  if (end < bodyEnd) return data.subarray(start, end + 2);
  return Buffer.concat([data.subarray(start, end), Buffer.from('\r\n')]);
}

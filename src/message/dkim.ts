/**
 * Builds DKIM signatures (RFC 6376, RFC 8463): the bytes that a key signs, and the header field with the signature. The
 * functions are pure. domains/signing.ts computes the signature.
 *
 * Guarantees: the canonicalization is relaxed/relaxed. There is no `l=`, so nothing can be appended to the body, and no
 * `x=`. `t=` is the time of acceptance, so every attempt with the same keys has the same signature. Lines are folded at
 * 76 columns unless a domain name is longer. A test compares the text with the output of mailauth byte by byte.
 * docs/decisions/dkim.md has the reasons for the list of signed fields.
 */
import { hash } from 'node:crypto';
import type { DkimAlgorithm } from '../model/domain.ts';

/**
 * The identity of a key. `domain` is in A-labels and `selector` is a host label; both are in lower case and checked by
 * the caller.
 */
export interface SignatureIdentity {
  readonly domain: string;
  readonly selector: string;
  readonly algorithm: DkimAlgorithm;
}

interface SignedHeader {
  /** The `h=` list. It contains a name once for each field, and once more if the name is oversigned. */
  readonly names: readonly string[];
  /** The canonical fields in that order, each ended by CRLF, one character per octet. */
  readonly text: string;
}

/** The input that all signatures of one message share. */
export interface SignableMessage {
  readonly header: SignedHeader;
  /** `bh=`. */
  readonly bodyHash: string;
}

/** The beginning of a DKIM-Signature field, which is the same for all messages with the same signed fields. */
interface SignaturePrefix {
  readonly names: readonly string[];
  /** The canonical form of the field up to `s=`. */
  readonly canonical: string;
  /** The folded text of the same part, and the column at its end. */
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
 * Fields that are listed once more than they occur in the message, so a copy with an added field does not verify (RFC
 * 6376 sections 5.4.2 and 8.15). Mail programs display these fields, or interpret the body by them.
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
  readonly lower: string;
  readonly oversigned: boolean;
}

const RULES: readonly FieldRule[] = [
  ...OVERSIGNED_FIELDS.map((name) => ({ name, lower: name.toLowerCase(), oversigned: true })),
  ...SIGNED_FIELDS.map((name) => ({ name, lower: name.toLowerCase(), oversigned: false })),
];

const RULE_INDEX: ReadonlyMap<string, number> = new Map(RULES.map(({ lower }, index) => [lower, index]));

const NO_FIELDS: ReadonlySet<string> = new Set();

/**
 * Caches of the parts that are equal for many messages: the `h=` list by the fields present (one bit for each rule) and the
 * excluded fields, and the signature prefix of each key for that list. These parts are most of the text of a signature and need
 * most of its memory.
 */
const CACHED_NAMES = new WeakMap<ReadonlySet<string>, Map<number, readonly string[]>>();
const MAX_CACHED_NAMES = 64;
const CACHED_PREFIXES = new WeakMap<SignatureIdentity, SignaturePrefix>();

/** Maximum length of a line that has more than one token. The 76th column would be a space. */
const MAX_COLUMNS = 75;

/**
 * Prepares a message for signing. The message has CRLF line ends, and its body begins at `bodyAt`. `excluded` contains
 * the lower-case names of fields that the next hop replaces, which would invalidate a signature over them. From is
 * always signed (RFC 6376 section 5.4).
 */
export function prepareSignable(
  data: Buffer,
  bodyAt: number,
  excluded: ReadonlySet<string> = NO_FIELDS,
): SignableMessage {
  const header = data.toString('latin1', 0, bodyAt);
  return { header: signedHeader(splitFields(header), excluded), bodyHash: bodyHash(data, bodyAt) };
}

/**
 * Selects the fields to sign. Fields with the same name are selected from the last to the first (RFC 6376 section
 * 5.4.2).
 */
function signedHeader(fields: readonly HeaderField[], excluded: ReadonlySet<string>): SignedHeader {
  const texts = new Array<string>(RULES.length).fill('');
  const counts = new Array<number>(RULES.length).fill(0);
  let present = 0;
  let areUnique = true;
  for (let i = fields.length - 1; i >= 0; i--) {
    const field = fields[i] as HeaderField;
    const rule = RULE_INDEX.get(field.name);
    if (rule === undefined || (excluded.size > 0 && excluded.has(field.name) && field.name !== 'from')) continue;
    if (counts[rule] !== 0) areUnique = false;
    counts[rule] = (counts[rule] as number) + 1;
    present |= 1 << rule;
    texts[rule] = `${texts[rule]}${relaxedField(field)}\r\n`;
  }
  const text = texts.join('');
  if (!areUnique) return { names: listNames(counts, excluded), text };
  const cachedNames = CACHED_NAMES.get(excluded) ?? new Map<number, readonly string[]>();
  CACHED_NAMES.set(excluded, cachedNames);
  const names = cachedNames.get(present) ?? listNames(counts, excluded);
  if (cachedNames.size < MAX_CACHED_NAMES) cachedNames.set(present, names);
  return { names, text };
}

/** Returns the `h=` list for the number of fields of each rule. */
function listNames(counts: readonly number[], excluded: ReadonlySet<string>): readonly string[] {
  return RULES.flatMap(({ name, lower, oversigned }, index) => {
    const count = counts[index] ?? 0;
    const isExcluded = excluded.has(lower) && lower !== 'from';
    return new Array<string>(oversigned && !isExcluded ? count + 1 : count).fill(name);
  });
}

/**
 * Builds the DKIM-Signature field of one key without the signature. `at` is milliseconds since the epoch; `t=` contains whole
 * seconds.
 */
export function signatureInput(
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
  // RFC 6376 section 3.7: the field itself is last, with an empty b= and without a CRLF. The field is folded only at spaces, so
  // its relaxed form does not depend on the folds.
  const bytes = Buffer.from(`${header.text}${prefix.canonical} ${timeTag} ${bodyHashTag} b=`, 'latin1');
  return {
    ...appendFolded(prefix.text, prefix.column, [timeTag, bodyHashTag]),
    bytes: key.algorithm === 'rsa' ? bytes : hash('sha256', bytes, 'buffer'),
  };
}

function createPrefix(names: readonly string[], key: SignatureIdentity): SignaturePrefix {
  const nameTokens = names.map((name, i) => `${i === 0 ? 'h=' : ''}${name}${i === names.length - 1 ? ';' : ':'}`);
  const algorithm = key.algorithm === 'rsa' ? 'a=rsa-sha256;' : 'a=ed25519-sha256;';
  const before = [algorithm, 'c=relaxed/relaxed;', `d=${key.domain};`];
  const tokens = ['v=1;', ...before, ...nameTokens, 'q=dns/txt;', `s=${key.selector};`];
  const field = 'DKIM-Signature:';
  return { names, canonical: `dkim-signature:${tokens.join(' ')}`, ...appendFolded(field, field.length, tokens) };
}

/** Appends `tokens` to a field that ends at `column`, each after a space or a fold. */
function appendFolded(
  text: string,
  column: number,
  tokens: readonly string[],
): { readonly text: string; readonly column: number } {
  let [line, at] = [text, column];
  for (const token of tokens) {
    const fits = at + 1 + token.length <= MAX_COLUMNS;
    line += fits ? ` ${token}` : `\r\n ${token}`;
    at = (fits ? at : 0) + 1 + token.length;
  }
  return { text: line, column: at };
}

/** Returns the complete field, ended by CRLF. */
export function signatureField({ text, column }: SignatureInput, signature: Buffer): string {
  const value = `b=${signature.toString('base64')}`;
  let field = text;
  if (column + 1 + Math.min(value.length, MAX_COLUMNS) <= MAX_COLUMNS) field += ' ';
  else field += '\r\n ';
  for (let at = 0; at < value.length; at += MAX_COLUMNS) {
    field += at === 0 ? value.slice(0, MAX_COLUMNS) : `\r\n ${value.slice(at, at + MAX_COLUMNS)}`;
  }
  return `${field}\r\n`;
}

/** Returns the message with `fields` prepended in their order. */
export function prependSignatures(fields: readonly string[], data: Buffer): Buffer {
  const header = fields.join('');
  const signed = Buffer.allocUnsafe(header.length + data.length);
  signed.write(header, 0, 'latin1');
  signed.set(data, header.length);
  return signed;
}

// Computes the relaxed canonical forms of DKIM (RFC 6376 sections 3.4.2 and 3.4.4). A signature remains valid if a relay
// changes folds and white space.
//
// Guarantees: the functions are pure, make one pass, and do not copy a message that is already canonical. The functions expect
// CRLF line ends, which composition guarantees. A bare CR or LF is treated as any other octet. Header text has one character
// per octet (latin1), so the UTF-8 of SMTPUTF8 messages is preserved. White space means space and tab, as in the RFC.

interface HeaderField {
  /** In lower case, without surrounding white space. */
  readonly name: string;
  /** The complete field with its folds, without its last CRLF. */
  readonly text: string;
}

const TAB = 0x09;
const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;

/**
 * Splits a header into its fields, in order. `header` may end before or after the empty line. A line without a colon
 * has an empty name and is never signed.
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
export function relaxedField(field: HeaderField): string {
  return `${field.name}:${relaxedValue(field.text, field.text.indexOf(':') + 1)}`;
}

/**
 * Unfolds the value, replaces each run of white space with one space, and removes white space at both ends. In a field,
 * white space always follows a CRLF, so the CRLF can be treated as white space.
 */
function relaxedValue(text: string, from: number): string {
  let out = '';
  let word = -1;
  for (let i = from; i < text.length; i++) {
    const c = text.charCodeAt(i);
    const isSpace =
      isWhiteSpace(c) || (c === CR ? text.charCodeAt(i + 1) === LF : c === LF && text.charCodeAt(i - 1) === CR);
    if (!isSpace) {
      if (word === -1) word = i;
    } else if (word !== -1) {
      // A single space between two words does not end the slice, so most values are one slice.
      if (c === SPACE && i + 1 < text.length && text.charCodeAt(i + 1) > SPACE) continue;
      out += out === '' ? text.slice(word, i) : ` ${text.slice(word, i)}`;
      word = -1;
    }
  }
  if (word === -1) return out;
  return out === '' ? text.slice(word) : `${out} ${text.slice(word)}`;
}

function isWhiteSpace(c: number): boolean {
  return c === SPACE || c === TAB;
}

/** Returns the value of `bh=`: base64 of the SHA-256 of the canonical body. The body begins at `bodyAt`. */
export function bodyHash(data: Buffer, bodyAt: number): string {
  return hash('sha256', relaxedBody(data, bodyAt), 'base64');
}

/**
 * Returns the relaxed body (RFC 6376 section 3.4.4). It is a view of `data` if the body is canonical except for empty
 * lines at its end.
 */
export function relaxedBody(data: Buffer, bodyAt: number): Buffer {
  const first = findExcessWhiteSpace(data, bodyAt);
  return first === -1 ? trimEmptyLines(data, bodyAt, data.length) : collapseWhiteSpace(data, bodyAt, first);
}

/**
 * Returns the index of the first white space that is doubled, is a tab, or is at the end of a line. Returns -1 if there is no
 * such white space.
 */
function findExcessWhiteSpace(data: Buffer, from: number): number {
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

/**
 * Returns a copy in which each run of white space is one space, and is removed at the end of a line. The octets before
 * `first` are copied unchanged.
 */
function collapseWhiteSpace(data: Buffer, from: number, first: number): Buffer {
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
  return trimEmptyLines(out, 0, length);
}

/** Removes the empty lines at the end. A body that is not empty ends in one CRLF. */
function trimEmptyLines(data: Buffer, from: number, to: number): Buffer {
  let end = to;
  while (end - from >= 2 && data[end - 1] === LF && data[end - 2] === CR) end -= 2;
  if (end === from) return data.subarray(from, from);
  if (end < to) return data.subarray(from, end + 2);
  return Buffer.concat([data.subarray(from, end), Buffer.from('\r\n')]);
}

/**
 * DKIM signatures (RFC 6376, RFC 8463) as pure text: which bytes a key has to sign, and the field that carries the
 * result. The signing itself takes time and a key, and is the domains' (domains/signing.ts).
 *
 * Promises: relaxed/relaxed, no `l=` (nothing can be added to the body), no `x=`, `t=` from the time of acceptance:
 * with the same keys every attempt carries the same signature. Folded at 76 columns, where a domain name allows it. The
 * text is held byte for byte against mailauth's by a test. docs/decisions/dkim.md has the reasons for the header list.
 */
import { hash } from 'node:crypto';
import type { DkimAlgorithm } from '../model/domain.ts';

/** Who signs; `domain` in A-labels and `selector` a host label, both in lower case and checked by the caller. */
export interface SignatureIdentity {
  readonly domain: string;
  readonly selector: string;
  readonly algorithm: DkimAlgorithm;
}

interface SignedHeader {
  /** The `h=` list. A name stands once for each field and, where it is oversigned, once more. */
  readonly names: readonly string[];
  /** The canonical fields in that order, each ended by CRLF, one character per octet. */
  readonly text: string;
}

/** What all signatures of one message share. */
export interface SignableMessage {
  readonly header: SignedHeader;
  /** `bh=`. */
  readonly bodyHash: string;
}

/** The beginning of a DKIM-Signature, the same for all messages with the same fields. */
interface SignaturePrefix {
  readonly names: readonly string[];
  /** Its canonical form up to `s=`. */
  readonly canonical: string;
  /** The same as it is written, folded, and the column that it ends at. */
  readonly text: string;
  readonly column: number;
}

interface SignatureInput {
  /** The DKIM-Signature field before its `b=`, folded, and the column that it ends at. */
  readonly text: string;
  readonly column: number;
  /** What the key signs: the canonical header for RSA (with SHA-256), its SHA-256 for Ed25519 (RFC 8463 section 3). */
  readonly bytes: Buffer;
}

/**
 * Listed once more than they stand in the message, so that a replayed copy with one of them added does not verify
 * (RFC 6376 sections 5.4.2 and 8.15): these are what a mail program shows, or what changes how it reads the body.
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

/** Signed where they stand in the message. Relays and lists add them in good faith, so they are not oversigned. */
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
 * What is the same from message to message is made once: the `h=` list of the fields there are (a bit for each rule) for
 * each set of fields left out, and what each key's signatures with that list begin with. It is most of the text, and by far
 * most of the memory.
 */
const CACHED_NAMES = new WeakMap<ReadonlySet<string>, Map<number, readonly string[]>>();
const MAX_CACHED_NAMES = 64;
const CACHED_PREFIXES = new WeakMap<SignatureIdentity, SignaturePrefix>();

/** Columns of a line that is not one long token. Whatever stands at the 76th would be a space. */
const MAX_COLUMNS = 75;

/**
 * What is signed of a message: CRLF line ends, its body at `bodyAt`. `except` are fields (lower-case names) that the
 * next hop is known to replace; signing them would break the signature. From is always signed (RFC 6376 section 5.4).
 */
export function prepareSignable(
  data: Buffer,
  bodyAt: number,
  excluded: ReadonlySet<string> = NO_FIELDS,
): SignableMessage {
  const header = data.toString('latin1', 0, bodyAt);
  return { header: signedHeader(splitFields(header), excluded), bodyHash: bodyHash(data, bodyAt) };
}

/** Chooses the fields to sign, of one name from the last to the first (RFC 6376 section 5.4.2). */
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

/** The `h=` list where each rule's field stands `counts` times. */
function listNames(counts: readonly number[], excluded: ReadonlySet<string>): readonly string[] {
  return RULES.flatMap(({ name, lower, oversigned }, index) => {
    const count = counts[index] ?? 0;
    const isExcluded = excluded.has(lower) && lower !== 'from';
    return new Array<string>(oversigned && !isExcluded ? count + 1 : count).fill(name);
  });
}

/** The DKIM-Signature of one key, unsigned. `at` is milliseconds since the epoch, and becomes `t=` in whole seconds. */
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
  // RFC 6376 section 3.7: the field itself comes last, with an empty b= and without a CRLF. Folded at spaces alone, its
  // relaxed form is the same wherever it is folded.
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

/** A field that is written up to `column`, with `tokens` behind it, each after a space or a fold. */
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

/** The whole field, ended by CRLF. */
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

/** The message with `fields` before it, the first of them on top. */
export function prependSignatures(fields: readonly string[], data: Buffer): Buffer {
  const header = fields.join('');
  const signed = Buffer.allocUnsafe(header.length + data.length);
  signed.write(header, 0, 'latin1');
  signed.set(data, header.length);
  return signed;
}

// The relaxed canonical forms of DKIM (RFC 6376 sections 3.4.2 and 3.4.4): what is hashed and signed, so that relays
// may fold fields anew and touch white space without breaking a signature.
//
// Promises: pure, one pass, nothing copied where the message is canonical already. Expects CRLF line ends, which
// composition promises; a bare CR or LF is an octet like any other. Header text is one character per octet (latin1),
// so that raw UTF-8 of SMTPUTF8 messages passes through unharmed. White space is space and tab, as in the RFC.

interface HeaderField {
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
    while (end !== -1 && isWhiteSpace(header.charCodeAt(end + 2))) end = header.indexOf('\r\n', end + 2);
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
    const isSpace =
      isWhiteSpace(c) || (c === CR ? text.charCodeAt(i + 1) === LF : c === LF && text.charCodeAt(i - 1) === CR);
    if (!isSpace) {
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

function isWhiteSpace(c: number): boolean {
  return c === SPACE || c === TAB;
}

/** `bh=`: base64 of the SHA-256 of the canonical body, which begins at `bodyAt`. */
export function bodyHash(data: Buffer, bodyAt: number): string {
  return hash('sha256', relaxedBody(data, bodyAt), 'base64');
}

/** RFC 6376 section 3.4.4. A view of `data` where the body is canonical but for empty lines at its end. */
export function relaxedBody(data: Buffer, bodyAt: number): Buffer {
  const first = findExcessWhiteSpace(data, bodyAt);
  return first === -1 ? trimEmptyLines(data, bodyAt, data.length) : collapseWhiteSpace(data, bodyAt, first);
}

/** Where white space is first doubled, a tab, or at the end of a line; -1 where it nowhere is. */
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

/** A copy with each run of white space made one space, or nothing at the end of a line. Nothing to do before `first`. */
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

/** Without the empty lines at the end; what remains, unless it is nothing, ends in one CRLF. */
function trimEmptyLines(data: Buffer, from: number, to: number): Buffer {
  let end = to;
  while (end - from >= 2 && data[end - 1] === LF && data[end - 2] === CR) end -= 2;
  if (end === from) return data.subarray(from, from);
  if (end < to) return data.subarray(from, end + 2);
  return Buffer.concat([data.subarray(from, end), Buffer.from('\r\n')]);
}

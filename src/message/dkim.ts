/**
 * DKIM signatures (RFC 6376, RFC 8463) as pure text: which bytes a key has to sign, and the field that carries the
 * result. The signing itself takes time and a key, and is the domains' (domains/signer.ts).
 *
 * Promises: relaxed/relaxed, no `l=` (nothing can be added to the body), no `x=`, `t=` from the time of acceptance:
 * with the same keys every attempt carries the same signature. Folded at 76 columns, where a domain name allows it. The
 * text is held byte for byte against mailauth's by a test. docs/decisions/dkim.md has the reasons for the header list.
 */
import { hash } from 'node:crypto';
import { bodyHash, type HeaderField, relaxedField, splitFields } from './canonical.ts';

export type DkimAlgorithm = 'rsa' | 'ed25519';

/** Who signs; `domain` in A-labels and `selector` a host label, both in lower case and checked by the caller. */
export interface SignatureName {
  readonly domain: string;
  readonly selector: string;
  readonly algorithm: DkimAlgorithm;
}

export interface SignedHeader {
  /** The `h=` list. A name stands once for each field and, where it is oversigned, once more. */
  readonly names: readonly string[];
  /** The canonical fields in that order, each ended by CRLF, one character per octet. */
  readonly text: string;
}

/** What all signatures of one message share. */
export interface Signable {
  readonly header: SignedHeader;
  /** `bh=`. */
  readonly bodyHash: string;
}

export interface SignatureInput {
  /** The DKIM-Signature field up to its empty `b=`, in the pieces between which it may be folded. */
  readonly tokens: readonly string[];
  /** What the key signs: the canonical header for RSA (with SHA-256), its SHA-256 for Ed25519 (RFC 8463 section 3). */
  readonly bytes: Buffer;
}

/**
 * Listed once more than they stand in the message, so that a replayed copy with one of them added does not verify
 * (RFC 6376 sections 5.4.2 and 8.15): these are what a mail program shows, or what changes how it reads the body.
 */
const OVERSIGNED = [
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
const SIGNED = [
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

interface Rule {
  readonly name: string;
  readonly lower: string;
  readonly oversigned: boolean;
}

const RULES: readonly Rule[] = [
  ...OVERSIGNED.map((name) => ({ name, lower: name.toLowerCase(), oversigned: true })),
  ...SIGNED.map((name) => ({ name, lower: name.toLowerCase(), oversigned: false })),
];

const NONE: ReadonlySet<string> = new Set();

/** Columns of a line that is not one long token. Whatever stands at the 76th would be a space. */
const FOLD_AT = 75;

/**
 * What is signed of a message: CRLF line ends, its body at `bodyAt`. `except` are fields (lower-case names) that the
 * next hop is known to replace; signing them would break the signature. From is always signed (RFC 6376 section 5.4).
 */
export function signable(data: Buffer, bodyAt: number, except: ReadonlySet<string> = NONE): Signable {
  const header = data.toString('latin1', 0, bodyAt);
  return { header: signedHeader(splitFields(header), except), bodyHash: bodyHash(data, bodyAt) };
}

/** Chooses the fields to sign, of one name from the last to the first (RFC 6376 section 5.4.2). */
function signedHeader(fields: readonly HeaderField[], except: ReadonlySet<string>): SignedHeader {
  const byName = new Map<string, HeaderField[]>();
  for (const field of fields) {
    const same = byName.get(field.name);
    if (same === undefined) byName.set(field.name, [field]);
    else same.push(field);
  }
  const names: string[] = [];
  let text = '';
  for (const { name, lower, oversigned } of RULES) {
    if (except.size > 0 && except.has(lower) && lower !== 'from') continue;
    const same = byName.get(lower);
    for (let i = (same?.length ?? 0) - 1; i >= 0; i--) {
      names.push(name);
      text += `${relaxedField(same?.[i] as HeaderField)}\r\n`;
    }
    if (oversigned) names.push(name);
  }
  return { names, text };
}

/** The DKIM-Signature of one key, unsigned. `at` is milliseconds since the epoch, and becomes `t=` in whole seconds. */
export function signatureInput({ header, bodyHash }: Signable, key: SignatureName, at: number): SignatureInput {
  const { names } = header;
  const tokens = [
    'DKIM-Signature:',
    'v=1;',
    key.algorithm === 'rsa' ? 'a=rsa-sha256;' : 'a=ed25519-sha256;',
    'c=relaxed/relaxed;',
    `d=${key.domain};`,
  ];
  let named = '';
  for (let i = 0; i < names.length; i++) {
    const token = `${i === 0 ? 'h=' : ''}${names[i]}${i === names.length - 1 ? ';' : ':'}`;
    named += i === 0 ? token : ` ${token}`;
    tokens.push(token);
  }
  const stamp = `t=${Math.floor(at / 1000)};`;
  const hashed = `bh=${bodyHash};`;
  tokens.push('q=dns/txt;', `s=${key.selector};`, stamp, hashed);
  // RFC 6376 section 3.7: the field itself comes last, with an empty b= and without a CRLF. Folded at spaces alone, its
  // relaxed form is the same wherever it is folded.
  const own = `dkim-signature:v=1; ${tokens[2]} ${tokens[3]} ${tokens[4]} ${named} q=dns/txt; s=${key.selector}; ${stamp} ${hashed} b=`;
  const bytes = Buffer.from(header.text + own, 'latin1');
  return { tokens, bytes: key.algorithm === 'rsa' ? bytes : hash('sha256', bytes, 'buffer') };
}

/** The whole field, ended by CRLF. */
export function signatureField({ tokens }: SignatureInput, signature: Buffer): string {
  let field = tokens[0] ?? '';
  let column = field.length;
  for (let i = 1; i < tokens.length; i++) {
    const token = tokens[i] as string;
    if (column + 1 + token.length > FOLD_AT) {
      field += `\r\n ${token}`;
      column = 1 + token.length;
    } else {
      field += ` ${token}`;
      column += 1 + token.length;
    }
  }
  const value = `b=${signature.toString('base64')}`;
  if (column + 1 + Math.min(value.length, FOLD_AT) <= FOLD_AT) field += ' ';
  else field += '\r\n ';
  for (let at = 0; at < value.length; at += FOLD_AT) {
    field += at === 0 ? value.slice(0, FOLD_AT) : `\r\n ${value.slice(at, at + FOLD_AT)}`;
  }
  return `${field}\r\n`;
}

/** The message with `fields` before it, the first of them on top. */
export function withSignatures(fields: readonly string[], data: Buffer): Buffer {
  const head = fields.join('');
  const signed = Buffer.allocUnsafe(head.length + data.length);
  signed.write(head, 0, 'latin1');
  signed.set(data, head.length);
  return signed;
}

/** RFC 6376, 8463, but without `l=`, SHA-1 and RSA below 1024 bits (RFC 8301). Decisive fields must be signed once. */
import { createPublicKey, hash, type KeyObject, verify } from 'node:crypto';
import { splitFields, toRelaxedBody, toRelaxedField, trimEmptyLines } from './dkim.ts';

/** The lookups of a forged message cost time, and signers need one or two signatures. */
const MAX_SIGNATURES = 3;
const MAX_SIGNED_NAMES = 100;
const MIN_RSA_BITS = 1_024;
/** DER of an Ed25519 public key (RFC 8410 section 4). */
const ED25519_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');
const SELECTOR = /^[a-z0-9._-]{1,253}$/;
/** A field that this verification and the reader of reports read alike. */
const FIELD = /^[!-9;-~]+[ \t]*:/;
/** The reader of reports takes a line of white space in a field for the end of the header. */
const BLANK_LINE = /\r\n[ \t]+(?:\r\n|$)/;
const REQUIRED_FIELDS: readonly string[] = ['from', 'content-type', 'content-transfer-encoding'];

export interface SignerSearch {
  /** Lower-case A-labels. Other domains are not looked up. */
  readonly domains: ReadonlySet<string>;
  readonly lookUpTxt: (
    name: string,
  ) => Promise<{ readonly kind: 'found'; readonly values: readonly string[] } | { readonly kind: 'none' | 'failed' }>;
  readonly now: number;
}

/** `lookup-failed`: no signature is known to be valid, but one may be as soon as its key is found. */
export type SignerResult =
  | { readonly kind: 'signed'; readonly domain: string }
  | { readonly kind: 'unsigned' }
  | { readonly kind: 'lookup-failed' };

export async function findSigner(data: Buffer, { domains, lookUpTxt, now }: SignerSearch): Promise<SignerResult> {
  let result: SignerResult = { kind: 'unsigned' };
  const headerEnd = data.indexOf('\r\n\r\n');
  if (headerEnd < 0) return result;
  const fields = splitFields(data.toString('latin1', 0, headerEnd + 2));
  if (!fields.every(({ text }) => FIELD.test(text) && !BLANK_LINE.test(text))) return result;
  const signatures = fields.flatMap((field) => {
    const signature = field.name === 'dkim-signature' ? readSignature(field.text, now) : null;
    return signature !== null && domains.has(signature.domain) ? [signature] : [];
  });
  for (const signature of signatures.slice(0, MAX_SIGNATURES)) {
    if (!coversRequiredFields(fields, signature)) continue;
    const lookup = await lookUpTxt(`${signature.selector}._domainkey.${signature.domain}`);
    if (lookup.kind === 'failed') result = { kind: 'lookup-failed' };
    // Section 3.6.2.2 leaves undefined which of several records counts. Other records may stand beside the key.
    const records = lookup.kind === 'found' ? lookup.values : [];
    const key = records.map((record) => readKey(record, signature)).find((candidate) => candidate !== null);
    if (key !== undefined && isValid(signature, key, fields, data, headerEnd + 4))
      return { kind: 'signed', domain: signature.domain };
  }
  return result;
}

type HeaderFields = ReturnType<typeof splitFields>;
type Canonicalization = 'simple' | 'relaxed';

interface Signature {
  readonly text: string;
  readonly algorithm: 'rsa' | 'ed25519';
  readonly domain: string;
  readonly identityDomain: string;
  readonly selector: string;
  readonly names: readonly string[];
  readonly header: Canonicalization;
  readonly body: Canonicalization;
  readonly bodyHash: string;
  readonly value: Buffer;
}

function readSignature(text: string, now: number): Signature | null {
  const tags = readTags(text.slice(text.indexOf(':') + 1));
  if (tags === null || tags.get('v') !== '1' || tags.has('l')) return null;
  const algorithm = ALGORITHMS.get(tags.get('a')?.toLowerCase() ?? '');
  const domain = tags.get('d')?.toLowerCase() ?? '';
  const selector = tags.get('s')?.toLowerCase() ?? '';
  const identity = tags.get('i')?.toLowerCase() ?? `@${domain}`;
  const identityDomain = identity.slice(identity.lastIndexOf('@') + 1);
  const names = (tags.get('h') ?? '').split(':').map((name) => name.trim().toLowerCase());
  const [header, body = 'simple'] = (tags.get('c')?.toLowerCase() ?? 'simple/simple').split('/');
  const [bodyHash, value, expiry] = [removeSpace(tags.get('bh')), removeSpace(tags.get('b')), tags.get('x')];
  if (algorithm === undefined || domain === '' || !SELECTOR.test(selector)) return null;
  if (identityDomain !== domain && !identityDomain.endsWith(`.${domain}`)) return null;
  if (!isCanonicalization(header) || !isCanonicalization(body)) return null;
  if (names.length > MAX_SIGNED_NAMES || bodyHash === '' || value === '') return null;
  if (!(tags.get('q') ?? 'dns/txt').split(':').some((method) => method.trim().toLowerCase() === 'dns/txt')) return null;
  if (expiry !== undefined && !(Number(expiry) * 1_000 > now)) return null;
  const decodedValue = Buffer.from(value, 'base64');
  return { text, algorithm, domain, identityDomain, selector, names, header, body, bodyHash, value: decodedValue };
}

const ALGORITHMS: ReadonlyMap<string, Signature['algorithm']> = new Map([
  ['rsa-sha256', 'rsa'],
  ['ed25519-sha256', 'ed25519'],
]);

function isCanonicalization(text: string | undefined): text is Canonicalization {
  return text === 'simple' || text === 'relaxed';
}

function readTags(text: string): ReadonlyMap<string, string> | null {
  const tags = new Map<string, string>();
  for (const part of text.split(';')) {
    const equalIndex = part.indexOf('=');
    const name = part.slice(0, equalIndex).trim();
    if (equalIndex < 0 && part.trim() === '') continue;
    if (equalIndex < 0 || name === '' || tags.has(name)) return null;
    tags.set(name, part.slice(equalIndex + 1).trim());
  }
  return tags;
}

function removeSpace(text: string = ''): string {
  return text.replaceAll(/[ \t\r\n]/g, '');
}

function coversRequiredFields(fields: HeaderFields, { names }: Signature): boolean {
  return REQUIRED_FIELDS.every((name) => {
    const count = fields.filter((field) => field.name === name).length;
    return count === 0 ? name !== 'from' : count === 1 && names.includes(name);
  });
}

function readKey(record: string, { algorithm, domain, identityDomain }: Signature): KeyObject | null {
  const tags = readTags(record);
  const includes = (name: string, value: string) =>
    tags
      ?.get(name)
      ?.split(':')
      .some((item) => item.trim().toLowerCase() === value) ?? null;
  const publicKey = Buffer.from(removeSpace(tags?.get('p')), 'base64');
  if (tags === null || publicKey.length === 0 || (tags.get('v') ?? 'DKIM1') !== 'DKIM1') return null;
  if ((tags.get('k')?.toLowerCase() ?? 'rsa') !== algorithm || includes('h', 'sha256') === false) return null;
  if (includes('s', 'email') === false && includes('s', '*') === false) return null;
  // A signature of a domain that tests DKIM proves nothing.
  if (includes('t', 'y') === true || (includes('t', 's') === true && identityDomain !== domain)) return null;
  try {
    if (algorithm === 'ed25519')
      return createPublicKey({ key: Buffer.concat([ED25519_PREFIX, publicKey]), format: 'der', type: 'spki' });
    const key = createRsaKey(publicKey);
    return (key.asymmetricKeyDetails?.modulusLength ?? 0) < MIN_RSA_BITS ? null : key;
  } catch {
    return null;
  }
}

/** RFC 6376 specifies RSAPublicKey, but most records contain SubjectPublicKeyInfo. */
function createRsaKey(key: Buffer): KeyObject {
  try {
    return createPublicKey({ key, format: 'der', type: 'spki' });
  } catch {
    return createPublicKey({ key, format: 'der', type: 'pkcs1' });
  }
}

/** The body is canonicalized last, so that a forged header does not cost the time of a large body. */
function isValid(signature: Signature, key: KeyObject, fields: HeaderFields, data: Buffer, bodyAt: number): boolean {
  const signedText = Buffer.from(canonicalizeHeader(signature, fields), 'latin1');
  const isSigned =
    signature.algorithm === 'rsa'
      ? key.asymmetricKeyType === 'rsa' && verify('sha256', signedText, key, signature.value)
      : verify(null, hash('sha256', signedText, 'buffer'), key, signature.value);
  if (!isSigned) return false;
  const body = signature.body === 'relaxed' ? toRelaxedBody(data, bodyAt) : toSimpleBody(data, bodyAt);
  return hash('sha256', body, 'base64') === signature.bodyHash;
}

/** Fields with the same name are signed from the last to the first (section 5.4.2). */
function canonicalizeHeader({ text, names, header }: Signature, fields: HeaderFields): string {
  const canonicalize = (field: HeaderFields[number]) => (header === 'relaxed' ? toRelaxedField(field) : field.text);
  const textsByName = new Map<string, string[]>();
  for (const field of fields) {
    const texts = textsByName.get(field.name) ?? [];
    textsByName.set(field.name, texts);
    texts.push(`${canonicalize(field)}\r\n`);
  }
  const signedFields = names.map((name) => textsByName.get(name)?.pop() ?? '');
  return signedFields.join('') + canonicalize({ name: 'dkim-signature', text: removeSignatureValue(text) });
}

/** Section 3.7. */
function removeSignatureValue(text: string): string {
  const colonIndex = text.indexOf(':');
  const parts = text
    .slice(colonIndex + 1)
    .split(';')
    .map((part) => {
      const equalIndex = part.indexOf('=');
      return part.slice(0, equalIndex).trim() === 'b' ? part.slice(0, equalIndex + 1) : part;
    });
  return text.slice(0, colonIndex + 1) + parts.join(';');
}

function toSimpleBody(data: Buffer, bodyAt: number): Buffer {
  const body = trimEmptyLines(data, bodyAt, data.length);
  return body.length === 0 ? Buffer.from('\r\n') : body;
}

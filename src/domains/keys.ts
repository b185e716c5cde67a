/**
 * DKIM keys. A private key is unencrypted only in memory: while it is generated or imported, in the signer, and on its
 * way to an identity at Amazon SES. It is never printed.
 */
import { createPrivateKey, createPublicKey, generateKeyPair, type KeyObject, sign, verify } from 'node:crypto';
import { promisify } from 'node:util';
import { parseHost } from '../model/address.ts';
import { type DkimAlgorithm, type DkimKey, getDkimRecordName } from '../model/domain.ts';
import { seal, unseal } from './secret.ts';

export interface KeyPair {
  readonly algorithm: DkimAlgorithm;
  /** The value of `p=`, in base64. */
  readonly publicKey: string;
  /** PKCS#8 in DER. */
  readonly privateKey: Buffer;
}

const generateKeyPairOnThread = promisify(generateKeyPair);

/** RFC 8301 section 3.2. Some DNS hosts refuse longer keys, which also sign slower. */
const RSA_BITS = 2048;
/** In the DER of an Ed25519 public key (RFC 8410 section 4). */
const ED25519_PREFIX_OCTETS = 12;
const SELECTOR_ALPHABET = 'abcdefghjkmnpqrstuvwxyz23456789';
const RANDOM_CHARACTERS = 4;
const MAX_ATTEMPTS = 100;

export async function createKeyPair(algorithm: DkimAlgorithm): Promise<KeyPair> {
  const keyPair =
    algorithm === 'rsa'
      ? await generateKeyPairOnThread('rsa', { modulusLength: RSA_BITS })
      : await generateKeyPairOnThread('ed25519', undefined);
  const privateKey = keyPair.privateKey.export({ format: 'der', type: 'pkcs8' });
  return { algorithm, publicKey: formatPublicKey(keyPair.publicKey), privateKey };
}

/** RSA: SubjectPublicKeyInfo, as in the examples of RFC 6376. Ed25519: 32 octets (RFC 8463 section 4.2). */
export function formatPublicKey(key: KeyObject): string {
  const { asymmetricKeyType: type } = key;
  const der = (key.type === 'private' ? createPublicKey(key) : key).export({ format: 'der', type: 'spki' });
  return (type === 'ed25519' ? der.subarray(ED25519_PREFIX_OCTETS) : der).toString('base64');
}

export interface KeyRequest {
  readonly domain: string;
  readonly algorithms: readonly DkimAlgorithm[];
  readonly state: 'staged' | 'active';
  /** DNS caches may still contain their records. */
  readonly usedSelectors: readonly string[];
  readonly sealingKey: Buffer;
  readonly now: number;
  readonly random: () => number;
}

/** `active` for the first keys of a domain, `staged` for a rotation. */
export async function createKeys(request: KeyRequest): Promise<readonly DkimKey[]> {
  const { domain, algorithms, state, usedSelectors, sealingKey, now, random } = request;
  const selectorPrefix = createSelectorPrefix(now, random, usedSelectors);
  const keyPairs = await Promise.all(algorithms.map(createKeyPair));
  return keyPairs.map(({ algorithm, publicKey, privateKey }) => {
    const selector = `${selectorPrefix}${SELECTOR_SUFFIXES[algorithm]}`;
    const sealedKey = seal(sealingKey, privateKey, createAssociatedData(domain, selector));
    privateKey.fill(0);
    const activatedAt = state === 'active' ? now : null;
    return { selector, algorithm, publicKey, sealed: sealedKey, state, createdAt: now, activatedAt, retireAt: null };
  });
}

/** `active`, because the record is usually published already. Overwrites the private key of the pair. */
export function sealImportedKey(
  { algorithm, publicKey, privateKey }: KeyPair,
  {
    domain,
    selector,
    sealingKey,
    now,
  }: Pick<KeyRequest, 'domain' | 'sealingKey' | 'now'> & { readonly selector: string },
): DkimKey {
  const sealedKey = seal(sealingKey, privateKey, createAssociatedData(domain, selector));
  privateKey.fill(0);
  return {
    selector,
    algorithm,
    publicKey,
    sealed: sealedKey,
    state: 'active',
    createdAt: now,
    activatedAt: now,
    retireAt: null,
  };
}

/** PKCS#8. Throws a SecretError that names the domain and the selector. */
export function unsealKey(sealingKey: Buffer, domain: string, selector: string, sealed: string): Buffer {
  return unseal(sealingKey, sealed, createAssociatedData(domain, selector));
}

function createAssociatedData(domain: string, selector: string): string {
  return `dkim:${domain}:${selector}`;
}

const SELECTOR_SUFFIXES: Readonly<Record<DkimAlgorithm, string>> = { rsa: 'a', ed25519: 'e' };

/** `pr`, the date and four random characters, such as `pr20261121k7xm`. */
function createSelectorPrefix(now: number, random: () => number, usedSelectors: readonly string[]): string {
  const dayText = new Date(now).toISOString().slice(0, 10).replaceAll('-', '');
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    let selectorPrefix = `pr${dayText}`;
    for (let i = 0; i < RANDOM_CHARACTERS; i++)
      selectorPrefix += SELECTOR_ALPHABET[Math.floor(random() * SELECTOR_ALPHABET.length)] ?? 'a';
    if (!usedSelectors.some((selector) => selector.startsWith(selectorPrefix))) return selectorPrefix;
  }
  throw new Error('No unused selector was found, because the random numbers repeat');
}

// An imported key and its selector. No fault contains a part of the input, which may be a private key.

/** The PEM of an RSA-4096 key has about 3,300 characters. */
export const MAX_KEY_CHARACTERS = 16_384;
/** RFC 8301 section 3.2. */
const MIN_RSA_BITS = 1024;
const MAX_RSA_BITS = 4096;
const RECOMMENDED_RSA_BITS = 2048;
/** Without the final dot (RFC 1035 section 2.3.4). */
const MAX_RECORD_NAME_LENGTH = 253;

export type ParsedPrivateKey =
  | { readonly ok: true; readonly keyPair: KeyPair; readonly warning: string | null }
  | { readonly ok: false; readonly fault: string };

/** RSA in PKCS#1 or PKCS#8, or Ed25519 in PKCS#8. The caller must overwrite the private key of the result. */
export function parsePrivateKey(pem: string): ParsedPrivateKey {
  const formFault = findFormFault(pem);
  if (formFault !== null) return createKeyFault(formFault);
  let key: KeyObject;
  try {
    key = createPrivateKey({ key: pem, format: 'pem' });
  } catch {
    return createKeyFault('the PEM block cannot be decoded; copy the whole file, from the BEGIN line to the END line');
  }
  const bits = key.asymmetricKeyDetails?.modulusLength ?? 0;
  switch (key.asymmetricKeyType) {
    case 'ed25519':
      return checkKeyPair(key, 'ed25519', null);
    case 'rsa':
      if (bits < MIN_RSA_BITS) {
        return createKeyFault(
          `the RSA key has ${bits} bits, and receivers ignore signatures with less than ${MIN_RSA_BITS}; let Postrider create a key`,
        );
      }
      if (bits > MAX_RSA_BITS) {
        return createKeyFault(
          `the RSA key has ${bits} bits, and receivers need not support more than ${MAX_RSA_BITS}; let Postrider create a key`,
        );
      }
      return checkKeyPair(
        key,
        'rsa',
        bits < RECOMMENDED_RSA_BITS
          ? `the RSA key has ${bits} bits, and ${RECOMMENDED_RSA_BITS} are recommended; replace it with \`postrider domain rotate DOMAIN\` after the move to Postrider`
          : null,
      );
    default:
      return createKeyFault('the key is neither RSA nor Ed25519, so it cannot sign DKIM; let Postrider create a key');
  }
}

function checkKeyPair(key: KeyObject, algorithm: KeyPair['algorithm'], warning: string | null): ParsedPrivateKey {
  const sampleData = Buffer.from('postrider');
  const digest = algorithm === 'rsa' ? 'sha256' : null;
  try {
    if (!verify(digest, sampleData, createPublicKey(key), sign(digest, sampleData, key)))
      throw new Error('no valid signature');
  } catch {
    return createKeyFault('the key is damaged: its signatures are invalid; give the original file');
  }
  const privateKey = key.export({ format: 'der', type: 'pkcs8' });
  return { ok: true, keyPair: { algorithm, publicKey: formatPublicKey(key), privateKey }, warning };
}

function findFormFault(text: string): string | null {
  const labels = findPemLabels(text);
  const [label] = labels;
  if (label === undefined) {
    return text.trimStart().startsWith('v=DKIM1') || text.includes('p=MI')
      ? 'this is the public record of a key; give the private key in PEM'
      : 'there is no PEM block; give the private key in PEM, which begins with -----BEGIN PRIVATE KEY----- or -----BEGIN RSA PRIVATE KEY-----';
  }
  if (labels.length > 1) return `there are ${labels.length} PEM blocks; give one private key`;
  if (label === 'OPENSSH PRIVATE KEY') {
    return "the key has the format of OpenSSH; convert a copy of an RSA key with `ssh-keygen -p -N '' -m PKCS8 -f COPY`";
  }
  if (label === 'ENCRYPTED PRIVATE KEY' || text.includes('Proc-Type: 4,ENCRYPTED')) {
    return 'the key is encrypted with a passphrase; decrypt it with `openssl pkey -in FILE -out DECRYPTED`';
  }
  if (label.endsWith('PUBLIC KEY') || label.startsWith('CERTIFICATE')) {
    return `this is a ${label.startsWith('CERTIFICATE') ? 'certificate' : 'public key'}; give the private key in PEM`;
  }
  return null;
}

/** Such as `PRIVATE KEY` (RFC 7468 section 2). */
function findPemLabels(text: string): readonly string[] {
  return text.split('\n').flatMap((line) => {
    const trimmedLine = line.trim();
    const isBegin = trimmedLine.startsWith('-----BEGIN ') && trimmedLine.endsWith('-----');
    return isBegin ? [trimmedLine.slice('-----BEGIN '.length, -'-----'.length)] : [];
  });
}

function createKeyFault(fault: string): { readonly ok: false; readonly fault: string } {
  return { ok: false, fault };
}

export type ParsedSelector =
  | { readonly ok: true; readonly selector: string }
  | { readonly ok: false; readonly fault: string };

/** RFC 6376 section 3.1. */
export function parseSelector(text: string, domain: string): ParsedSelector {
  const selector = text.toLowerCase();
  if (selector.includes('_domainkey')) {
    return { ok: false, fault: 'give only the part of the record name before ._domainkey, such as s1' };
  }
  // The signer requires that the selector and the domain together form a host name.
  if (
    Buffer.byteLength(selector) !== selector.length ||
    parseHost(`${selector}.${domain}`, 0) !== `${selector}.${domain}`
  ) {
    return {
      ok: false,
      fault:
        'a selector consists of labels of letters, digits and inner hyphens, separated by dots, such as s1 or mail.2024',
    };
  }
  const { length } = getDkimRecordName(domain, selector);
  return length > MAX_RECORD_NAME_LENGTH
    ? { ok: false, fault: `the name of the record has ${length} characters; the maximum is ${MAX_RECORD_NAME_LENGTH}` }
    : { ok: true, selector };
}

/**
 * DKIM keys. A private key is unencrypted only in memory: while it is generated or imported, in the signer, and on its
 * way to an identity at Amazon SES. It is never printed.
 */
import { createPublicKey, generateKeyPair, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import type { DkimAlgorithm, DkimKey } from '../model/domain.ts';
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

/**
 * RSA: SubjectPublicKeyInfo, as in the examples of RFC 6376 and in all verifiers. Ed25519: 32 octets (RFC 8463 section
 * 4.2).
 */
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

/**
 * Generates, seals and unseals DKIM keys. A private key is unencrypted only in memory: during its generation or import,
 * in the signer, and while it is sent to Amazon SES for an identity. A private key is never printed.
 */
import { createPublicKey, generateKeyPair, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import type { DkimAlgorithm, DkimKey } from '../model/domain.ts';
import { seal, unseal } from './secret.ts';

export interface KeyPair {
  readonly algorithm: DkimAlgorithm;
  /** The value of `p=`, in base64. */
  readonly publicKey: string;
  /** The private key as PKCS#8 in DER. */
  readonly privateKey: Buffer;
}

const generateKeyPairOnThread = promisify(generateKeyPair);

/**
 * RFC 8301 section 3.2 recommends 2048 bits. Longer keys are not accepted by some DNS hosts and make signing slower.
 */
const RSA_BITS = 2048;
/** The number of octets before the key in the DER of an Ed25519 public key (RFC 8410 section 4). */
const ED25519_PREFIX_OCTETS = 12;
const SELECTOR_ALPHABET = 'abcdefghjkmnpqrstuvwxyz23456789';
const RANDOM_CHARACTERS = 4;
const MAX_ATTEMPTS = 100;

/** Generates a key pair on a thread of the libuv pool. */
export async function createKeyPair(algorithm: DkimAlgorithm): Promise<KeyPair> {
  const keyPair =
    algorithm === 'rsa'
      ? await generateKeyPairOnThread('rsa', { modulusLength: RSA_BITS })
      : await generateKeyPairOnThread('ed25519', undefined);
  const privateKey = keyPair.privateKey.export({ format: 'der', type: 'pkcs8' });
  return { algorithm, publicKey: formatPublicKey(keyPair.publicKey), privateKey };
}

/**
 * Returns the value of `p=`. For RSA, the value is the DER of SubjectPublicKeyInfo. RFC 6376 section 3.6.1 does not
 * specify this form, but its examples and all verifiers use it. For Ed25519, the value is the 32 octets of the key (RFC
 * 8463 section 4.2).
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
  /** Selectors that the domain has already used. DNS caches may still contain their records. */
  readonly usedSelectors: readonly string[];
  /** The key that `deriveKey` returns for `dkim`. */
  readonly sealingKey: Buffer;
  readonly now: number;
  /** Returns a random number in [0, 1). */
  readonly random: () => number;
}

/** Generates and seals keys. `state` is `active` for the first keys of a domain, and `staged` for a rotation. */
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

/**
 * Seals a key that was created elsewhere, and overwrites the private key of the pair. The state of the key is `active`,
 * because its record is usually published already.
 */
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

/** Returns the private key as PKCS#8. Throws a SecretError that names the domain and the selector. */
export function unsealKey(sealingKey: Buffer, domain: string, selector: string, sealed: string): Buffer {
  return unseal(sealingKey, sealed, createAssociatedData(domain, selector));
}

function createAssociatedData(domain: string, selector: string): string {
  return `dkim:${domain}:${selector}`;
}

const SELECTOR_SUFFIXES: Readonly<Record<DkimAlgorithm, string>> = { rsa: 'a', ed25519: 'e' };

/**
 * Creates the common prefix of the selectors: `pr`, the date and four random characters, such as `pr20261121k7xm`. The
 * caller appends the suffix of the algorithm.
 */
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

/**
 * Generates, seals and unseals DKIM keys. The private key exists unencrypted only during generation and in the signer.
 * It is never printed.
 */
import { createPublicKey, generateKeyPair, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import type { DkimAlgorithm, DkimKey } from '../model/domain.ts';
import { seal, unseal } from './secret.ts';

export interface KeyPair {
  readonly algorithm: DkimAlgorithm;
  /** The value of `p=`, base64. */
  readonly publicKey: string;
  /** PKCS#8, DER. */
  readonly privateKey: Buffer;
}

const generate = promisify(generateKeyPair);

/**
 * RFC 8301 section 3.2 recommends 2048 bits. Some DNS hosts do not accept longer keys, and longer keys sign more
 * slowly.
 */
const RSA_BITS = 2048;
/** Octets before the key in the DER of an Ed25519 public key (RFC 8410 section 4). */
const ED25519_PREFIX = 12;
const SELECTOR_ALPHABET = 'abcdefghjkmnpqrstuvwxyz23456789';
const RANDOM_CHARACTERS = 4;
const MAX_ATTEMPTS = 100;

/** Generates a key pair on a thread of the libuv pool. */
export async function createKeyPair(algorithm: DkimAlgorithm): Promise<KeyPair> {
  const pair =
    algorithm === 'rsa' ? await generate('rsa', { modulusLength: RSA_BITS }) : await generate('ed25519', undefined);
  const privateKey = pair.privateKey.export({ format: 'der', type: 'pkcs8' });
  return { algorithm, publicKey: publicKeyText(pair.publicKey), privateKey };
}

/**
 * Returns the value of `p=`. For RSA it is the DER of SubjectPublicKeyInfo: RFC 6376 section 3.6.1 does not specify
 * this, but its examples and all verifiers use it. For Ed25519 it is the 32 octets of the key alone (RFC 8463 section
 * 4.2).
 */
export function publicKeyText(key: KeyObject): string {
  const { asymmetricKeyType: type } = key;
  const der = (key.type === 'private' ? createPublicKey(key) : key).export({ format: 'der', type: 'spki' });
  return (type === 'ed25519' ? der.subarray(ED25519_PREFIX) : der).toString('base64');
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
  /** Returns a number in [0, 1). */
  readonly random: () => number;
}

/** Generates and seals keys. The state is `active` for the first keys of a domain and `staged` for a rotation. */
export async function createKeys(request: KeyRequest): Promise<readonly DkimKey[]> {
  const { domain, algorithms, state, usedSelectors, sealingKey, now, random } = request;
  const selectorStem = createSelectorStem(now, random, usedSelectors);
  const pairs = await Promise.all(algorithms.map(createKeyPair));
  return pairs.map(({ algorithm, publicKey, privateKey }) => {
    const selector = `${selectorStem}${SELECTOR_SUFFIX[algorithm]}`;
    const sealed = seal(sealingKey, privateKey, associatedData(domain, selector));
    privateKey.fill(0);
    const activatedAt = state === 'active' ? now : null;
    return { selector, algorithm, publicKey, sealed, state, createdAt: now, activatedAt, retireAt: null };
  });
}

/** Returns the private key as PKCS#8. Throws a SecretError that names the domain and the selector. */
export function unsealKey(sealingKey: Buffer, domain: string, selector: string, sealed: string): Buffer {
  return unseal(sealingKey, sealed, associatedData(domain, selector));
}

function associatedData(domain: string, selector: string): string {
  return `dkim:${domain}:${selector}`;
}

const SELECTOR_SUFFIX: Readonly<Record<DkimAlgorithm, string>> = { rsa: 'a', ed25519: 'e' };

/**
 * Creates the common part of the selectors: `pr`, the date and four random characters, such as `pr20261121k7xm`. The caller
 * appends the letter of the algorithm.
 */
function createSelectorStem(now: number, random: () => number, usedSelectors: readonly string[]): string {
  const day = new Date(now).toISOString().slice(0, 10).replaceAll('-', '');
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    let stem = `pr${day}`;
    for (let i = 0; i < RANDOM_CHARACTERS; i++)
      stem += SELECTOR_ALPHABET[Math.floor(random() * SELECTOR_ALPHABET.length)] ?? 'a';
    if (!usedSelectors.some((selector) => selector.startsWith(stem))) return stem;
  }
  throw new Error('No unused selector was found, because the random numbers repeat');
}

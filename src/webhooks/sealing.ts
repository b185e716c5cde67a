/**
 * Encrypts the signing secrets and the URLs of endpoints at rest, with a key that is derived from the secret of the
 * installation.
 */
import type { KeyObject } from 'node:crypto';
import { seal, unseal } from '../domains/secret.ts';
import { createSigningKey } from '../model/webhook-target.ts';

/** The maximum number of keys in a cache. The oldest key is removed first. */
const MAX_CACHED_KEYS = 1_024;

/** Identifies the encrypted data. The error of a secret that cannot be decrypted contains this text. */
const ASSOCIATED_DATA = 'the signing secret of a webhook';
const URL_ASSOCIATED_DATA = 'the URL of a webhook';

/** Encrypts a signing secret. `key` is the result of `loadWebhookKey` (domains/setup.ts). */
export function sealSigningSecret(key: Buffer, secret: string): string {
  return seal(key, Buffer.from(secret, 'utf8'), ASSOCIATED_DATA);
}

/**
 * Decrypts a signing secret. Throws a SecretError if the text was not encrypted with the current secret of the
 * installation.
 */
export function openSigningSecret(key: Buffer, sealed: string): string {
  return unseal(key, sealed, ASSOCIATED_DATA).toString('utf8');
}

/** Encrypts the URL of an endpoint. */
export function sealTargetUrl(key: Buffer, url: string): string {
  return seal(key, Buffer.from(url, 'utf8'), URL_ASSOCIATED_DATA);
}

/** Decrypts the URL of an endpoint. Throws a SecretError like `openSigningSecret`. */
export function openTargetUrl(key: Buffer, sealedUrl: string): string {
  return unseal(key, sealedUrl, URL_ASSOCIATED_DATA).toString('utf8');
}

/**
 * Returns a function that decrypts a signing secret and returns its signing key. The function caches keys in memory,
 * because the decryption takes longer than a signature. `loadKey` is called before the first decryption. The function
 * throws the errors of `openSigningSecret` and `createSigningKey`.
 */
export function createSigningKeyCache(loadKey: () => Buffer): (sealed: string) => KeyObject {
  const keys = new Map<string, KeyObject>();
  let sealingKey: Buffer | null = null;
  return (sealed) => {
    const cachedKey = keys.get(sealed);
    if (cachedKey !== undefined) return cachedKey;
    sealingKey ??= loadKey();
    const key = createSigningKey(openSigningSecret(sealingKey, sealed));
    const [oldestSealed] = keys.size < MAX_CACHED_KEYS ? [] : keys.keys();
    if (oldestSealed !== undefined) keys.delete(oldestSealed);
    keys.set(sealed, key);
    return key;
  };
}

/** Signing secrets and URLs of endpoints are encrypted at rest, with a key from the secret of the installation. */
import type { KeyObject } from 'node:crypto';
import { seal, unseal } from '../domains/secret.ts';
import { createSigningKey } from '../model/webhook-target.ts';

const MAX_CACHED_KEYS = 1_024;

/** The error of a secret that cannot be decrypted contains this text. */
const ASSOCIATED_DATA = 'the signing secret of a webhook';
const URL_ASSOCIATED_DATA = 'the URL of a webhook';

export function sealSigningSecret(key: Buffer, secret: string): string {
  return seal(key, Buffer.from(secret, 'utf8'), ASSOCIATED_DATA);
}

/** Throws a SecretError if the text was not encrypted with the current secret of the installation. */
export function openSigningSecret(key: Buffer, sealed: string): string {
  return unseal(key, sealed, ASSOCIATED_DATA).toString('utf8');
}

export function sealTargetUrl(key: Buffer, url: string): string {
  return seal(key, Buffer.from(url, 'utf8'), URL_ASSOCIATED_DATA);
}

export function openTargetUrl(key: Buffer, sealedUrl: string): string {
  return unseal(key, sealedUrl, URL_ASSOCIATED_DATA).toString('utf8');
}

/** The keys stay in memory, because the decryption takes longer than a signature. */
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

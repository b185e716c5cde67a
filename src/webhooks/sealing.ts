/** Encrypts the signing secrets of endpoints at rest, with a key that is derived from the secret of the installation. */
import { seal, unseal } from '../domains/secret.ts';

/** Identifies the data. The text is part of the error of a secret that cannot be decrypted. */
const ASSOCIATED_DATA = 'the signing secret of a webhook';

/** Encrypts a signing secret. `key` is that of `loadWebhookKey` (domains/setup.ts). */
export function sealSigningSecret(key: Buffer, secret: string): string {
  return seal(key, Buffer.from(secret, 'utf8'), ASSOCIATED_DATA);
}

/** Decrypts a signing secret. Throws a SecretError if it was encrypted with another secret of the installation. */
export function openSigningSecret(key: Buffer, sealed: string): string {
  return unseal(key, sealed, ASSOCIATED_DATA).toString('utf8');
}

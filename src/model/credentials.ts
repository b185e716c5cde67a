/**
 * New API keys of clients (`pr_`) and operator tokens (`po_`, read-only ones `por_`): 256 random bits in base64url. Only the SHA-256
 * and the first characters are stored. Pure: the source of random bits is a parameter.
 */
import { hash } from 'node:crypto';

interface StoredSecret {
  /** Identifies the secret in lists: `pr_`, `po_` or `por_` and up to 7 characters, which leaves 214 bits unknown. */
  readonly prefix: string;
  /** SHA-256, hexadecimal. */
  readonly hash: string;
}

export interface NewApiKey extends StoredSecret {
  /** Shown once, when it is created. */
  readonly key: string;
}

/** Creates an API key. `random` returns that many bytes of a cryptographic source. */
export function newApiKey(randomBytes: (bytes: number) => Buffer): NewApiKey {
  const key = `pr_${randomBytes(32).toString('base64url')}`;
  return { key, ...toStoredSecret(key) };
}

/** Marks the text and the stored prefix of a read-only operator token. No other secret begins with it. */
const READ_ONLY_PREFIX = 'por_';

/** Creates an operator token in the same way as `newApiKey`. With `readOnly` the token may read and change nothing. */
export function newToken(
  randomBytes: (bytes: number) => Buffer,
  readOnly = false,
): StoredSecret & { readonly token: string } {
  const token = `${readOnly ? READ_ONLY_PREFIX : 'po_'}${randomBytes(32).toString('base64url')}`;
  return { token, ...toStoredSecret(token) };
}

/** True for the text or the stored prefix of a read-only token. */
export function isReadOnlyToken(tokenOrPrefix: string): boolean {
  return tokenOrPrefix.startsWith(READ_ONLY_PREFIX);
}

/** The stored SHA-256 of a key or a token, hexadecimal. */
export function hashToken(token: string): string {
  return hash('sha256', token, 'hex');
}

function toStoredSecret(secret: string): StoredSecret {
  return { prefix: secret.slice(0, 10), hash: hashToken(secret) };
}

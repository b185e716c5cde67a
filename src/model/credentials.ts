/**
 * New API keys of clients (`pr_`) and operator tokens (`po_`, read-only ones `por_`): 256 random bits in base64url. Only the SHA-256
 * and the first characters are stored. Pure: the source of random bits is a parameter.
 */
import { hash } from 'node:crypto';

interface Stored {
  /** Identifies the secret in lists: `pr_`, `po_` or `por_` and up to 7 characters, which leaves 214 bits unknown. */
  readonly prefix: string;
  /** SHA-256, hexadecimal. */
  readonly hash: string;
}

export interface NewApiKey extends Stored {
  /** Shown once, when it is created. */
  readonly key: string;
}

/** Creates an API key. `random` returns that many bytes of a cryptographic source. */
export function newApiKey(random: (bytes: number) => Buffer): NewApiKey {
  const key = `pr_${random(32).toString('base64url')}`;
  return { key, ...stored(key) };
}

/** Marks the text and the stored prefix of a read-only operator token. No other secret begins with it. */
const READ_ONLY = 'por_';

/** Creates an operator token in the same way as `newApiKey`. With `readOnly` the token may read and change nothing. */
export function newToken(random: (bytes: number) => Buffer, readOnly = false): Stored & { readonly token: string } {
  const token = `${readOnly ? READ_ONLY : 'po_'}${random(32).toString('base64url')}`;
  return { token, ...stored(token) };
}

/** True for the text or the stored prefix of a read-only token. */
export function isReadOnlyToken(tokenOrPrefix: string): boolean {
  return tokenOrPrefix.startsWith(READ_ONLY);
}

/** The stored SHA-256 of a key or a token, hexadecimal. */
export function hashToken(token: string): string {
  return hash('sha256', token, 'hex');
}

function stored(secret: string): Stored {
  return { prefix: secret.slice(0, 10), hash: hashToken(secret) };
}

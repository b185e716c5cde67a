/**
 * New API keys of clients (`pr_`) and tokens of operators' scripts (`po_`): 256 random bits in base64url. Only the SHA-256 and the
 * first characters are stored. Pure: the source of random bits is a parameter.
 */
import { hash } from 'node:crypto';

interface Stored {
  /** Identifies the secret in lists: `pr_` or `po_` and 7 characters, which leaves 214 bits unknown. */
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

/** Creates an operator token in the same way as `newApiKey`. */
export function newToken(random: (bytes: number) => Buffer): Stored & { readonly token: string } {
  const token = `po_${random(32).toString('base64url')}`;
  return { token, ...stored(token) };
}

/** The stored SHA-256 of a key or a token, hexadecimal. */
export function hashToken(token: string): string {
  return hash('sha256', token, 'hex');
}

function stored(secret: string): Stored {
  return { prefix: secret.slice(0, 10), hash: hashToken(secret) };
}

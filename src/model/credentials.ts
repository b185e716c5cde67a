/**
 * New API keys of clients (`pr_`) and tokens of operators' scripts (`po_`): 256 random bits in base64url. Only the SHA-256 and the
 * first characters are ever stored. Pure: the random bits are handed in.
 */
import { hash } from 'node:crypto';

interface Stored {
  /** Enough to recognise it by: `pr_` or `po_` and 7 characters, which leaves 214 bits unknown. */
  readonly prefix: string;
  /** SHA-256, hexadecimal. */
  readonly hash: string;
}

export interface NewApiKey extends Stored {
  /** Shown once, to the person who asked for it. */
  readonly key: string;
}

/** A new API key. `random` is a cryptographic source of so many bytes. */
export function newApiKey(random: (bytes: number) => Buffer): NewApiKey {
  const key = `pr_${random(32).toString('base64url')}`;
  return { key, ...stored(key) };
}

/** An operator token; otherwise as `newApiKey`. */
export function newToken(random: (bytes: number) => Buffer): Stored & { readonly token: string } {
  const token = `po_${random(32).toString('base64url')}`;
  return { token, ...stored(token) };
}

/** The SHA-256 that is stored of a key or a token, hexadecimal. */
export function hashToken(token: string): string {
  return hash('sha256', token, 'hex');
}

function stored(secret: string): Stored {
  return { prefix: secret.slice(0, 10), hash: hashToken(secret) };
}

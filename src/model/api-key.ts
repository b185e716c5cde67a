/** A new API key: `pr_` and 256 random bits in base64url. Only its SHA-256 and its first characters are ever stored. */
import { createHash } from 'node:crypto';

export interface NewApiKey {
  /** Shown once, to the person who asked for it. */
  readonly key: string;
  /** Enough to recognise it by: `pr_` and 7 characters, which leaves 214 bits unknown. */
  readonly prefix: string;
  /** SHA-256, hexadecimal. */
  readonly hash: string;
}

/** @param random a cryptographic source of so many bytes. */
export function newApiKey(random: (bytes: number) => Buffer): NewApiKey {
  const key = `pr_${random(32).toString('base64url')}`;
  return { key, prefix: key.slice(0, 10), hash: createHash('sha256').update(key).digest('hex') };
}

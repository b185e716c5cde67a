/** Tokens of operators' scripts: `po_` and 256 random bits in base64url. Only a SHA-256 and the first characters are stored. */
import { hash } from 'node:crypto';

export interface NewToken {
  /** Shown once, to the person who asked for it. */
  readonly token: string;
  /** Enough to recognise it by. */
  readonly prefix: string;
  /** SHA-256, hexadecimal. */
  readonly hash: string;
}

/** @param random a cryptographic source of so many bytes. */
export function newToken(random: (bytes: number) => Buffer): NewToken {
  const token = `po_${random(32).toString('base64url')}`;
  return { token, prefix: token.slice(0, 10), hash: tokenHash(token) };
}

export function tokenHash(token: string): string {
  return hash('sha256', token, 'hex');
}

/**
 * Creates API keys (`pr_`) and operator tokens (`po_`, `poc_`, `por_`, `pom_`) of 256 random bits in base64url. Only
 * the SHA-256 hash and the first characters are stored. The functions are pure, because the source of random bytes is a
 * parameter.
 */
import { hash } from 'node:crypto';
import { TOKEN_SCOPES, type TokenScope } from './access.ts';

interface StoredSecret {
  /**
   * The first 10 characters of the secret, which identify it in lists. The remaining characters contain at least 214
   * random bits.
   */
  readonly prefix: string;
  /** The SHA-256 of the secret in hexadecimal. */
  readonly hash: string;
}

export interface NewApiKey extends StoredSecret {
  /** The key itself, which is shown only when it is created. */
  readonly key: string;
}

/** Creates an API key. `randomBytes` returns the given number of bytes from a cryptographic source. */
export function generateApiKey(randomBytes: (bytes: number) => Buffer): NewApiKey {
  const key = `pr_${randomBytes(32).toString('base64url')}`;
  return { key, ...toStoredSecret(key) };
}

/** The form of an API key: `pr_` and 43 characters of base64url (RFC 4648 section 5), which encode 32 bytes. */
const API_KEY_PATTERN = /^pr_[A-Za-z0-9_-]{43}$/;

/** Parses a key that an operator supplies. Returns null if the text does not have the form of a generated key. */
export function parseApiKey(text: string): NewApiKey | null {
  return API_KEY_PATTERN.test(text) ? { key: text, ...toStoredSecret(text) } : null;
}

/**
 * The first characters of an operator token and of its stored prefix, by scope. The hash covers them, so a client cannot
 * change the scope of its token.
 */
const TOKEN_PREFIXES: Readonly<Record<TokenScope, string>> = {
  metrics: 'pom_',
  read: 'por_',
  content: 'poc_',
  full: 'po_',
};

/** Creates an operator token. */
export function generateToken(
  randomBytes: (bytes: number) => Buffer,
  scope: TokenScope,
): StoredSecret & { readonly token: string } {
  const token = `${TOKEN_PREFIXES[scope]}${randomBytes(32).toString('base64url')}`;
  return { token, ...toStoredSecret(token) };
}

/** Returns the scope of a token or of its stored prefix. */
export function getTokenScope(tokenOrPrefix: string): TokenScope {
  return TOKEN_SCOPES.find((scope) => tokenOrPrefix.startsWith(TOKEN_PREFIXES[scope])) ?? 'metrics';
}

/** Returns the SHA-256 of a key or a token in hexadecimal. The store contains this hash instead of the secret. */
export function hashToken(token: string): string {
  return hash('sha256', token, 'hex');
}

function toStoredSecret(secret: string): StoredSecret {
  return { prefix: secret.slice(0, 10), hash: hashToken(secret) };
}

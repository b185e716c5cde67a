/** API keys (`pr_`) and operator tokens (`po_`, `poc_`, `por_`, `pom_`) of 256 random bits, stored as SHA-256. */
import { hash, timingSafeEqual } from 'node:crypto';
import type { Account } from './account.ts';
import { TOKEN_SCOPES, type TokenScope } from './audit.ts';

interface StoredSecret {
  /** The first 10 characters. The others contain at least 214 random bits. */
  readonly prefix: string;
  readonly hash: string;
}

export interface NewApiKey extends StoredSecret {
  readonly key: string;
}

export function generateApiKey(randomBytes: (bytes: number) => Buffer): NewApiKey {
  const key = `pr_${randomBytes(32).toString('base64url')}`;
  return { key, ...toStoredSecret(key) };
}

/** 32 bytes in base64url (RFC 4648 section 5). */
const API_KEY_PATTERN = /^pr_[A-Za-z0-9_-]{43}$/;

export function parseApiKey(text: string): NewApiKey | null {
  return API_KEY_PATTERN.test(text) ? { key: text, ...toStoredSecret(text) } : null;
}

/** The hash covers the prefix, so a client cannot change the scope of its token. */
const TOKEN_PREFIXES: Readonly<Record<TokenScope, string>> = {
  metrics: 'pom_',
  read: 'por_',
  content: 'poc_',
  full: 'po_',
};

export function generateToken(
  randomBytes: (bytes: number) => Buffer,
  scope: TokenScope,
): StoredSecret & { readonly token: string } {
  const token = `${TOKEN_PREFIXES[scope]}${randomBytes(32).toString('base64url')}`;
  return { token, ...toStoredSecret(token) };
}

export function getTokenScope(tokenOrPrefix: string): TokenScope {
  return TOKEN_SCOPES.find((scope) => tokenOrPrefix.startsWith(TOKEN_PREFIXES[scope])) ?? 'metrics';
}

export function hashToken(token: string): string {
  return hash('sha256', token, 'hex');
}

function toStoredSecret(secret: string): StoredSecret {
  return { prefix: secret.slice(0, 10), hash: hashToken(secret) };
}

// The version of an account: a hash of what an operator can change. A change that names another version is refused.

const VERSION_LENGTH = 16;

export function computeAccountVersion({
  limits,
  thresholds,
  onReputation,
  locked,
  sesConfigurationSet,
  maxAgeMs,
  onlyTo,
  unknownFields,
}: Omit<
  Account,
  'id' | 'name' | 'createdAt' | 'warning' | 'senders' | 'volumeUsed' | 'rateUsed' | 'rateWindowAt'
>): string {
  const { volume, volumeExpiresAt, rate, throttle } = limits;
  const fields = [
    volume,
    volumeExpiresAt,
    rate?.limit,
    rate?.periodMs,
    throttle?.perSecond,
    throttle?.burst,
    thresholds.bounceRate,
    thresholds.complaintRate,
    onReputation,
    locked?.reason,
    locked?.at,
    sesConfigurationSet,
    maxAgeMs,
    onlyTo,
    unknownFields,
  ];
  return hash('sha256', JSON.stringify(fields), 'base64url').slice(0, VERSION_LENGTH);
}

/** The duration does not depend on the position of the first difference. */
export function equalsInConstantTime(first: string | Buffer, second: string | Buffer): boolean {
  return timingSafeEqual(hash('sha256', first, 'buffer'), hash('sha256', second, 'buffer'));
}

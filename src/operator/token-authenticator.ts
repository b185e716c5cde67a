/**
 * Authenticates operator tokens (`Authorization: Bearer po_…`). Lookups of unknown tokens are combined, and a known
 * token does not wait for them. After ten wrong tokens of a peer within one minute further wrong ones get 429, but a
 * valid one never. Without the store: 503.
 */
import type { Clock } from '../clock.ts';
import { BatchedLookups } from '../http/keys.ts';
import type { TokenScope } from '../model/access.ts';
import type { OperatorToken } from '../model/account.ts';
import { toPeerNetwork } from '../model/address.ts';
import { getTokenScope, hashToken } from '../model/credentials.ts';
import type { AccessStore } from '../store/contract.ts';
import type { AccessControl } from './access.ts';
import { type Refusal, toStoreRefusal } from './refusal.ts';

const MIN_LAST_USE_WRITE_INTERVAL_MS = 60_000;

export interface AuthenticatedToken {
  readonly kind: 'valid';
  readonly name: string;
  readonly scope: TokenScope;
  /** The expiry in milliseconds since the epoch. Null for a token without expiry. */
  readonly expiresAt: number | null;
}

export interface TokenAuthenticator {
  authenticate(address: string, text: string): Promise<AuthenticatedToken | Refusal>;
  /**
   * Without the store, an unexpired token that was valid at its last lookup is accepted, so metrics remain available.
   */
  authenticateForMetrics(address: string, text: string): Promise<AuthenticatedToken | Refusal>;
}

export interface TokenAuthenticatorParts {
  readonly clock: Clock;
  readonly access: AccessControl;
  readonly store: Pick<AccessStore, 'findTokens' | 'updateTokenLastUsed'>;
}

export function createTokenAuthenticator({ clock, access, store }: TokenAuthenticatorParts): TokenAuthenticator {
  const lookups = new BatchedLookups({ find: (hashes) => store.findTokens(hashes), clock });
  /** By hash, as of their last lookup. */
  const validTokens = new Map<string, OperatorToken>();
  /** By token id. */
  const lastUseWrittenAt = new Map<number, number>();

  async function authenticate(
    address: string,
    text: string,
    onStoreError: (error: unknown, lastValidToken: OperatorToken | undefined) => OperatorToken | Refusal,
  ): Promise<AuthenticatedToken | Refusal> {
    const now = clock.now();
    const hash = hashToken(text);
    const lookup = validTokens.has(hash) ? store.findTokens([hash]) : lookups.find(hash, toPeerNetwork(address));
    if (lookup === null) return TOO_MANY_TOKENS;
    let token: OperatorToken | null;
    try {
      token = (await lookup).find((candidate) => candidate.hash === hash) ?? null;
    } catch (error) {
      const tokenOrRefusal = onStoreError(error, validTokens.get(hash));
      if ('kind' in tokenOrRefusal) return tokenOrRefusal;
      token = tokenOrRefusal;
    }
    if (token === null || token.revokedAt !== null || (token.expiresAt !== null && token.expiresAt <= now)) {
      validTokens.delete(hash);
      // After the lookup, so that a valid token is never refused.
      const retryAfterMs = access.countWrongToken(address, now);
      return retryAfterMs > 0 ? { ...TOO_MANY_WRONG_TOKENS, retryAfterMs } : WRONG_TOKEN;
    }
    validTokens.set(hash, token);
    if (now - (lastUseWrittenAt.get(token.id) ?? 0) >= MIN_LAST_USE_WRITE_INTERVAL_MS) {
      lastUseWrittenAt.set(token.id, now);
      // The operation of the request reports the error.
      await store.updateTokenLastUsed(token.id, now).catch(() => undefined);
    }
    return { kind: 'valid', name: token.name, scope: getTokenScope(text), expiresAt: token.expiresAt };
  }

  return {
    authenticate: (address, text) => authenticate(address, text, toStoreRefusal),
    authenticateForMetrics: (address, text) =>
      authenticate(address, text, (error, lastValidToken) => lastValidToken ?? toStoreRefusal(error)),
  };
}

/** Returns the token of an Authorization header, or null if the header has another scheme. */
export function getBearerToken(authorization: string | undefined): string | null {
  // A header without a token contains no space after the scheme, because HTTP removes white space at the end of a line.
  return /^bearer(?: |$)/i.test(authorization ?? '') ? (authorization ?? '').slice(7).trim() : null;
}

const TOO_MANY_TOKENS: Refusal = {
  kind: 'refused',
  status: 429,
  message: 'Too many concurrent token checks; retry later',
  retryAfterMs: 1_000,
};

const TOO_MANY_WRONG_TOKENS: Refusal = { kind: 'refused', status: 429, message: 'Too many wrong tokens' };

const WRONG_TOKEN: Refusal = {
  kind: 'refused',
  status: 401,
  message: 'The token is unknown, revoked or expired; `postrider token create NAME` creates one',
};

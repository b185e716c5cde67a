/**
 * Access by password in HTTP Basic (RFC 7617), compared in constant time. Without a password only loopback names are
 * accepted, against DNS rebinding. After ten wrong passwords within one minute a peer is refused. The wrong passwords
 * of all peers only delay responses.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import type { Clock } from '../clock.ts';
import { BatchedLookups } from '../http/keys.ts';
import { FailureCounts } from '../http/peers.ts';
import type { OperatorToken } from '../model/account.ts';
import { toPeerNetwork } from '../model/address.ts';
import type { TokenScope } from '../model/audit.ts';
import { getTokenScope, hashToken } from '../model/credentials.ts';
import type { AccessStore } from '../store/contract.ts';
import { type Refusal, toStoreRefusal } from './refusal.ts';

/** `delayMs` limits guesses from many addresses. */
export type AccessDecision =
  | { readonly kind: 'granted'; readonly delayMs: number }
  | { readonly kind: 'challenge'; readonly delayMs: number }
  | { readonly kind: 'limited'; readonly retryAfterMs: number }
  | { readonly kind: 'host-not-allowed' };

/** A few typing errors of all peers together cause no delay. */
const MAX_FAILURES_WITHOUT_DELAY = 20;
/** For each further wrong password. */
const DELAY_STEP_MS = 50;
export const MAX_DELAY_MS = 5_000;
/** After it the count of all peers decreases by one. */
const FAILURE_DECAY_MS = 3_000;

const ACCESS_GRANTED: AccessDecision = { kind: 'granted', delayMs: 0 };
const PASSWORD_CHALLENGE: AccessDecision = { kind: 'challenge', delayMs: 0 };
const HOST_NOT_ALLOWED: AccessDecision = { kind: 'host-not-allowed' };

export class AccessControl {
  readonly #passwordDigest: Buffer | null;
  readonly #wrongPasswords = new FailureCounts();
  readonly #wrongTokens = new FailureCounts();
  readonly #allWrongPasswords = new DecayingCount();

  constructor(password: string | null) {
    this.#passwordDigest = password === null ? null : hash('sha256', password, 'buffer');
  }

  check(address: string, host: string | undefined, authorization: string | undefined, now: number): AccessDecision {
    if (this.#passwordDigest === null)
      return host !== undefined && isLoopbackHost(getHostName(host)) ? ACCESS_GRANTED : HOST_NOT_ALLOWED;
    const waitMs = this.#wrongPasswords.getWaitMs(address, now);
    if (waitMs > 0) return { kind: 'limited', retryAfterMs: waitMs };
    const password = parseBasicPassword(authorization);
    if (password === null) return PASSWORD_CHALLENGE;
    // The delay is the same for every password, so it reveals nothing.
    const delayMs = this.#delayMs(now);
    // The comparison requires equal lengths.
    if (timingSafeEqual(hash('sha256', password, 'buffer'), this.#passwordDigest)) return { kind: 'granted', delayMs };
    // Counted before the delay, so the limit also applies to concurrent attempts.
    this.#wrongPasswords.count(address, now);
    this.#allWrongPasswords.add(now);
    return { kind: 'challenge', delayMs };
  }

  /** For how long wrong tokens of the peer are refused, or 0. */
  countWrongToken(address: string, now: number): number {
    return this.#wrongTokens.count(address, now);
  }

  #delayMs(now: number): number {
    const excessCount = Math.max(0, this.#allWrongPasswords.getValueAt(now) - MAX_FAILURES_WITHOUT_DELAY);
    return Math.min(MAX_DELAY_MS, Math.ceil(excessCount) * DELAY_STEP_MS);
  }
}

/** Decreases by one every FAILURE_DECAY_MS, and is at most the count of the maximum delay. */
class DecayingCount {
  #count = 0;
  #updatedAt = 0;

  getValueAt(now: number): number {
    return Math.max(0, this.#count - Math.max(0, now - this.#updatedAt) / FAILURE_DECAY_MS);
  }

  add(now: number): void {
    this.#count = Math.min(MAX_FAILURES_WITHOUT_DELAY + MAX_DELAY_MS / DELAY_STEP_MS, this.getValueAt(now) + 1);
    this.#updatedAt = now;
  }
}

export function isLoopbackHost(host: string): boolean {
  const name = host.toLowerCase();
  if (name === 'localhost' || name === '::1' || name === '[::1]') return true;
  // 127.0.0.0/8 (RFC 1122 section 3.2.1.3) as four decimal numbers.
  const parts = name.split('.');
  return name.length <= 15 && parts.length === 4 && parts[0] === '127' && parts.every(isOctet);
}

function isOctet(part: string): boolean {
  return /^[0-9]{1,3}$/.test(part) && Number(part) <= 255;
}

function getHostName(host: string): string {
  if (host.startsWith('[')) return host.slice(0, host.indexOf(']') + 1);
  const colonIndex = host.indexOf(':');
  return colonIndex < 0 ? host : host.slice(0, colonIndex);
}

function parseBasicPassword(authorization: string | undefined): string | null {
  if (authorization === undefined || authorization.slice(0, 6).toLowerCase() !== 'basic ') return null;
  const credentials = Buffer.from(authorization.slice(6).trim(), 'base64').toString('utf8');
  const colonIndex = credentials.indexOf(':');
  return colonIndex < 0 ? null : credentials.slice(colonIndex + 1);
}

// Delays a response, until the client disconnects.

/** Resolves at once for 0, or when the connection closes. */
export function delayResponse(
  { socket }: Pick<IncomingMessage, 'socket'>,
  clock: Clock,
  delayMs: number,
): Promise<void> {
  if (delayMs <= 0 || socket.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const endDelay = () => {
      cancelTimer();
      socket.off('close', endDelay);
      socket.setMaxListeners(socket.getMaxListeners() - 1);
      resolve();
    };
    const cancelTimer = clock.after(delayMs, endDelay);
    // A connection can have several delayed responses, one per pipelined request.
    socket.setMaxListeners(socket.getMaxListeners() + 1);
    socket.once('close', endDelay);
  });
}

// Authenticates operator tokens (`Authorization: Bearer po_…`). Lookups of unknown tokens are combined, and a known
// token does not wait for them. After ten wrong tokens of a peer within one minute further wrong ones get 429, but a
// valid one never. Without the store: 503.

const MIN_LAST_USE_WRITE_INTERVAL_MS = 60_000;

export interface AuthenticatedToken {
  readonly kind: 'valid';
  readonly name: string;
  readonly scope: TokenScope;
  readonly expiresAt: number | null;
}

export interface TokenAuthenticator {
  authenticate(address: string, text: string): Promise<AuthenticatedToken | Refusal>;
  /** Without the store, a token that was valid at its last lookup is accepted, so metrics remain available. */
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

// The origin of a request. A program sends no Origin header.

/** Another site, or another port of this host (RFC 6454, W3C Fetch Metadata). */
export function isCrossOrigin(request: Pick<FastifyRequest, 'headers'>): boolean {
  const { origin } = request.headers;
  const fetchSite = request.headers['sec-fetch-site'];
  return (origin !== undefined && !isSameOrigin(request)) || fetchSite === 'cross-site' || fetchSite === 'same-site';
}

/** As behind a proxy that terminates TLS. */
export function isHttpsOrigin(request: Pick<FastifyRequest, 'headers'>): boolean {
  return isSameOrigin(request) && request.headers.origin?.startsWith('https://') === true;
}

export function isSameOrigin({ headers }: Pick<FastifyRequest, 'headers'>): boolean {
  const { origin, host } = headers;
  return origin !== undefined && host !== undefined && (origin === `http://${host}` || origin === `https://${host}`);
}

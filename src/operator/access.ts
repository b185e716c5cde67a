/**
 * Access by password in HTTP Basic (RFC 7617), compared in constant time. Without a password only loopback names are
 * accepted, against DNS rebinding. After ten wrong passwords within one minute a peer is refused. The wrong passwords
 * of all peers only delay responses.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import { FailureCounts } from '../http/peers.ts';

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

/**
 * Access to the operator listener by password. With a password: requests that have it by HTTP Basic (RFC 7617), with any user name.
 * Without one: requests to loopback names only, so that no web page gets access by DNS rebinding.
 *
 * Guarantees: comparison in constant time. After ten wrong passwords within one minute a peer (an IPv4 address or an IPv6 /64) is
 * refused, also with the right password. Wrong passwords of all peers together delay the check of a password and never refuse it.
 * Wrong tokens are counted separately. Memory is bounded.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import { peerNetworkOf } from '../model/address.ts';

/** `delayMs`: the delay of the answer, which slows down guesses from many addresses; 0 without a password in the request. */
export type AccessDecision =
  | { readonly kind: 'granted'; readonly delayMs: number }
  /** The credentials are missing or wrong. */
  | { readonly kind: 'challenge'; readonly delayMs: number }
  | { readonly kind: 'limited'; readonly retryAfterMs: number }
  | { readonly kind: 'host-not-allowed' };

/** Wrong passwords or tokens of a peer within the window before it is refused. */
export const MAX_FAILURES = 10;
const WINDOW_MS = 60_000;
const MAX_PEERS = 10_000;

/** Wrong passwords of all peers that cause no delay, for typing errors. */
const FAILURES_WITHOUT_DELAY = 20;
/** Increase of the delay per further wrong password. */
const DELAY_STEP_MS = 50;
export const MAX_DELAY_MS = 5_000;
/** The count of wrong passwords of all peers decreases by one per this time. */
const FAILURE_DECAY_MS = 3_000;

const GRANTED: AccessDecision = { kind: 'granted', delayMs: 0 };
const CHALLENGE: AccessDecision = { kind: 'challenge', delayMs: 0 };
const HOST_NOT_ALLOWED: AccessDecision = { kind: 'host-not-allowed' };

export class AccessControl {
  readonly #passwordDigest: Buffer | null;
  readonly #wrongPasswords = new FailureCounts();
  readonly #wrongTokens = new FailureCounts();
  readonly #allWrongPasswords = new DecayingCount();

  constructor(password: string | null) {
    this.#passwordDigest = password === null ? null : hash('sha256', password, 'buffer');
  }

  /** Decides about a request by its Host and Authorization headers; `address` is the IP address of the client. */
  check(address: string, host: string | undefined, authorization: string | undefined, now: number): AccessDecision {
    if (this.#passwordDigest === null)
      return host !== undefined && isLoopbackHost(hostNameOf(host)) ? GRANTED : HOST_NOT_ALLOWED;
    const waitMs = this.#wrongPasswords.waitMs(address, now);
    if (waitMs > 0) return { kind: 'limited', retryAfterMs: waitMs };
    const password = parseBasicPassword(authorization);
    if (password === null) return CHALLENGE;
    // The same delay for right and wrong passwords, so that it reveals nothing.
    const delayMs = this.#delayMs(now);
    // Digests have equal length, as the comparison requires.
    if (timingSafeEqual(hash('sha256', password, 'buffer'), this.#passwordDigest)) return { kind: 'granted', delayMs };
    // Counted before the delay, so that concurrent attempts count.
    this.#wrongPasswords.add(address, now);
    this.#allWrongPasswords.add(now);
    return { kind: 'challenge', delayMs };
  }

  /** Counts a wrong token. Returns for how long the peer is refused for wrong tokens, in milliseconds; 0 if it is not. */
  countWrongToken(address: string, now: number): number {
    const waitMs = this.#wrongTokens.waitMs(address, now);
    if (waitMs === 0) this.#wrongTokens.add(address, now);
    return waitMs;
  }

  #delayMs(now: number): number {
    const excess = Math.max(0, this.#allWrongPasswords.valueAt(now) - FAILURES_WITHOUT_DELAY);
    return Math.min(MAX_DELAY_MS, Math.ceil(excess) * DELAY_STEP_MS);
  }
}

interface FailureWindow {
  count: number;
  readonly since: number;
}

/** Failures by peer, in windows that begin with the first failure. At the limit of peers the oldest window is removed. */
class FailureCounts {
  readonly #windows = new Map<string, FailureWindow>();

  /** For how long a peer is refused, in milliseconds; 0 if it is not. */
  waitMs(address: string, now: number): number {
    const window = this.#currentWindow(peerNetworkOf(address), now);
    return window !== undefined && window.count >= MAX_FAILURES ? window.since + WINDOW_MS - now : 0;
  }

  add(address: string, now: number): void {
    const peer = peerNetworkOf(address);
    const window = this.#currentWindow(peer, now);
    if (window === undefined) this.#startWindow(peer, now);
    else window.count += 1;
  }

  #currentWindow(peer: string, now: number): FailureWindow | undefined {
    const window = this.#windows.get(peer);
    if (window === undefined) return undefined;
    if (now >= window.since && now - window.since < WINDOW_MS) return window;
    this.#windows.delete(peer);
    return undefined;
  }

  #startWindow(peer: string, now: number): void {
    if (this.#windows.size >= MAX_PEERS) {
      // A map iterates in order of insertion, so the first entry is the oldest.
      for (const oldest of this.#windows.keys()) {
        this.#windows.delete(oldest);
        break;
      }
    }
    this.#windows.set(peer, { count: 1, since: now });
  }
}

/** A count that decreases by one per FAILURE_DECAY_MS and is bounded by the count of the maximum delay. */
class DecayingCount {
  #count = 0;
  #updatedAt = 0;

  valueAt(now: number): number {
    return Math.max(0, this.#count - Math.max(0, now - this.#updatedAt) / FAILURE_DECAY_MS);
  }

  add(now: number): void {
    this.#count = Math.min(FAILURES_WITHOUT_DELAY + MAX_DELAY_MS / DELAY_STEP_MS, this.valueAt(now) + 1);
    this.#updatedAt = now;
  }
}

/** True for the names and addresses of this machine's loopback interface. */
export function isLoopbackHost(host: string): boolean {
  const name = host.toLowerCase();
  if (name === 'localhost' || name === '::1' || name === '[::1]') return true;
  // 127.0.0.0/8 (RFC 1122 section 3.2.1.3), four plain decimal numbers.
  const parts = name.split('.');
  return name.length <= 15 && parts.length === 4 && parts[0] === '127' && parts.every(isOctet);
}

function isOctet(part: string): boolean {
  return /^[0-9]{1,3}$/.test(part) && Number(part) <= 255;
}

/** The host of a Host header, without the port. */
function hostNameOf(host: string): string {
  if (host.startsWith('[')) return host.slice(0, host.indexOf(']') + 1);
  const colon = host.indexOf(':');
  return colon < 0 ? host : host.slice(0, colon);
}

function parseBasicPassword(authorization: string | undefined): string | null {
  if (authorization === undefined || authorization.slice(0, 6).toLowerCase() !== 'basic ') return null;
  const credentials = Buffer.from(authorization.slice(6).trim(), 'base64').toString('utf8');
  const colon = credentials.indexOf(':');
  return colon < 0 ? null : credentials.slice(colon + 1);
}

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
  | { readonly kind: 'foreign-host' };

/** Wrong passwords or tokens of a peer within the window before it is refused. */
export const MAX_FAILURES = 10;
const WINDOW_MS = 60_000;
const MAX_PEERS = 10_000;

/** Wrong passwords of all peers that cause no delay, for typing errors. */
const FREE_FAILURES = 20;
/** Increase of the delay per further wrong password. */
const DELAY_STEP_MS = 50;
export const MAX_DELAY_MS = 5_000;
/** The count of wrong passwords of all peers decreases by one per this time. */
const FAILURE_DECAY_MS = 3_000;

const GRANTED: AccessDecision = { kind: 'granted', delayMs: 0 };
const CHALLENGE: AccessDecision = { kind: 'challenge', delayMs: 0 };
const FOREIGN: AccessDecision = { kind: 'foreign-host' };

export class AccessControl {
  readonly #expected: Buffer | null;
  readonly #wrongPasswords = new FailureCounts();
  readonly #wrongTokens = new FailureCounts();
  readonly #total = new DecayingCount();

  constructor(password: string | null) {
    this.#expected = password === null ? null : hash('sha256', password, 'buffer');
  }

  /** Decides about a request by its Host and Authorization headers; `address` is the IP address of the client. */
  check(address: string, host: string | undefined, authorization: string | undefined, now: number): AccessDecision {
    if (this.#expected === null) return host !== undefined && isLoopbackHost(nameOf(host)) ? GRANTED : FOREIGN;
    const waitMs = this.#wrongPasswords.waitMs(address, now);
    if (waitMs > 0) return { kind: 'limited', retryAfterMs: waitMs };
    const password = passwordOf(authorization);
    if (password === null) return CHALLENGE;
    // The same delay for right and wrong passwords, so that it reveals nothing.
    const delayMs = this.#delayMs(now);
    // Digests have equal length, as the comparison requires.
    if (timingSafeEqual(hash('sha256', password, 'buffer'), this.#expected)) return { kind: 'granted', delayMs };
    // Counted before the delay, so that concurrent attempts count.
    this.#wrongPasswords.add(address, now);
    this.#total.add(now);
    return { kind: 'challenge', delayMs };
  }

  /** Counts a wrong token. Returns for how long the peer is refused for wrong tokens, in milliseconds; 0 if it is not. */
  countWrongToken(address: string, now: number): number {
    const waitMs = this.#wrongTokens.waitMs(address, now);
    if (waitMs === 0) this.#wrongTokens.add(address, now);
    return waitMs;
  }

  #delayMs(now: number): number {
    const over = Math.max(0, this.#total.at(now) - FREE_FAILURES);
    return Math.min(MAX_DELAY_MS, Math.ceil(over) * DELAY_STEP_MS);
  }
}

interface Failures {
  count: number;
  readonly since: number;
}

/** Failures by peer, in windows that begin with the first failure. At the limit of peers the oldest window is removed. */
class FailureCounts {
  readonly #failures = new Map<string, Failures>();

  /** For how long a peer is refused, in milliseconds; 0 if it is not. */
  waitMs(address: string, now: number): number {
    const failures = this.#current(peerNetworkOf(address), now);
    return failures !== undefined && failures.count >= MAX_FAILURES ? failures.since + WINDOW_MS - now : 0;
  }

  add(address: string, now: number): void {
    const peer = peerNetworkOf(address);
    const failures = this.#current(peer, now);
    if (failures === undefined) this.#begin(peer, now);
    else failures.count += 1;
  }

  #current(peer: string, now: number): Failures | undefined {
    const failures = this.#failures.get(peer);
    if (failures === undefined) return undefined;
    if (now >= failures.since && now - failures.since < WINDOW_MS) return failures;
    this.#failures.delete(peer);
    return undefined;
  }

  #begin(peer: string, now: number): void {
    if (this.#failures.size >= MAX_PEERS) {
      // A map iterates in order of insertion, so the first entry is the oldest.
      for (const oldest of this.#failures.keys()) {
        this.#failures.delete(oldest);
        break;
      }
    }
    this.#failures.set(peer, { count: 1, since: now });
  }
}

/** A count that decreases by one per FAILURE_DECAY_MS and is bounded by the count of the maximum delay. */
class DecayingCount {
  #count = 0;
  #at = 0;

  at(now: number): number {
    return Math.max(0, this.#count - Math.max(0, now - this.#at) / FAILURE_DECAY_MS);
  }

  add(now: number): void {
    this.#count = Math.min(FREE_FAILURES + MAX_DELAY_MS / DELAY_STEP_MS, this.at(now) + 1);
    this.#at = now;
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
function nameOf(host: string): string {
  if (host.startsWith('[')) return host.slice(0, host.indexOf(']') + 1);
  const colon = host.indexOf(':');
  return colon < 0 ? host : host.slice(0, colon);
}

function passwordOf(authorization: string | undefined): string | null {
  if (authorization === undefined || authorization.slice(0, 6).toLowerCase() !== 'basic ') return null;
  const pair = Buffer.from(authorization.slice(6).trim(), 'base64').toString('utf8');
  const colon = pair.indexOf(':');
  return colon < 0 ? null : pair.slice(colon + 1);
}

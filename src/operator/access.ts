/**
 * Who may use the operator's listener. With a password: whoever has it, by HTTP Basic (RFC 7617), any user name.
 * Without one: this machine alone, by loopback names alone, so that no web page reaches it by DNS rebinding.
 *
 * Promises: constant-time comparison; after ten wrong passwords within a minute an address waits, the right one too;
 * bounded memory.
 */
import { hash, timingSafeEqual } from 'node:crypto';

export type Access =
  | { readonly kind: 'granted' }
  /** No credentials yet, or wrong ones. */
  | { readonly kind: 'challenge' }
  | { readonly kind: 'limited'; readonly retryAfterMs: number }
  | { readonly kind: 'foreign-host' };

interface Failures {
  count: number;
  readonly since: number;
}

const MOST_FAILURES = 10;
const WINDOW_MS = 60_000;
const MOST_ADDRESSES = 10_000;

const GRANTED: Access = { kind: 'granted' };
const CHALLENGE: Access = { kind: 'challenge' };
const FOREIGN: Access = { kind: 'foreign-host' };

export class AccessControl {
  readonly #expected: Buffer | null;
  readonly #failures = new Map<string, Failures>();

  constructor(password: string | null) {
    this.#expected = password === null ? null : hash('sha256', password, 'buffer');
  }

  /** Judges one request by its Host and Authorization headers; `address` is the client's. */
  judge(address: string, host: string | undefined, authorization: string | undefined, now: number): Access {
    if (this.#expected === null) return host !== undefined && isLoopbackHost(nameOf(host)) ? GRANTED : FOREIGN;
    const failures = this.#current(address, now);
    if (failures !== undefined && failures.count >= MOST_FAILURES) {
      return { kind: 'limited', retryAfterMs: failures.since + WINDOW_MS - now };
    }
    const password = passwordOf(authorization);
    if (password === null) return CHALLENGE;
    // Digests have one length, whatever was sent.
    if (timingSafeEqual(hash('sha256', password, 'buffer'), this.#expected)) return GRANTED;
    if (failures !== undefined) failures.count += 1;
    else this.#begin(address, now);
    return CHALLENGE;
  }

  /** How long an address that failed too often still has to wait, in ms; 0 where it need not. */
  waitMs(address: string, now: number): number {
    const failures = this.#current(address, now);
    return failures !== undefined && failures.count >= MOST_FAILURES ? failures.since + WINDOW_MS - now : 0;
  }

  /** A wrong token counts like a wrong password. */
  noteFailure(address: string, now: number): void {
    const failures = this.#current(address, now);
    if (failures === undefined) this.#begin(address, now);
    else failures.count += 1;
  }

  #current(address: string, now: number): Failures | undefined {
    const failures = this.#failures.get(address);
    if (failures === undefined) return undefined;
    if (now >= failures.since && now - failures.since < WINDOW_MS) return failures;
    this.#failures.delete(address);
    return undefined;
  }

  #begin(address: string, now: number): void {
    if (this.#failures.size >= MOST_ADDRESSES) {
      // The map keeps the order of insertion: the first is the oldest.
      for (const oldest of this.#failures.keys()) {
        this.#failures.delete(oldest);
        break;
      }
    }
    this.#failures.set(address, { count: 1, since: now });
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

/** The host of a Host header, its port left out. */
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

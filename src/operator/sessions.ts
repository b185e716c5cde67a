/**
 * Sessions of people at a browser. A session has two parts. The cookie holds when the session ends, a digest of the page's secret,
 * and a signature over both: any node accepts it and no node stores it. The page's secret is 256 random bits that the page keeps in
 * the localStorage of its origin and sends as a header. Cookies ignore ports (RFC 6265 section 8.5): a server on another port of
 * this host receives the cookie, but never the secret. Without a password the way in is a link with a word of 256 random bits, good
 * once.
 *
 * Guarantees: neither part admits anybody alone; the secret cannot be computed from the cookie; comparison in constant time.
 */
import { createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto';

export const SESSION_COOKIE = 'postrider_session';
/** The header that carries the page's secret, as Node names it. */
export const SESSION_HEADER = 'postrider-session';
/** A working day. */
export const SESSION_MS = 12 * 3_600_000;
/** By which the clocks of two nodes may differ. */
const MAX_SKEW_MS = 10_000;
/** A ticket is asked for right before it is used. */
export const TICKET_MS = 30_000;

export interface NewSession {
  readonly cookie: string;
  /** For the page alone, told once. */
  readonly secret: string;
}

export interface Sessions {
  /** Both parts for a person who signed in at `now` (ms). */
  create(now: number): NewSession;
  /** True for two parts that `begin` made together with the same key, until they end by themselves; whether they were ended before, the store knows. */
  verify(cookie: string, secret: string, now: number): boolean;
  /** When a cookie that holds ends (ms since the epoch). */
  expiresAt(cookie: string): number;
  /**
   * Stands for the page's secret in one URL, for what a browser loads without headers: a frame, a download. Good for TICKET_MS, for
   * that path, and together with the cookie.
   */
  createTicket(cookie: string, path: string, now: number): string;
  verifyTicket(ticket: string, cookie: string, path: string, now: number): boolean;
  /** The word of the one-time link; null where there is a password. */
  readonly linkToken: string | null;
  /** True once, for that word. */
  redeemLinkToken(word: string): boolean;
}

/** `key` is the same on every node; `withLink` where there is no password. */
export function createSessions(key: Buffer, withLink: boolean): Sessions {
  const link = withLink ? randomBytes(32).toString('base64url') : null;
  let spent = false;
  const sign = (text: string) => createHmac('sha256', key).update(text).digest('base64url');
  const signTicket = (until: string, cookie: string, path: string) => sign(`ticket\n${until}\n${cookie}\n${path}`);
  /** True for a cookie of ours that has not ended by itself. */
  const isOurs = (cookie: string, now: number) => {
    const at = cookie.lastIndexOf('.');
    if (!same(cookie.slice(at + 1), sign(cookie.slice(0, Math.max(0, at))))) return false;
    return endsSoon(endOf(cookie), now, SESSION_MS);
  };
  return {
    linkToken: link,
    create(now) {
      const secret = randomBytes(32).toString('base64url');
      const text = `${now + SESSION_MS}.${digestOf(secret)}`;
      return { cookie: `${text}.${sign(text)}`, secret };
    },
    verify: (cookie, secret, now) => isOurs(cookie, now) && same(digestOf(secret), cookie.split('.')[1] ?? ''),
    expiresAt: endOf,
    createTicket(cookie, path, now) {
      const until = String(now + TICKET_MS);
      return `${until}.${signTicket(until, cookie, path)}`;
    },
    verifyTicket(ticket, cookie, path, now) {
      const [until = '', signature = ''] = ticket.split('.', 2);
      if (!isOurs(cookie, now) || !same(signature, signTicket(until, cookie, path))) return false;
      return endsSoon(Number(until), now, TICKET_MS);
    },
    redeemLinkToken(word) {
      if (link === null || spent || !same(word, link)) return false;
      spent = true;
      return true;
    },
  };
}

function endOf(cookie: string): number {
  return Number(cookie.split('.', 1)[0]);
}

/** True for an end that lies ahead, and no further than it can where nodes' clocks differ little: a clock set back prolongs nothing. */
function endsSoon(until: number, now: number, longestMs: number): boolean {
  return now < until && until - now <= longestMs + MAX_SKEW_MS;
}

function digestOf(secret: string): string {
  return hash('sha256', secret, 'base64url');
}

function same(given: string, expected: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(expected)];
  return one.length === other.length && timingSafeEqual(one, other);
}

/** The value of our cookie in a Cookie header (RFC 6265 section 5.4), or null. */
export function readSessionCookie(header: string | undefined): string | null {
  for (const pair of (header ?? '').split(';')) {
    const equals = pair.indexOf('=');
    if (equals > 0 && pair.slice(0, equals).trim() === SESSION_COOKIE) return pair.slice(equals + 1).trim();
  }
  return null;
}

/** Set-Cookie: no script reads it, no other site sends it; `secure` where the page came over HTTPS. */
export function sessionCookie(value: string, secure: boolean): string {
  return `${SESSION_COOKIE}=${value}; ${attributes(secure)}; Max-Age=${SESSION_MS / 1000}`;
}

export function expiredSessionCookie(secure: boolean): string {
  return `${SESSION_COOKIE}=; ${attributes(secure)}; Max-Age=0`;
}

function attributes(secure: boolean): string {
  return `HttpOnly; SameSite=Strict; Path=/${secure ? '; Secure' : ''}`;
}

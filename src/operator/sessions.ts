/**
 * Browser sessions. A session has two parts. The cookie contains the expiry, a digest of the page's secret, and a signature over both;
 * every node accepts it and no node stores it. The page's secret is 256 random bits that the page stores in the localStorage of its
 * origin and sends as a header. Cookies ignore ports (RFC 6265 section 8.5): a server on another port of this host receives the
 * cookie, but not the secret. Without a password, sign-in uses a one-time link with a token of 256 random bits.
 *
 * Guarantees: a session needs both parts; the secret cannot be computed from the cookie; comparison in constant time.
 */
import { createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto';

export const SESSION_COOKIE = 'postrider_session';
/** The header with the page's secret, in lower case as Node has it. */
export const SESSION_HEADER = 'postrider-session';
/** Lifetime of a session. */
export const SESSION_LIFETIME_MS = 12 * 3_600_000;
/** Maximum difference between the clocks of two nodes. */
const MAX_CLOCK_SKEW_MS = 10_000;
/** Lifetime of a ticket. A page requests it immediately before its use. */
export const TICKET_LIFETIME_MS = 30_000;

export interface NewSession {
  readonly cookie: string;
  /** Sent to the page once. */
  readonly secret: string;
}

export interface Sessions {
  /** Creates both parts of a session that begins at `now`, in milliseconds. */
  create(now: number): NewSession;
  /** True for two parts of the same unexpired session, signed with the same key. The store knows which sessions were ended. */
  verify(cookie: string, secret: string, now: number): boolean;
  /** The expiry of a valid cookie, in milliseconds since the epoch. */
  expiresAt(cookie: string): number;
  /**
   * Creates a ticket, which replaces the page's secret in one URL that a browser requests without headers: a frame or a download. It
   * is valid for TICKET_MS, for that path, and together with the cookie.
   */
  createTicket(cookie: string, path: string, now: number): string;
  verifyTicket(ticket: string, cookie: string, path: string, now: number): boolean;
  /** The token of the one-time link; null with a password. */
  readonly linkToken: string | null;
  /** True for the token of the link, once. */
  redeemLinkToken(token: string): boolean;
}

/** `key` is the same on every node; `withLink` is set without a password. */
export function createSessions(key: Buffer, withLink: boolean): Sessions {
  const link = withLink ? randomBytes(32).toString('base64url') : null;
  let isLinkUsed = false;
  const sign = (text: string) => createHmac('sha256', key).update(text).digest('base64url');
  const signTicket = (expiresAt: string, cookie: string, path: string) =>
    sign(`ticket\n${expiresAt}\n${cookie}\n${path}`);
  /** True for an unexpired cookie with a valid signature. */
  const isValid = (cookie: string, now: number) => {
    const signatureAt = cookie.lastIndexOf('.');
    if (!equalsInConstantTime(cookie.slice(signatureAt + 1), sign(cookie.slice(0, Math.max(0, signatureAt)))))
      return false;
    return isWithinLifetime(expiryOf(cookie), now, SESSION_LIFETIME_MS);
  };
  return {
    linkToken: link,
    create(now) {
      const secret = randomBytes(32).toString('base64url');
      const text = `${now + SESSION_LIFETIME_MS}.${digestOf(secret)}`;
      return { cookie: `${text}.${sign(text)}`, secret };
    },
    verify: (cookie, secret, now) =>
      isValid(cookie, now) && equalsInConstantTime(digestOf(secret), cookie.split('.')[1] ?? ''),
    expiresAt: expiryOf,
    createTicket(cookie, path, now) {
      const expiresAt = String(now + TICKET_LIFETIME_MS);
      return `${expiresAt}.${signTicket(expiresAt, cookie, path)}`;
    },
    verifyTicket(ticket, cookie, path, now) {
      const [expiresAt = '', signature = ''] = ticket.split('.', 2);
      if (!isValid(cookie, now) || !equalsInConstantTime(signature, signTicket(expiresAt, cookie, path))) return false;
      return isWithinLifetime(Number(expiresAt), now, TICKET_LIFETIME_MS);
    },
    redeemLinkToken(token) {
      if (link === null || isLinkUsed || !equalsInConstantTime(token, link)) return false;
      isLinkUsed = true;
      return true;
    },
  };
}

function expiryOf(cookie: string): number {
  return Number(cookie.split('.', 1)[0]);
}

/** True for an expiry in the future that a lifetime beginning now can have. A clock that was set back extends no session. */
function isWithinLifetime(expiresAt: number, now: number, lifetimeMs: number): boolean {
  return now < expiresAt && expiresAt - now <= lifetimeMs + MAX_CLOCK_SKEW_MS;
}

function digestOf(secret: string): string {
  return hash('sha256', secret, 'base64url');
}

function equalsInConstantTime(given: string, expected: string): boolean {
  const [givenBytes, expectedBytes] = [Buffer.from(given), Buffer.from(expected)];
  return givenBytes.length === expectedBytes.length && timingSafeEqual(givenBytes, expectedBytes);
}

/** The value of the session cookie in a Cookie header (RFC 6265 section 5.4), or null. */
export function readSessionCookie(header: string | undefined): string | null {
  for (const pair of (header ?? '').split(';')) {
    const equals = pair.indexOf('=');
    if (equals > 0 && pair.slice(0, equals).trim() === SESSION_COOKIE) return pair.slice(equals + 1).trim();
  }
  return null;
}

/** Set-Cookie: not readable by scripts, not sent by other sites; `secure` if the page was loaded over HTTPS. */
export function sessionCookie(value: string, secure: boolean): string {
  return `${SESSION_COOKIE}=${value}; ${cookieAttributes(secure)}; Max-Age=${SESSION_LIFETIME_MS / 1000}`;
}

export function expiredSessionCookie(secure: boolean): string {
  return `${SESSION_COOKIE}=; ${cookieAttributes(secure)}; Max-Age=0`;
}

function cookieAttributes(secure: boolean): string {
  return `HttpOnly; SameSite=Strict; Path=/${secure ? '; Secure' : ''}`;
}

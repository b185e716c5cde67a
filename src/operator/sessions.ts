/**
 * Creates and verifies browser sessions. A session consists of a cookie and the secret of the page. The cookie contains
 * the expiry, a digest of the secret, and a signature of both. Every node accepts the cookie, and no node stores it.
 * The secret has 256 random bits. The page stores it in the localStorage of its origin and sends it in a header.
 * Cookies do not depend on ports (RFC 6265 section 8.5), so a server on another port of this host receives the cookie,
 * but not the secret. If no password is set, sign-in uses a one-time link with a token of 256 random bits.
 *
 * Guarantees: a session requires the cookie and the secret. The secret cannot be computed from the cookie. Comparisons
 * take constant time.
 */
import { createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto';

export const SESSION_COOKIE = 'postrider_session';
/** The header that contains the secret of the page, in lower case as in the headers of node:http. */
export const SESSION_HEADER = 'postrider-session';
/** The lifetime of a session. */
export const SESSION_LIFETIME_MS = 12 * 3_600_000;
/** The maximum difference between the clocks of two nodes. */
const MAX_CLOCK_SKEW_MS = 10_000;
/** The lifetime of a ticket. A page requests a ticket immediately before it uses the ticket. */
export const TICKET_LIFETIME_MS = 30_000;

export interface NewSession {
  readonly cookie: string;
  /** The secret of the page, which is sent to the page once. */
  readonly secret: string;
}

export interface Sessions {
  /** Creates the cookie and the secret of a session that starts at `now`, in milliseconds since the epoch. */
  create(now: number): NewSession;
  /**
   * Returns true if the cookie and the secret belong to the same unexpired session and the cookie was signed with this
   * key. An ended session is not detected, because only the store records that a session was ended.
   */
  verify(cookie: string, secret: string, now: number): boolean;
  /** Returns the expiry of a valid cookie, in milliseconds since the epoch. */
  getExpiry(cookie: string): number;
  /**
   * Creates a ticket. A browser requests the URL of a frame without the headers that a page can set, so the URL
   * contains a ticket instead of the secret of the page. A ticket is valid for TICKET_LIFETIME_MS, only for this path
   * and only together with the cookie.
   */
  createTicket(cookie: string, path: string, now: number): string;
  /** Returns true for an unexpired ticket of this cookie and path. */
  verifyTicket(ticket: string, cookie: string, path: string, now: number): boolean;
  /** The token of the one-time link. Null if a password is set. */
  readonly linkToken: string | null;
  /** Returns true only for the first call with the token of the one-time link. */
  redeemLinkToken(token: string): boolean;
}

/** Creates the sessions of one listener. `key` is the same on every node. `hasLink` is true if no password is set. */
export function createSessions(key: Buffer, hasLink: boolean): Sessions {
  const linkToken = hasLink ? randomBytes(32).toString('base64url') : null;
  let isLinkUsed = false;
  const sign = (text: string) => createHmac('sha256', key).update(text).digest('base64url');
  const signTicket = (expiresAt: string, cookie: string, path: string) =>
    sign(`ticket\n${expiresAt}\n${cookie}\n${path}`);
  /** Returns true for an unexpired cookie with a valid signature. */
  const isValid = (cookie: string, now: number) => {
    const signatureStart = cookie.lastIndexOf('.');
    if (!equalsInConstantTime(cookie.slice(signatureStart + 1), sign(cookie.slice(0, Math.max(0, signatureStart)))))
      return false;
    return isWithinLifetime(getExpiry(cookie), now, SESSION_LIFETIME_MS);
  };
  return {
    linkToken,
    create(now) {
      const secret = randomBytes(32).toString('base64url');
      const signedText = `${now + SESSION_LIFETIME_MS}.${computeDigest(secret)}`;
      return { cookie: `${signedText}.${sign(signedText)}`, secret };
    },
    verify: (cookie, secret, now) =>
      isValid(cookie, now) && equalsInConstantTime(computeDigest(secret), cookie.split('.')[1] ?? ''),
    getExpiry,
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
      if (linkToken === null || isLinkUsed || !equalsInConstantTime(token, linkToken)) return false;
      isLinkUsed = true;
      return true;
    },
  };
}

function getExpiry(cookie: string): number {
  return Number(cookie.split('.', 1)[0]);
}

/**
 * Returns true if the expiry is in the future and at most one lifetime from now. Therefore, a clock that was set back
 * does not extend a session.
 */
function isWithinLifetime(expiresAt: number, now: number, lifetimeMs: number): boolean {
  return now < expiresAt && expiresAt - now <= lifetimeMs + MAX_CLOCK_SKEW_MS;
}

function computeDigest(secret: string): string {
  return hash('sha256', secret, 'base64url');
}

function equalsInConstantTime(actual: string, expected: string): boolean {
  const [actualBytes, expectedBytes] = [Buffer.from(actual), Buffer.from(expected)];
  return actualBytes.length === expectedBytes.length && timingSafeEqual(actualBytes, expectedBytes);
}

/** Returns the value of the session cookie in a Cookie header (RFC 6265 section 5.4), or null. */
export function readSessionCookie(header: string | undefined): string | null {
  for (const pair of (header ?? '').split(';')) {
    const equalsIndex = pair.indexOf('=');
    if (equalsIndex > 0 && pair.slice(0, equalsIndex).trim() === SESSION_COOKIE)
      return pair.slice(equalsIndex + 1).trim();
  }
  return null;
}

/**
 * Returns a Set-Cookie header. Scripts cannot read the cookie, and requests of other sites do not contain it.
 * `isSecure` is true for HTTPS.
 */
export function formatSessionCookie(value: string, isSecure: boolean): string {
  return `${SESSION_COOKIE}=${value}; ${formatCookieAttributes(isSecure)}; Max-Age=${SESSION_LIFETIME_MS / 1000}`;
}

/** Returns a Set-Cookie header that removes the cookie. */
export function formatExpiredSessionCookie(isSecure: boolean): string {
  return `${SESSION_COOKIE}=; ${formatCookieAttributes(isSecure)}; Max-Age=0`;
}

function formatCookieAttributes(isSecure: boolean): string {
  return `HttpOnly; SameSite=Strict; Path=/${isSecure ? '; Secure' : ''}`;
}

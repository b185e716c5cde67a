/**
 * Browser sessions: a signed cookie with the expiry and a digest of the secret, and the secret of the page in a header.
 * A server on another port of this host receives the cookie (RFC 6265 section 8.5), but not the secret. No node stores
 * either. Comparisons take constant time.
 */
import { createHmac, hash, randomBytes } from 'node:crypto';
import { equalsInConstantTime } from '../model/credentials.ts';

export const SESSION_COOKIE = 'postrider_session';
/** In lower case, as in node:http. */
export const SESSION_HEADER = 'postrider-session';
export const SESSION_LIFETIME_MS = 12 * 3_600_000;
/** Between the clocks of two nodes. */
const MAX_CLOCK_SKEW_MS = 10_000;
/** A page requests a ticket immediately before it uses it. */
export const TICKET_LIFETIME_MS = 30_000;

export interface NewSession {
  readonly cookie: string;
  /** Sent to the page once. */
  readonly secret: string;
}

export interface Sessions {
  create(now: number): NewSession;
  /** Both belong to one unexpired session of this key. Only the store knows whether it was ended. */
  verify(cookie: string, secret: string, now: number): boolean;
  /** Of a valid cookie, in milliseconds since the epoch. */
  getExpiry(cookie: string): number;
  /** For the URL of a frame, which has no headers of the page: for TICKET_LIFETIME_MS, this path and the cookie. */
  createTicket(cookie: string, path: string, now: number): string;
  verifyTicket(ticket: string, cookie: string, path: string, now: number): boolean;
  /** Of the one-time link; null if a password is set. */
  readonly linkToken: string | null;
  /** True only for the first call. */
  redeemLinkToken(token: string): boolean;
}

/** `key` is the same on every node. */
export function createSessions(key: Buffer, hasLink: boolean): Sessions {
  const linkToken = hasLink ? randomBytes(32).toString('base64url') : null;
  let isLinkUsed = false;
  const sign = (text: string) => createHmac('sha256', key).update(text).digest('base64url');
  const signTicket = (expiresAt: string, cookie: string, path: string) =>
    sign(`ticket\n${expiresAt}\n${cookie}\n${path}`);
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

/** A clock that was set back does not extend a session. */
function isWithinLifetime(expiresAt: number, now: number, lifetimeMs: number): boolean {
  return now < expiresAt && expiresAt - now <= lifetimeMs + MAX_CLOCK_SKEW_MS;
}

function computeDigest(secret: string): string {
  return hash('sha256', secret, 'base64url');
}

/** RFC 6265 section 5.4. */
export function readSessionCookie(header: string | undefined): string | null {
  for (const pair of (header ?? '').split(';')) {
    const equalsIndex = pair.indexOf('=');
    if (equalsIndex > 0 && pair.slice(0, equalsIndex).trim() === SESSION_COOKIE)
      return pair.slice(equalsIndex + 1).trim();
  }
  return null;
}

/** Scripts cannot read the cookie, and requests of other sites do not contain it. */
export function formatSessionCookie(value: string, isSecure: boolean): string {
  return `${SESSION_COOKIE}=${value}; ${formatCookieAttributes(isSecure)}; Max-Age=${SESSION_LIFETIME_MS / 1000}`;
}

export function formatExpiredSessionCookie(isSecure: boolean): string {
  return `${SESSION_COOKIE}=; ${formatCookieAttributes(isSecure)}; Max-Age=0`;
}

function formatCookieAttributes(isSecure: boolean): string {
  return `HttpOnly; SameSite=Strict; Path=/${isSecure ? '; Secure' : ''}`;
}

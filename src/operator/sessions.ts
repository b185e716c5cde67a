/**
 * Who signed in: a cookie that holds when it ends and a signature over that, so that any node believes it and none keeps
 * anything but who signed out before that. Without a password the way in is a link with a word of 256 random bits, good once.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

export const SESSION_COOKIE = 'postrider_session';
/** A working day. */
export const SESSION_MS = 12 * 3_600_000;

export interface Sessions {
  /** The cookie's value for somebody who signed in at `now` (ms). */
  begin(now: number): string;
  /** True for a value that `begin` made with the same key, until it ends by itself; whether it was ended before, the store knows. */
  holds(value: string, now: number): boolean;
  /** When a value that holds ends (ms since the epoch). */
  endOf(value: string): number;
  /** The word of the one-time link; null where there is a password. */
  readonly link: string | null;
  /** True once, for that word. */
  redeem(word: string): boolean;
}

/** `key` is the same on every node; `withLink` where there is no password. */
export function createSessions(key: Buffer, withLink: boolean): Sessions {
  const link = withLink ? randomBytes(32).toString('base64url') : null;
  let spent = false;
  const sign = (text: string) => createHmac('sha256', key).update(text).digest('base64url');
  return {
    link,
    begin(now) {
      const text = `${now + SESSION_MS}.${randomBytes(9).toString('base64url')}`;
      return `${text}.${sign(text)}`;
    },
    holds(value, now) {
      const at = value.lastIndexOf('.');
      const text = value.slice(0, Math.max(0, at));
      if (!same(value.slice(at + 1), sign(text))) return false;
      const until = endOf(value);
      return now < until && until - now <= SESSION_MS;
    },
    endOf,
    redeem(word) {
      if (link === null || spent || !same(word, link)) return false;
      spent = true;
      return true;
    },
  };
}

function endOf(value: string): number {
  return Number(value.split('.')[0]);
}

function same(given: string, expected: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(expected)];
  return one.length === other.length && timingSafeEqual(one, other);
}

/** The value of our cookie in a Cookie header (RFC 6265 section 5.4), or null. */
export function sessionIn(header: string | undefined): string | null {
  for (const pair of (header ?? '').split(';')) {
    const equals = pair.indexOf('=');
    if (equals > 0 && pair.slice(0, equals).trim() === SESSION_COOKIE) return pair.slice(equals + 1).trim();
  }
  return null;
}

/** Set-Cookie: no script reads it, no other site sends it. `Secure` is left out, for the listener speaks HTTP on loopback. */
export function sessionCookie(value: string): string {
  return `${SESSION_COOKIE}=${value}; HttpOnly; SameSite=Strict; Path=/; Max-Age=${SESSION_MS / 1000}`;
}

export function endedCookie(): string {
  return `${SESSION_COOKIE}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0`;
}

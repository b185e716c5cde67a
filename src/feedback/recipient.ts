/**
 * Whom the feedback listener takes mail for: the return path of one of this installation's own messages, while it is
 * young enough, and the two mailboxes that every mail domain has (RFC 5321 section 4.5.1, RFC 2142). Pure but for the hash.
 */

import { readReturnPath } from '../message/return-path.ts';
import { parseAddress } from '../model/address.ts';

const DAY_MS = 86_400_000;
/** A return path is good for so long: retries take a day, slow gateways a week, complaints some weeks. */
export const MAX_RETURN_PATH_AGE_DAYS = 45;
/** Days are counted in 16 bits. */
const DAYS = 65_536;

export type FeedbackRecipient =
  | { readonly kind: 'return-path'; readonly id: string }
  /** `postmaster` or `abuse`: for the operator. */
  | { readonly kind: 'role' }
  | { readonly kind: 'refused'; readonly reason: 'expired' | 'unknown' | 'relay' };

export interface ReturnPathKey {
  /** Lower-case A-labels. */
  readonly domain: string;
  readonly key: Buffer;
}

/** What an RCPT TO address stands for at `now` (ms). */
export function feedbackRecipient({ domain, key }: ReturnPathKey, address: string, now: number): FeedbackRecipient {
  // RFC 5321 section 4.5.1: without a domain this one alone.
  if (address.toLowerCase() === 'postmaster') return { kind: 'role' };
  const parsed = parseAddress(address);
  if (parsed === null || parsed.domain !== domain) return { kind: 'refused', reason: 'relay' };
  const local = parsed.local.toLowerCase();
  if (local === 'postmaster' || local === 'abuse') return { kind: 'role' };
  const path = readReturnPath(key, parsed.local);
  if (path === null) return { kind: 'refused', reason: 'unknown' };
  return isYoung(path.day, now) ? { kind: 'return-path', id: path.id } : { kind: 'refused', reason: 'expired' };
}

function isYoung(day: number, now: number): boolean {
  const age = (Math.floor(now / DAY_MS) - day + DAYS) % DAYS;
  // A day in the future is the next one at most: another node's clock.
  return age <= MAX_RETURN_PATH_AGE_DAYS || age === DAYS - 1;
}

const TOKEN_LENGTH = 47;
const MOST_TOKENS = 50;

/**
 * The mail request whose return path stands in a report that came to a role mailbox (a feedback loop that sends to
 * `abuse@`, the original message in it), or null where there is none, an old one, or two different ones.
 */
export function findReportedMessageId({ domain, key }: ReturnPathKey, raw: Uint8Array, now: number): string | null {
  const text = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength).toString('latin1').toLowerCase();
  const ending = `@${domain}`;
  const found = new Set<string>();
  let looked = 0;
  for (let at = text.indexOf(ending); at >= 0 && looked < MOST_TOKENS; at = text.indexOf(ending, at + 1)) {
    if (at < TOKEN_LENGTH) continue;
    looked += 1;
    const path = readReturnPath(key, text.slice(at - TOKEN_LENGTH, at));
    if (path !== null && isYoung(path.day, now)) found.add(path.id);
  }
  const [id] = found;
  return id !== undefined && found.size === 1 ? id : null;
}

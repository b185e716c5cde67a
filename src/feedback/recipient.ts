/**
 * Defines the recipients that the feedback listener accepts: return paths of this installation's messages until they expire,
 * and the role mailboxes `postmaster` and `abuse` (RFC 5321 section 4.5.1, RFC 2142). The functions are deterministic.
 */

import { decodeReturnPath } from '../message/return-path.ts';
import { parseAddress } from '../model/address.ts';

const DAY_MS = 86_400_000;
/**
 * Number of days for which a return path is valid. Retries continue for a day, slow gateways report after a week, and
 * complaints arrive for several weeks.
 */
export const MAX_RETURN_PATH_AGE_DAYS = 45;
/** The day in a return path has 16 bits. */
const DAY_MODULUS = 65_536;

export type FeedbackRecipient =
  | { readonly kind: 'return-path'; readonly id: string }
  /** `postmaster` or `abuse`. Their messages are for the operator. */
  | { readonly kind: 'role' }
  | { readonly kind: 'refused'; readonly reason: 'expired' | 'unknown' | 'relay' };

export interface ReturnPathKey {
  /** Lower-case A-labels. */
  readonly domain: string;
  readonly key: Buffer;
}

/** Classifies an RCPT TO address at `now` (ms). */
export function classifyRecipient({ domain, key }: ReturnPathKey, address: string, now: number): FeedbackRecipient {
  // RFC 5321 section 4.5.1: `postmaster` is the only address without a domain.
  if (address.toLowerCase() === 'postmaster') return { kind: 'role' };
  const parsed = parseAddress(address);
  if (parsed === null || parsed.domain !== domain) return { kind: 'refused', reason: 'relay' };
  const local = parsed.localPart.toLowerCase();
  if (local === 'postmaster' || local === 'abuse') return { kind: 'role' };
  const returnPath = decodeReturnPath(key, parsed.localPart);
  if (returnPath === null) return { kind: 'refused', reason: 'unknown' };
  return isValidDay(returnPath.day, now)
    ? { kind: 'return-path', id: returnPath.id }
    : { kind: 'refused', reason: 'expired' };
}

function isValidDay(day: number, now: number): boolean {
  const age = (Math.floor(now / DAY_MS) - day + DAY_MODULUS) % DAY_MODULUS;
  // The clock of another node may be ahead by up to one day.
  return age <= MAX_RETURN_PATH_AGE_DAYS || age === DAY_MODULUS - 1;
}

const TOKEN_LENGTH = 47;
const MAX_TOKENS = 50;

/**
 * Finds the reported message in a report to a role mailbox. A feedback loop sends its reports to `abuse@` and includes the original
 * message with its return path. Returns null if the report contains no valid return path, or return paths of several messages.
 */
export function findReportedMessageId({ domain, key }: ReturnPathKey, raw: Uint8Array, now: number): string | null {
  const text = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength).toString('latin1').toLowerCase();
  const suffix = `@${domain}`;
  const found = new Set<string>();
  let checkedCount = 0;
  for (let at = text.indexOf(suffix); at >= 0 && checkedCount < MAX_TOKENS; at = text.indexOf(suffix, at + 1)) {
    if (at < TOKEN_LENGTH) continue;
    checkedCount += 1;
    const returnPath = decodeReturnPath(key, text.slice(at - TOKEN_LENGTH, at));
    if (returnPath !== null && isValidDay(returnPath.day, now)) found.add(returnPath.id);
  }
  const [id] = found;
  return id !== undefined && found.size === 1 ? id : null;
}

/**
 * Defines the recipients that the feedback listener accepts. The listener accepts unexpired return paths of this
 * installation at any domain. At the current return-path domains, it also accepts the role mailboxes `postmaster` and
 * `abuse` (RFC 5321 section 4.5.1, RFC 2142). The functions are pure.
 *
 * The signature of a return path does not cover the domain. Late bounces to a return-path domain that was changed or
 * removed are therefore accepted on every node, without a list of earlier domains. The listener relays no message, so a
 * peer gains no advantage if it combines the local part of a valid return path with any other domain.
 */

import { decodeReturnPath, RETURN_PATH_TOKEN_LENGTH, RETURN_PATH_TOKEN_PREFIX } from '../message/return-path.ts';
import { parseAddress } from '../model/address.ts';

const DAY_MS = 86_400_000;
/**
 * Number of days for which a return path is valid. Retries continue for a day, slow gateways report bounces after a
 * week, and complaints arrive for several weeks.
 */
export const MAX_RETURN_PATH_AGE_DAYS = 45;
/** A return path contains the day of acceptance, in days since the epoch, modulo this number (16 bits). */
const DAY_MODULUS = 65_536;

export type FeedbackRecipient =
  | { readonly kind: 'return-path'; readonly id: string }
  /** The recipient is `postmaster` or `abuse`, whose messages are for the operator. */
  | { readonly kind: 'role' }
  | { readonly kind: 'refused'; readonly reason: 'expired' | 'unknown' | 'relay' };

export interface ReturnPathKey {
  /** The domain of return paths, in lower-case A-labels. */
  readonly domain: string;
  readonly key: Buffer;
}

/** The return paths for which the listener accepts messages. */
export interface AcceptedReturnPaths {
  /** The key of return paths. */
  readonly key: Buffer;
  /** Returns true for a current return-path domain of this installation. `name` is in lower-case A-labels. */
  readonly isReturnPathDomain: (name: string) => boolean;
}

/** Classifies an address of RCPT TO. `now` is in milliseconds since the epoch. */
export function classifyRecipient(
  { key, isReturnPathDomain }: AcceptedReturnPaths,
  address: string,
  now: number,
): FeedbackRecipient {
  // RFC 5321 section 4.5.1: `postmaster` is the only address without a domain.
  if (address.toLowerCase() === 'postmaster') return { kind: 'role' };
  const parsedAddress = parseAddress(address);
  if (parsedAddress === null) return { kind: 'refused', reason: 'relay' };
  const returnPath = decodeReturnPath(key, parsedAddress.localPart);
  if (returnPath !== null) {
    return isValidDay(returnPath.day, now)
      ? { kind: 'return-path', id: returnPath.id }
      : { kind: 'refused', reason: 'expired' };
  }
  if (!isReturnPathDomain(parsedAddress.domain)) return { kind: 'refused', reason: 'relay' };
  const localPart = parsedAddress.localPart.toLowerCase();
  return localPart === 'postmaster' || localPart === 'abuse'
    ? { kind: 'role' }
    : { kind: 'refused', reason: 'unknown' };
}

function isValidDay(encodedDay: number, now: number): boolean {
  const ageDays = (Math.floor(now / DAY_MS) - encodedDay + DAY_MODULUS) % DAY_MODULUS;
  // The day may be one day in the future, because the clock of another node may be ahead.
  return ageDays <= MAX_RETURN_PATH_AGE_DAYS || ageDays === DAY_MODULUS - 1;
}

const MAX_TOKENS = 50;

/**
 * Finds the reported message in a report to a role mailbox. Feedback loops send reports to `abuse@` and include the
 * original message. The return path of the original message can be at any domain. Returns null if the report contains
 * no valid return path, or return paths of several messages. At most 50 possible return paths are checked.
 */
export function findReportedMessageId(
  { key }: Pick<ReturnPathKey, 'key'>,
  raw: Uint8Array,
  now: number,
): string | null {
  const text = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength).toString('latin1').toLowerCase();
  const foundIds = new Set<string>();
  let checkedCount = 0;
  for (
    let atSignIndex = text.indexOf('@');
    atSignIndex >= 0 && checkedCount < MAX_TOKENS;
    atSignIndex = text.indexOf('@', atSignIndex + 1)
  ) {
    const tokenStart = atSignIndex - RETURN_PATH_TOKEN_LENGTH;
    if (tokenStart < 0 || !text.startsWith(RETURN_PATH_TOKEN_PREFIX, tokenStart)) continue;
    checkedCount += 1;
    const returnPath = decodeReturnPath(key, text.slice(tokenStart, atSignIndex));
    if (returnPath !== null && isValidDay(returnPath.day, now)) foundIds.add(returnPath.id);
  }
  const [id] = foundIds;
  return id !== undefined && foundIds.size === 1 ? id : null;
}

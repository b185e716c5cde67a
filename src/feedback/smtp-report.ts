import { createHash } from 'node:crypto';
import { decodeReturnPath, RETURN_PATH_TOKEN_LENGTH, RETURN_PATH_TOKEN_PREFIX } from '../message/return-path.ts';
import { parseAddress } from '../model/address.ts';
import type { FeedbackEvent, FeedbackReport } from '../model/feedback.ts';
import { type Field, findFieldValue, readFields } from './read/entity.ts';
import { toOneLine } from './read/evidence.ts';

/** Any client can send to role mailboxes, so less of a report to them is stored if it is not understood. */
const MAX_STORED_BYTES = 65_536;
const MAX_STORED_ROLE_BYTES = 16_384;
const MAX_SUMMARY_LENGTH = 300;
const MAX_HEADER_BYTES = 65_536;

/** So that the sender of a report beyond the limits of the reader does not repeat it. */
export const TOO_EXPENSIVE_EVENT: FeedbackEvent = { kind: 'unknown', reason: 'too-expensive' };

interface ReceivedReport {
  readonly raw: Uint8Array;
  readonly events: readonly FeedbackEvent[];
  readonly messageRef: { readonly id: string } | null;
  readonly from: string;
}

export function createSmtpReport(
  { raw, events, messageRef, from }: ReceivedReport,
  returnPathKey: Pick<ReturnPathKey, 'key'>,
  now: number,
): FeedbackReport {
  const hasComplaint = events.some(({ kind }) => kind === 'complaint');
  const reportedId = messageRef === null && hasComplaint ? findReportedMessageId(returnPathKey, raw, now) : null;
  const messageReference = messageRef ?? (reportedId === null ? null : { id: reportedId });
  const body = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength);
  const fields = readFields(body.toString('latin1', 0, MAX_HEADER_BYTES));
  const subject = findFieldValue(fields, 'subject') ?? 'no subject';
  return {
    messageRef: messageReference,
    events,
    source: 'smtp',
    digest: computeReportDigest(body, fields, messageReference?.id ?? null, events),
    at: now,
    summary: toOneLine(`from <${from}>: ${subject}`, MAX_SUMMARY_LENGTH) ?? '',
    raw: raw.subarray(0, messageReference === null ? MAX_STORED_ROLE_BYTES : MAX_STORED_BYTES),
    isFinal: false,
  };
}

/** Without the header, whose trace fields change. Without an id, Subject and Message-ID identify the report. */
function computeReportDigest(
  body: Buffer,
  fields: readonly Field[],
  id: string | null,
  events: readonly FeedbackEvent[],
) {
  const headerEnd = body.indexOf('\r\n\r\n');
  const identity = id ?? `${findFieldValue(fields, 'message-id') ?? ''}\n${findFieldValue(fields, 'subject') ?? ''}`;
  return createHash('sha256')
    .update(`${identity}\n${JSON.stringify(events)}\n`)
    .update(headerEnd < 0 ? body : body.subarray(headerEnd))
    .digest('hex');
}

const DAY_MS = 86_400_000;
/** Retries continue for a day, slow gateways report bounces after a week, and complaints arrive for several weeks. */
export const MAX_RETURN_PATH_AGE_DAYS = 45;
/** A return path contains the day of acceptance, in days since the epoch, modulo this number (16 bits). */
const DAY_MODULUS = 65_536;

export type FeedbackRecipient =
  | { readonly kind: 'return-path'; readonly id: string }
  | { readonly kind: 'role' }
  | { readonly kind: 'refused'; readonly reason: 'expired' | 'unknown' | 'relay' };

export interface ReturnPathKey {
  readonly domain: string;
  readonly key: Buffer;
}

export interface AcceptedReturnPaths {
  readonly key: Buffer;
  /** `name` is in lower-case A-labels. */
  readonly isReturnPathDomain: (name: string) => boolean;
}

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
  // The clock of another node may be ahead.
  return ageDays <= MAX_RETURN_PATH_AGE_DAYS || ageDays === DAY_MODULUS - 1;
}

const MAX_TOKENS = 50;

/** Feedback loops send the original message with its return path. Null if there is none or several. */
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

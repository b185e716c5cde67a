/** Creates the report for the store from a message that the feedback listener received. */
import { createHash } from 'node:crypto';
import { decodeReturnPath, RETURN_PATH_TOKEN_LENGTH, RETURN_PATH_TOKEN_PREFIX } from '../message/return-path.ts';
import { parseAddress } from '../model/address.ts';
import type { FeedbackEvent, FeedbackReport } from '../model/feedback.ts';

/** Any client can send to role mailboxes, so less of a report to them is stored if it is not understood. */
const MAX_STORED_BYTES = 65_536;
const MAX_STORED_ROLE_BYTES = 16_384;
const MAX_SUMMARY_LENGTH = 300;

/** Recorded for a report that exceeds the limits of the reader, so that its sender does not repeat it. */
export const TOO_EXPENSIVE_EVENT: FeedbackEvent = { kind: 'unknown', reason: 'too-expensive' };

interface ReceivedReport {
  readonly raw: Uint8Array;
  readonly events: readonly FeedbackEvent[];
  /** The message to which the return path belongs. Null for a role mailbox. */
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
  return {
    messageRef: messageReference,
    events,
    source: 'smtp',
    digest: computeDigest(raw, messageReference?.id ?? null, events),
    at: now,
    summary: formatOneLine(`from <${from}>: ${readSubject(raw)}`),
    raw: raw.subarray(0, messageReference === null ? MAX_STORED_ROLE_BYTES : MAX_STORED_BYTES),
    isFinal: false,
  };
}

/**
 * The header is not included, because its trace fields change when the report is sent again. Without the id of the
 * message, Subject and Message-ID of the report identify it.
 */
function computeDigest(raw: Uint8Array, id: string | null, events: readonly FeedbackEvent[]): string {
  const body = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength);
  const headerEnd = body.indexOf('\r\n\r\n');
  const identity = id ?? `${readHeaderValue(raw, 'message-id')}\n${readHeaderValue(raw, 'subject')}`;
  return createHash('sha256')
    .update(`${identity}\n${JSON.stringify(events)}\n`)
    .update(headerEnd < 0 ? body : body.subarray(headerEnd))
    .digest('hex');
}

function readSubject(raw: Uint8Array): string {
  const subject = readHeaderValue(raw, 'subject');
  return subject === '' ? 'no subject' : subject;
}

/** Unfolds the value. Returns the empty string if the field is missing. */
function readHeaderValue(raw: Uint8Array, name: string): string {
  const headText = Buffer.from(raw.buffer, raw.byteOffset, Math.min(raw.byteLength, 65_536)).toString('latin1');
  const end = headText.indexOf('\r\n\r\n');
  const lines = (end < 0 ? headText : headText.slice(0, end)).split('\r\n');
  const firstLineIndex = lines.findIndex((line) => line.toLowerCase().startsWith(`${name}:`));
  if (firstLineIndex < 0) return '';
  const nextFieldOffset = lines
    .slice(firstLineIndex + 1)
    .findIndex((line) => !line.startsWith(' ') && !line.startsWith('\t'));
  const foldedLines = lines.slice(
    firstLineIndex,
    nextFieldOffset < 0 ? undefined : firstLineIndex + 1 + nextFieldOffset,
  );
  return foldedLines
    .join(' ')
    .slice(name.length + 1)
    .trim();
}

function formatOneLine(text: string): string {
  let line = '';
  for (const character of text.slice(0, MAX_SUMMARY_LENGTH)) {
    const code = character.charCodeAt(0);
    line += code < 0x20 || (code >= 0x7f && code <= 0x9f) ? ' ' : character;
  }
  return line;
}

const DAY_MS = 86_400_000;
/** Retries continue for a day, slow gateways report bounces after a week, and complaints arrive for several weeks. */
export const MAX_RETURN_PATH_AGE_DAYS = 45;
/** A return path contains the day of acceptance, in days since the epoch, modulo this number (16 bits). */
const DAY_MODULUS = 65_536;

export type FeedbackRecipient =
  | { readonly kind: 'return-path'; readonly id: string }
  /** The recipient is `postmaster` or `abuse`, whose messages are for the operator. */
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

/** `now` is in milliseconds since the epoch. */
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

/**
 * Finds the message in a report to a role mailbox, to which feedback loops send the original message with its return
 * path. Returns null if there is none, or if there are several.
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

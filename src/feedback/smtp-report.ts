/** Creates the report for the store from a message that the feedback listener received. */
import { createHash } from 'node:crypto';
import type { FeedbackEvent, FeedbackReport } from '../model/feedback.ts';
import { findReportedMessageId, type ReturnPathKey } from './recipient.ts';

/**
 * Maximum number of stored bytes of a report that is not understood. The maximum for role mailboxes is lower, because
 * any client can send to them.
 */
const MAX_STORED_BYTES = 65_536;
const MAX_STORED_ROLE_BYTES = 16_384;
const MAX_SUMMARY_LENGTH = 300;

/**
 * The event that is recorded for a report that exceeds the limits of the reader. The reply is 250, so that the sender
 * does not retry.
 */
export const TOO_EXPENSIVE_EVENT: FeedbackEvent = { kind: 'unknown', reason: 'too-expensive' };

export interface ReceivedReport {
  readonly raw: Uint8Array;
  /** The events in the report. */
  readonly events: readonly FeedbackEvent[];
  /**
   * The message to which the return path belongs. Null for a role mailbox, but the body of a complaint to a role
   * mailbox can identify the message.
   */
  readonly messageRef: { readonly id: string } | null;
  readonly from: string;
}

/** Creates the report. The cost is linear in the length of the message. */
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
 * Computes the digest of the message id, the events and the body. The header is not included, because its trace fields
 * are different when the report is sent again. If the id of the reported message is not known, the digest includes the
 * fields Subject and Message-ID of the report instead of the id.
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

/** Returns the value of Subject without decoding its encoded words. */
function readSubject(raw: Uint8Array): string {
  const subject = readHeaderValue(raw, 'subject');
  return subject === '' ? 'no subject' : subject;
}

/** Returns the unfolded value of a header field, or the empty string if the field is missing. */
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

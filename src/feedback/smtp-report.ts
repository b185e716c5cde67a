/** Builds the report for the store from a message that the feedback listener received. */
import { createHash } from 'node:crypto';
import type { FeedbackEvent, FeedbackReport } from '../model/feedback.ts';
import { findReportedMessageId, type ReturnPathKey } from './recipient.ts';

/** Maximum stored bytes of a report that is not understood. The limit for role mailboxes is lower, because any client can send to them. */
const MAX_STORED_BYTES = 65_536;
const MAX_STORED_ROLE_BYTES = 16_384;
const MAX_SUMMARY_LENGTH = 300;

/** Recorded for a report that exceeds the limits of reading. The sender gets 250, so that it does not retry. */
export const TOO_EXPENSIVE: FeedbackEvent = { kind: 'unknown', reason: 'too-expensive' };

export interface ReceivedReport {
  readonly raw: Uint8Array;
  /** The events in the report. */
  readonly events: readonly FeedbackEvent[];
  /** The message of the return path; null for a role mailbox. The body of a complaint to a role mailbox can name the message. */
  readonly messageRef: { readonly id: string } | null;
  readonly from: string;
}

/** Builds the report. The cost is linear in the length of the message. */
export function createSmtpReport(
  { raw, events, messageRef, from }: ReceivedReport,
  returnPath: ReturnPathKey,
  now: number,
): FeedbackReport {
  const hasComplaint = events.some(({ kind }) => kind === 'complaint');
  const reportedId = messageRef === null && hasComplaint ? findReportedMessageId(returnPath, raw, now) : null;
  const message = messageRef ?? (reportedId === null ? null : { id: reportedId });
  return {
    messageRef: message,
    events,
    source: 'smtp',
    digest: computeDigest(raw, message?.id ?? null, events),
    at: now,
    summary: oneLine(`from <${from}>: ${subjectLine(raw)}`),
    raw: raw.subarray(0, message === null ? MAX_STORED_ROLE_BYTES : MAX_STORED_BYTES),
    isFinal: false,
  };
}

/**
 * Computes the digest of the message id, the events and the body. Trace fields are not included, because they differ when the report
 * is sent again. Without a message id, the digest includes Subject and Message-ID.
 */
function computeDigest(raw: Uint8Array, id: string | null, events: readonly FeedbackEvent[]): string {
  const body = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength);
  const end = body.indexOf('\r\n\r\n');
  const identity = id ?? `${headerValue(raw, 'message-id')}\n${headerValue(raw, 'subject')}`;
  return createHash('sha256')
    .update(`${identity}\n${JSON.stringify(events)}\n`)
    .update(end < 0 ? body : body.subarray(end))
    .digest('hex');
}

/** Returns the raw Subject, with its encoded words. */
function subjectLine(raw: Uint8Array): string {
  const subject = headerValue(raw, 'subject');
  return subject === '' ? 'no subject' : subject;
}

/** Returns the unfolded value of a field, or the empty string when the field is missing. */
function headerValue(raw: Uint8Array, name: string): string {
  const head = Buffer.from(raw.buffer, raw.byteOffset, Math.min(raw.byteLength, 65_536)).toString('latin1');
  const end = head.indexOf('\r\n\r\n');
  const lines = (end < 0 ? head : head.slice(0, end)).split('\r\n');
  const at = lines.findIndex((line) => line.toLowerCase().startsWith(`${name}:`));
  if (at < 0) return '';
  const next = lines.slice(at + 1).findIndex((line) => !line.startsWith(' ') && !line.startsWith('\t'));
  const folded = lines.slice(at, next < 0 ? undefined : at + 1 + next);
  return folded
    .join(' ')
    .slice(name.length + 1)
    .trim();
}

function oneLine(text: string): string {
  let line = '';
  for (const character of text.slice(0, MAX_SUMMARY_LENGTH)) {
    const code = character.charCodeAt(0);
    line += code < 0x20 || (code >= 0x7f && code <= 0x9f) ? ' ' : character;
  }
  return line;
}

/** A message that the feedback listener took, as the report that goes into the store. */
import { createHash } from 'node:crypto';
import type { FeedbackReport, Notice } from '../model/feedback.ts';
import { findReportedMessageId, type ReturnPathKey } from './recipient.ts';

/** What is kept of a report that is not understood; of mail to a role mailbox, which anybody can write, less. */
const KEPT_BYTES = 65_536;
const KEPT_ROLE_BYTES = 16_384;
const LONGEST_SUMMARY = 300;

/** What is recorded of a report that took too long to read; the sender is answered 250, so that it does not retry. */
export const TOO_EXPENSIVE: Notice = { kind: 'unknown', reason: 'too-expensive' };

export interface ReceivedReport {
  readonly raw: Uint8Array;
  /** What was read in it. */
  readonly notices: readonly Notice[];
  /** What the return path stands for, null for a role mailbox: a feedback loop's report names the message within. */
  readonly about: { readonly id: string } | null;
  readonly from: string;
}

/** Linear in the length of the message. */
export function createSmtpReport(
  { raw, notices, about, from }: ReceivedReport,
  returnPath: ReturnPathKey,
  now: number,
): FeedbackReport {
  const complains = notices.some(({ kind }) => kind === 'complaint');
  const named = about === null && complains ? findReportedMessageId(returnPath, raw, now) : null;
  const mail = about ?? (named === null ? null : { id: named });
  return {
    about: mail,
    notices,
    source: 'smtp',
    digest: digestOf(raw, mail?.id ?? null, notices),
    at: now,
    summary: oneLine(`from <${from}>: ${subjectOf(raw)}`),
    raw: raw.subarray(0, mail === null ? KEPT_ROLE_BYTES : KEPT_BYTES),
    isFinal: false,
  };
}

/**
 * Over whom it is about, what was read in it, and the body: the same report sent again has other trace fields at most. Mail
 * that is about nobody is the same only where its subject and its own id are the same too.
 */
function digestOf(raw: Uint8Array, id: string | null, notices: readonly Notice[]): string {
  const body = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength);
  const end = body.indexOf('\r\n\r\n');
  const whose = id ?? `${headerOf(raw, 'message-id')}\n${headerOf(raw, 'subject')}`;
  return createHash('sha256')
    .update(`${whose}\n${JSON.stringify(notices)}\n`)
    .update(end < 0 ? body : body.subarray(end))
    .digest('hex');
}

/** The Subject as it stands there, encoded words and all; a summary is for recognising, not for reading. */
function subjectOf(raw: Uint8Array): string {
  const subject = headerOf(raw, 'subject');
  return subject === '' ? 'no subject' : subject;
}

/** A field's value, unfolded; the empty string where it is not there. */
function headerOf(raw: Uint8Array, name: string): string {
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
  let shown = '';
  for (const character of text.slice(0, LONGEST_SUMMARY)) {
    const code = character.charCodeAt(0);
    shown += code < 0x20 || (code >= 0x7f && code <= 0x9f) ? ' ' : character;
  }
  return shown;
}

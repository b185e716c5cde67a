/**
 * What a message that came back says: a feedback report (RFC 5965), a delivery status notification (RFC 3464), an automatic
 * answer (RFC 3834), a bounce in prose, or nothing that is understood. Pure; the work is linear in the message's size and
 * bounded in what is kept of it; never throws and never answers with nothing.
 */
import { textFromHtml } from '../../message/html-text.ts';
import type { Notice } from '../../model/feedback.ts';
import { readArfNotices } from './arf.ts';
import { type AuthorKind, detectAuthor, isReply } from './author.ts';
import { decodeHeaderValue } from './decode.ts';
import {
  findReportingHost,
  isDeliveryStatus,
  MAX_NOTICES,
  type ReportContext,
  readDsnNotices,
  readStatusNotices,
} from './dsn.ts';
import { type Entity, leafParts, readEntity } from './entity.ts';
import { createEvidence } from './evidence.ts';
import { createFailureClassifier, type FailureClassifier } from './failure-classifier.ts';
import { fieldValue, readFields } from './fields.ts';
import { type FreeText, type KnownAddresses, readFreeText, readFreeTextNotices } from './free-text.ts';
import { normalizeText } from './phrases.ts';
import { findAddresses } from './report-addresses.ts';

/** Octets of a message that are read: notices say what they have to say in front of the returned message. */
const LONGEST = 10 * 1_048_576;
/** Characters of the text for people. */
const LONGEST_TEXT = 131_072;
/** A gateway may put a notice into a message of its own, and another one again. */
const DEEPEST_WRAPPING = 3;
/** A gateway's own words around the notice that it sends on. */
const SHORT_TEXT = 200;

/**
 * The notices in a raw message: one for each recipient that it names, at most 100, at least one of some kind. `judgements`
 * must be new; it can be asked afterwards what was classified.
 */
export function readNotices(
  raw: Uint8Array,
  judgements: FailureClassifier = createFailureClassifier(),
): readonly Notice[] {
  const notices = readMessage(readEntity(raw.subarray(0, LONGEST)), 0, judgements);
  return withoutRepeats(notices).slice(0, MAX_NOTICES);
}

function readMessage(message: Entity, depth: number, judgements: FailureClassifier): readonly Notice[] {
  const complaints = readArfNotices(message);
  if (complaints.length > 0) return complaints;
  // A gateway that sends the notice on, and adds what it has to say behind it.
  const first = leafParts(message)[0];
  const leading = depth < DEEPEST_WRAPPING && message !== first && first?.type === 'message/rfc822' ? first : null;
  const passedOn = leading === null ? [] : readWithin(leading, depth, judgements);
  if (passedOn.length > 0) return passedOn;

  const subjectLine = decodeHeaderValue(fieldValue(message.fields, 'subject') ?? '');
  const subject = normalizeText(subjectLine);
  const speaker = detectAuthor(message, subject);
  const prose = readFreeText(textOf(message), partiesOf(message), judgements);
  const failed = findAddresses(decodeHeaderValue(fieldValue(message.fields, 'x-failed-recipients') ?? ''))
    .slice(0, MAX_NOTICES)
    .map(({ address }) => address);
  const told: ReportContext = {
    freeText: prose,
    recipients: failed.length > 0 ? failed : prose.recipients.map(({ recipient }) => recipient),
    classifier: judgements,
  };
  const reported = readDsnNotices(message, told);
  if (reported.length > 0) return reported;
  if (speaker === 'machine') return [{ kind: 'auto-reply', evidence: createEvidence(null, subjectLine, null) }];

  // Gateways write the fields of a report into a text, or lie about its type.
  const loose = speaker === 'server' ? looseNotices(message, told) : [];
  if (loose.length > 0) return loose;
  const answers = speaker === 'person' && isReply(message, subject);
  const bounces = readFreeTextNotices({
    freeText: prose,
    subject,
    author: speaker,
    isReply: answers,
    failedRecipients: failed,
    reportingHost: findReportingHost(message),
  });
  if (bounces.length > 0) return bounces;
  const wrapped = depth < DEEPEST_WRAPPING && prose.text.trim().length < SHORT_TEXT ? onlyMessageIn(message) : null;
  // One that led has been read already.
  const within = wrapped === null || wrapped === leading ? [] : readWithin(wrapped, depth, judgements);
  if (within.length > 0) return within;
  return [{ kind: 'unknown', reason: reasonOf(speaker, prose) }];
}

/** The notices of a message within a message, where it is one that tells what became of another. */
function readWithin(part: Entity, depth: number, judgements: FailureClassifier): readonly Notice[] {
  const notices = readMessage(readEntity(Buffer.from(part.octets(), 'latin1')), depth + 1, judgements);
  return notices.some(({ kind }) => kind === 'unknown' || kind === 'auto-reply') ? [] : notices;
}

/** The text for people: every text in front of the returned message, HTML only where there is nothing else. */
function textOf(message: Entity): string {
  let plain = '';
  let html = '';
  let said = false;
  for (const part of leafParts(message)) {
    // Behind the returned message stand a mailing list's lines, or a virus scanner's.
    if (isReturned(part) && (said || html !== '')) break;
    if (plain.length >= LONGEST_TEXT) break;
    if (part.type === 'text/html') html = html === '' ? part.text().slice(0, LONGEST_TEXT) : html;
    else if (part.type === 'text/plain') {
      const text = part.text().slice(0, LONGEST_TEXT);
      plain += `${text}\n`;
      said ||= text.trim() !== '';
    }
  }
  return !said && html !== '' ? textFromHtml(html) : plain;
}

function isReturned({ type }: Entity): boolean {
  return (
    type === 'message/rfc822' ||
    type === 'message/global' ||
    type === 'text/rfc822-headers' ||
    type === 'message/rfc822-headers'
  );
}

/** Whom the text cannot mean, and whom it is likely to: the notice's own addresses, and those of the returned message. */
function partiesOf(message: Entity): KnownAddresses {
  const own = ['from', 'to', 'sender', 'reply-to', 'return-path', 'errors-to'].flatMap((name) =>
    addressesOf(message, name),
  );
  const returned = leafParts(message).find(isReturned);
  const fields = returned === undefined ? [] : readFields(returned.octets());
  const within = (name: string): readonly string[] => addressesIn(fieldValue(fields, name));
  const recipients = new Set([...within('to'), ...within('cc')]);
  const senders = ['from', 'sender', 'return-path', 'reply-to'].flatMap(within);
  // Whoever writes to himself is a recipient as well.
  return { notRecipients: new Set([...own, ...senders].filter((address) => !recipients.has(address))), recipients };
}

function addressesOf(message: Entity, name: string): readonly string[] {
  return addressesIn(fieldValue(message.fields, name));
}

function addressesIn(value: string | null): readonly string[] {
  return value === null ? [] : findAddresses(decodeHeaderValue(value)).map(({ address }) => address.toLowerCase());
}

/** Whether a text has the two fields without which no report is one. */
function looksLikeStatus(part: Entity): boolean {
  if (isReturned(part) || isDeliveryStatus(part)) return false;
  const text = part.text().toLowerCase();
  return text.includes('final-recipient:') && text.includes('action:');
}

function looseNotices(message: Entity, told: ReportContext): readonly Notice[] {
  const notices: Notice[] = [];
  for (const part of leafParts(message)) {
    if (notices.length >= MAX_NOTICES) break;
    if (looksLikeStatus(part)) notices.push(...readStatusNotices(part.text(), told, MAX_NOTICES - notices.length));
  }
  return notices;
}

/** The message within a message that has nothing else to say, or null. */
function onlyMessageIn(message: Entity): Entity | null {
  const inner = leafParts(message).filter(({ type }) => type === 'message/rfc822' || type === 'message/global');
  return inner.length === 1 ? (inner[0] ?? null) : null;
}

function reasonOf(speaker: AuthorKind, prose: FreeText): string {
  if (prose.text.trim() === '') return 'it has no text, no delivery status and no feedback report';
  return speaker === 'server'
    ? 'a mail server wrote it, and nothing in it is known to say what became of a message'
    : 'it is no delivery status notification, no feedback report, no known bounce text and no automatic reply';
}

/** Some servers repeat a recipient for every attempt: what weighs the same is said once. */
function withoutRepeats(notices: readonly Notice[]): readonly Notice[] {
  const seen = new Set<string>();
  return notices.filter((notice) => {
    const key = keyOf(notice);
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}

function keyOf(notice: Notice): string {
  switch (notice.kind) {
    case 'bounce':
      return JSON.stringify([notice.kind, notice.recipient, notice.alias, notice.permanent, notice.mailboxMissing]);
    case 'complaint':
      return JSON.stringify([notice.kind, notice.recipient, notice.alias, notice.feedbackType]);
    case 'delayed':
    case 'delivered':
      return JSON.stringify([notice.kind, notice.recipient, notice.alias]);
    case 'auto-reply':
    case 'unknown':
      return notice.kind;
  }
}

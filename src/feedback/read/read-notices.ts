/**
 * Reads the notices in a received message: a feedback report (RFC 5965), a delivery status notification (RFC 3464), an automatic
 * reply (RFC 3834), a free-text bounce, or an unknown message. Pure. The cost is linear in the size of the message, and the result
 * is bounded. It never throws and returns at least one notice.
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

/** Octets of a message that are read. Reports have their content before the returned message. */
const MAX_BYTES = 10 * 1_048_576;
/** Characters of the free text. */
const MAX_TEXT_LENGTH = 131_072;
/** Gateways can wrap a bounce in another message, also repeatedly. */
const MAX_WRAPPING_DEPTH = 3;
/** Maximum text of a gateway around a forwarded bounce. */
const MAX_WRAPPER_TEXT = 200;

/**
 * Returns the notices of a raw message: one per recipient, at least one and at most 100. The classifier must be new; afterwards
 * it returns the cost.
 */
export function readNotices(
  raw: Uint8Array,
  classifier: FailureClassifier = createFailureClassifier(),
): readonly Notice[] {
  const notices = readMessage(readEntity(raw.subarray(0, MAX_BYTES)), 0, classifier);
  return withoutRepeats(notices).slice(0, MAX_NOTICES);
}

function readMessage(message: Entity, depth: number, classifier: FailureClassifier): readonly Notice[] {
  const complaints = readArfNotices(message);
  if (complaints.length > 0) return complaints;
  // A gateway can forward the bounce first and append its own text.
  const first = leafParts(message)[0];
  const leading = depth < MAX_WRAPPING_DEPTH && message !== first && first?.type === 'message/rfc822' ? first : null;
  const forwarded = leading === null ? [] : readEmbedded(leading, depth, classifier);
  if (forwarded.length > 0) return forwarded;

  const subjectLine = decodeHeaderValue(fieldValue(message.fields, 'subject') ?? '');
  const subject = normalizeText(subjectLine);
  const author = detectAuthor(message, subject);
  const freeText = readFreeText(textOf(message), knownAddressesOf(message), classifier);
  const failedRecipients = findAddresses(decodeHeaderValue(fieldValue(message.fields, 'x-failed-recipients') ?? ''))
    .slice(0, MAX_NOTICES)
    .map(({ address }) => address);
  const context: ReportContext = {
    freeText,
    recipients: failedRecipients.length > 0 ? failedRecipients : freeText.recipients.map(({ recipient }) => recipient),
    classifier,
  };
  const reported = readDsnNotices(message, context);
  if (reported.length > 0) return reported;
  if (author === 'machine') return [{ kind: 'auto-reply', evidence: createEvidence(null, subjectLine, null) }];

  // Some gateways write the fields of a report into a text part, or declare a wrong type.
  const embedded = author === 'server' ? textFieldNotices(message, context) : [];
  if (embedded.length > 0) return embedded;
  const isPersonalReply = author === 'person' && isReply(message, subject);
  const bounces = readFreeTextNotices({
    freeText,
    subject,
    author,
    isReply: isPersonalReply,
    failedRecipients,
    reportingHost: findReportingHost(message),
  });
  if (bounces.length > 0) return bounces;
  const wrapped =
    depth < MAX_WRAPPING_DEPTH && freeText.text.trim().length < MAX_WRAPPER_TEXT ? onlyMessageIn(message) : null;
  // A leading message has been read above.
  const inner = wrapped === null || wrapped === leading ? [] : readEmbedded(wrapped, depth, classifier);
  if (inner.length > 0) return inner;
  return [{ kind: 'unknown', reason: reasonOf(author, freeText) }];
}

/** Reads an embedded message. Returns no notices when it is not a bounce or complaint. */
function readEmbedded(part: Entity, depth: number, classifier: FailureClassifier): readonly Notice[] {
  const notices = readMessage(readEntity(Buffer.from(part.octets(), 'latin1')), depth + 1, classifier);
  return notices.some(({ kind }) => kind === 'unknown' || kind === 'auto-reply') ? [] : notices;
}

/** Returns the free text before the returned message; HTML is used only without plain text. */
function textOf(message: Entity): string {
  let plain = '';
  let html = '';
  let hasText = false;
  for (const part of leafParts(message)) {
    // Text after the returned message is from mailing lists or virus scanners.
    if (isReturned(part) && (hasText || html !== '')) break;
    if (plain.length >= MAX_TEXT_LENGTH) break;
    if (part.type === 'text/html') html = html === '' ? part.text().slice(0, MAX_TEXT_LENGTH) : html;
    else if (part.type === 'text/plain') {
      const text = part.text().slice(0, MAX_TEXT_LENGTH);
      plain += `${text}\n`;
      hasText ||= text.trim() !== '';
    }
  }
  return !hasText && html !== '' ? textFromHtml(html) : plain;
}

function isReturned({ type }: Entity): boolean {
  return (
    type === 'message/rfc822' ||
    type === 'message/global' ||
    type === 'text/rfc822-headers' ||
    type === 'message/rfc822-headers'
  );
}

/** Collects the addresses in the headers of the message and of the returned message. */
function knownAddressesOf(message: Entity): KnownAddresses {
  const own = ['from', 'to', 'sender', 'reply-to', 'return-path', 'errors-to'].flatMap((name) =>
    addressesOf(message, name),
  );
  const returned = leafParts(message).find(isReturned);
  const fields = returned === undefined ? [] : readFields(returned.octets());
  const inner = (name: string): readonly string[] => addressesIn(fieldValue(fields, name));
  const recipients = new Set([...inner('to'), ...inner('cc')]);
  const senders = ['from', 'sender', 'return-path', 'reply-to'].flatMap(inner);
  // A sender who is also a recipient stays a recipient.
  return { notRecipients: new Set([...own, ...senders].filter((address) => !recipients.has(address))), recipients };
}

function addressesOf(message: Entity, name: string): readonly string[] {
  return addressesIn(fieldValue(message.fields, name));
}

function addressesIn(value: string | null): readonly string[] {
  return value === null ? [] : findAddresses(decodeHeaderValue(value)).map(({ address }) => address.toLowerCase());
}

/** True when a text part contains the two required fields of a report. */
function looksLikeStatus(part: Entity): boolean {
  if (isReturned(part) || isDeliveryStatus(part)) return false;
  const text = part.text().toLowerCase();
  return text.includes('final-recipient:') && text.includes('action:');
}

function textFieldNotices(message: Entity, context: ReportContext): readonly Notice[] {
  const notices: Notice[] = [];
  for (const part of leafParts(message)) {
    if (notices.length >= MAX_NOTICES) break;
    if (looksLikeStatus(part)) notices.push(...readStatusNotices(part.text(), context, MAX_NOTICES - notices.length));
  }
  return notices;
}

/** Returns the only embedded message, or null. */
function onlyMessageIn(message: Entity): Entity | null {
  const inner = leafParts(message).filter(({ type }) => type === 'message/rfc822' || type === 'message/global');
  return inner.length === 1 ? (inner[0] ?? null) : null;
}

function reasonOf(author: AuthorKind, freeText: FreeText): string {
  if (freeText.text.trim() === '') return 'the message has no text, no delivery status and no feedback report';
  return author === 'server'
    ? 'the message is from a mail server, but its text contains no known delivery result'
    : 'the message is not a delivery status notification, a feedback report, a known bounce text or an automatic reply';
}

/** Removes equal notices, because some servers repeat a recipient for every attempt. */
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

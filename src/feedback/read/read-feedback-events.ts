/** RFC 5965, RFC 3464, RFC 3834, free text, or unknown; none for a person’s answer. Never throws; linear cost. */

import { containsPhrase, normalizeText } from '../../classify/phrases.ts';
import { convertHtmlToText } from '../../message/html-text.ts';
import type { FeedbackEvent } from '../../model/feedback.ts';
import { decodeHeaderValue } from './decode.ts';
import { createDiagnose, type Diagnose } from './diagnosis.ts';
import { findReportingHost, MAX_EVENTS, type ReportContext, readDsnEvents, readStatusEvents } from './dsn.ts';
import {
  type Entity,
  type Field,
  findFieldValue,
  isDeliveryStatus,
  listLeafParts,
  readEntity,
  readFieldGroups,
  readFields,
} from './entity.ts';
import { createEvidence, parseFieldAddress, stripType } from './evidence.ts';
import { type AuthorKind, type FreeText, type KnownAddresses, readFreeText, readFreeTextEvents } from './free-text.ts';
import {
  AUTO_REPLY_FIELDS,
  AUTO_REPLY_PRECEDENCE,
  AUTO_REPLY_SUBJECTS,
  DAEMON_MAILBOXES,
  DELAY_PHRASES,
  FAILURE_PHRASES,
  REPLY_PREFIXES,
  SERVER_SENDERS,
} from './phrases.ts';
import { findAddresses } from './report-addresses.ts';

/** The content of a report precedes the returned message. */
const MAX_BYTES = 10 * 1_048_576;
const MAX_TEXT_LENGTH = 131_072;
/** Gateways can wrap a bounce more than once. */
const MAX_WRAPPING_DEPTH = 3;
/** A shorter subject can be a part of other words. */
const MIN_SUBJECT_LENGTH = 8;
/** What a gateway adds to a forwarded bounce. */
const MAX_WRAPPER_TEXT_LENGTH = 200;

/** At most 100, one for each recipient. The first Return-Path field is the envelope sender. */
export function readFeedbackEvents(raw: Uint8Array, diagnose: Diagnose = createDiagnose()): readonly FeedbackEvent[] {
  const events = readMessage(readEntity(raw.subarray(0, MAX_BYTES)), 0, diagnose);
  return removeDuplicates(events).slice(0, MAX_EVENTS);
}

function readMessage(message: Entity, depth: number, diagnose: Diagnose): readonly FeedbackEvent[] {
  const complaintEvents = readArfEvents(message);
  if (complaintEvents.length > 0) return complaintEvents;
  // A gateway can append its own text.
  const firstLeaf = listLeafParts(message)[0];
  const leadingMessage =
    depth < MAX_WRAPPING_DEPTH && message !== firstLeaf && firstLeaf?.type === 'message/rfc822' ? firstLeaf : null;
  const forwardedEvents = leadingMessage === null ? [] : readEmbedded(leadingMessage, depth, diagnose);
  if (forwardedEvents.length > 0) return forwardedEvents;

  const subjectLine = decodeHeaderValue(findFieldValue(message.fields, 'subject') ?? '');
  const subject = normalizeText(subjectLine);
  const author = detectAuthor(message, subject);
  const text = removeReportedSubject(readText(message), message);
  const freeText = readFreeText(text, collectKnownAddresses(message), diagnose);
  const failedRecipients = findAddresses(decodeHeaderValue(findFieldValue(message.fields, 'x-failed-recipients') ?? ''))
    .slice(0, MAX_EVENTS)
    .map(({ address }) => address);
  const context: ReportContext = {
    freeText,
    recipients: failedRecipients.length > 0 ? failedRecipients : freeText.recipients.map(({ recipient }) => recipient),
    diagnose,
  };
  const dsnEvents = readDsnEvents(message, context);
  if (dsnEvents.length > 0) return dsnEvents;
  if (author === 'machine') return [{ kind: 'auto-reply', evidence: createEvidence(null, subjectLine, null) }];

  // Some gateways write the fields of a report into a text part, or declare a wrong media type.
  const textFieldEvents = author === 'server' ? readTextFieldEvents(message, context) : [];
  if (textFieldEvents.length > 0) return textFieldEvents;
  // RFC 5321 section 4.5.5: the sender of a report is null.
  if (author === 'person' && depth === 0 && findFieldValue(message.fields, 'return-path') !== null) return [];
  const isPersonalReply = author === 'person' && isReply(message, subject);
  const bounceEvents = readFreeTextEvents({
    freeText,
    subject,
    author,
    isReply: isPersonalReply,
    failedRecipients,
    reportingHost: findReportingHost(message),
  });
  if (bounceEvents.length > 0) return bounceEvents;
  const wrappedMessage =
    depth < MAX_WRAPPING_DEPTH && freeText.text.trim().length < MAX_WRAPPER_TEXT_LENGTH
      ? findOnlyMessage(message)
      : null;
  const wrappedEvents =
    wrappedMessage === null || wrappedMessage === leadingMessage ? [] : readEmbedded(wrappedMessage, depth, diagnose);
  if (wrappedEvents.length > 0) return wrappedEvents;
  return [{ kind: 'unknown', reason: describeUnknownMessage(author, freeText) }];
}

function readEmbedded(part: Entity, depth: number, diagnose: Diagnose): readonly FeedbackEvent[] {
  const events = readMessage(readEntity(Buffer.from(part.decodeOctets(), 'latin1')), depth + 1, diagnose);
  return events.some(({ kind }) => kind === 'unknown' || kind === 'auto-reply') ? [] : events;
}

/** HTML counts only if there is no plain text. */
function readText(message: Entity): string {
  let plainText = '';
  let html = '';
  let hasText = false;
  for (const part of listLeafParts(message)) {
    // What follows was added by a mailing list or a virus scanner.
    if (isReturnedMessage(part) && (hasText || html !== '')) break;
    if (plainText.length >= MAX_TEXT_LENGTH) break;
    if (part.type === 'text/html') html = html === '' ? part.decodeText().slice(0, MAX_TEXT_LENGTH) : html;
    else if (part.type === 'text/plain') {
      const text = part.decodeText().slice(0, MAX_TEXT_LENGTH);
      plainText += `${text}\n`;
      hasText ||= text.trim() !== '';
    }
  }
  return !hasText && html !== '' ? convertHtmlToText(html) : plainText;
}

function isReturnedMessage({ type }: Entity): boolean {
  return (
    type === 'message/rfc822' ||
    type === 'message/global' ||
    type === 'text/rfc822-headers' ||
    type === 'message/rfc822-headers'
  );
}

/** The text may quote the subject, which says nothing about the failure. */
function removeReportedSubject(text: string, message: Entity): string {
  const returnedMessage = listLeafParts(message).find(isReturnedMessage);
  if (returnedMessage === undefined) return text;
  const fields = readFields(returnedMessage.decodeOctets());
  const subject = decodeHeaderValue(findFieldValue(fields, 'subject') ?? '').trim();
  return subject.length < MIN_SUBJECT_LENGTH ? text : text.replaceAll(subject, '');
}

function collectKnownAddresses(message: Entity): KnownAddresses {
  const ownAddresses = ['from', 'to', 'sender', 'reply-to', 'return-path', 'errors-to'].flatMap((name) =>
    readHeaderAddresses(message, name),
  );
  const returnedMessage = listLeafParts(message).find(isReturnedMessage);
  const fields = returnedMessage === undefined ? [] : readFields(returnedMessage.decodeOctets());
  const readReturnedAddresses = (name: string): readonly string[] => parseAddresses(findFieldValue(fields, name));
  const recipients = new Set([...readReturnedAddresses('to'), ...readReturnedAddresses('cc')]);
  const senders = ['from', 'sender', 'return-path', 'reply-to'].flatMap(readReturnedAddresses);
  // An address that is both a sender and a recipient counts as a recipient.
  return {
    notRecipients: new Set([...ownAddresses, ...senders].filter((address) => !recipients.has(address))),
    recipients,
  };
}

function readHeaderAddresses(message: Entity, name: string): readonly string[] {
  return parseAddresses(findFieldValue(message.fields, name));
}

function parseAddresses(value: string | null): readonly string[] {
  return value === null ? [] : findAddresses(decodeHeaderValue(value)).map(({ address }) => address.toLowerCase());
}

function hasStatusFields(part: Entity): boolean {
  if (isReturnedMessage(part) || isDeliveryStatus(part)) return false;
  const text = part.decodeText().toLowerCase();
  return text.includes('final-recipient:') && text.includes('action:');
}

function readTextFieldEvents(message: Entity, context: ReportContext): readonly FeedbackEvent[] {
  const events: FeedbackEvent[] = [];
  for (const part of listLeafParts(message)) {
    if (events.length >= MAX_EVENTS) break;
    if (hasStatusFields(part)) events.push(...readStatusEvents(part.decodeText(), context, MAX_EVENTS - events.length));
  }
  return events;
}

function findOnlyMessage(message: Entity): Entity | null {
  const embeddedMessages = listLeafParts(message).filter(
    ({ type }) => type === 'message/rfc822' || type === 'message/global',
  );
  return embeddedMessages.length === 1 ? (embeddedMessages[0] ?? null) : null;
}

function describeUnknownMessage(author: AuthorKind, freeText: FreeText): string {
  if (freeText.text.trim() === '') return 'the message contains no text, no delivery status and no feedback report';
  return author === 'server'
    ? 'the message is from a mail server, but its text contains no known delivery result'
    : 'the message is not a delivery status notification, a feedback report, a known bounce text or an automatic reply';
}

/** Some servers repeat a recipient for every attempt. */
function removeDuplicates(events: readonly FeedbackEvent[]): readonly FeedbackEvent[] {
  const seenKeys = new Set<string>();
  return events.filter((event) => {
    const key = createEventKey(event);
    if (seenKeys.has(key)) return false;
    seenKeys.add(key);
    return true;
  });
}

function createEventKey(event: FeedbackEvent): string {
  if (event.kind === 'auto-reply' || event.kind === 'unknown') return event.kind;
  const details =
    event.kind === 'bounce'
      ? [event.permanent, event.failure.class === 'hard']
      : event.kind === 'complaint'
        ? event.feedbackType
        : null;
  return JSON.stringify([event.kind, event.recipient, event.alias, details]);
}

const MAX_RECIPIENTS = 100;
const MAX_TYPE_LENGTH = 40;
const MAX_SCANNED_LENGTH = 8_192;

/** The registered type, and those with which gateways replace it. */
const REPORT_TYPES: readonly string[] = [
  'message/feedback-report',
  'text/feedback-report',
  'application/feedback-report',
];

function readArfEvents(message: Entity): readonly FeedbackEvent[] {
  for (const part of listLeafParts(message)) {
    const fields = findReportFields(part);
    const feedbackType = parseFeedbackType(findFieldValue(fields, 'feedback-type'));
    // RFC 5965 section 3.1 requires the field Feedback-Type.
    if (feedbackType === null) continue;
    const evidence = createEvidence(null, buildDiagnostic(fields), readReportingHost(fields, message));
    return readRecipients(fields).map((recipient) => ({
      kind: 'complaint',
      feedbackType,
      recipient,
      alias: null,
      evidence,
    }));
  }
  return readOutlookComplaints(message);
}

/** Of a report part, or of a text that begins with the three required fields of section 3.1. */
function findReportFields(part: Entity): readonly Field[] {
  if (REPORT_TYPES.includes(part.type)) return readFieldGroups(part.decodeText()).flat();
  if (part.type !== 'text/plain') return [];
  const [firstGroup = []] = readFieldGroups(part.decodeText().slice(0, MAX_SCANNED_LENGTH));
  return ['feedback-type', 'user-agent', 'version'].every((name) => findFieldValue(firstGroup, name) !== null)
    ? firstGroup
    : [];
}

/**
 * Outlook.com (JMRP, https://sendersupport.olc.protection.outlook.com/snds/) names the recipient in an extra field of
 * the original.
 */
function readOutlookComplaints(message: Entity): readonly FeedbackEvent[] {
  for (const part of listLeafParts(message)) {
    if (part.type !== 'message/rfc822') continue;
    const value = findFieldValue(readFields(part.decodeOctets()), 'x-hmxmroriginalrecipient');
    if (value === null) continue;
    const evidence = createEvidence(null, findFieldValue(message.fields, 'subject'), readReportingHost([], message));
    return [
      { kind: 'complaint', feedbackType: 'abuse', recipient: parseFieldAddress(value, true), alias: null, evidence },
    ];
  }
  return [];
}

/** The token of Feedback-Type (RFC 5965 section 3.5), without comments and text after a space. */
function parseFeedbackType(value: string | null): string | null {
  const token = value?.trim().toLowerCase().split(' ')[0]?.split('(')[0]?.split(';')[0] ?? '';
  if (token === '' || token.length > MAX_TYPE_LENGTH) return null;
  // Some write `not_spam` and `opt_out`.
  return isToken(token) ? token.replaceAll('_', '-') : null;
}

function isToken(text: string): boolean {
  for (let i = 0; i < text.length; i += 1) if (text.charCodeAt(i) <= 0x20 || text.charCodeAt(i) >= 0x7f) return false;
  return true;
}

/** RFC 5965 section 3.2 defines the first field. Some reporters use others. */
const RECIPIENT_FIELD_NAMES: readonly string[] = [
  'original-rcpt-to',
  'original-recipient',
  'x-original-to',
  'removal-recipient',
];

function readRecipients(fields: readonly Field[]): readonly (string | null)[] {
  for (const fieldName of RECIPIENT_FIELD_NAMES) {
    const recipients = fields
      .filter(({ name }) => name === fieldName)
      .flatMap(({ value }) => parseFieldAddress(value, true) ?? []);
    if (recipients.length > 0) return [...new Set(recipients)].slice(0, MAX_RECIPIENTS);
  }
  return [null];
}

function buildDiagnostic(fields: readonly Field[]): string | null {
  const userAgent = findFieldValue(fields, 'user-agent');
  const sourceAddress = findFieldValue(fields, 'source-ip');
  const diagnosticParts = [userAgent, sourceAddress === null ? null : `source ${sourceAddress}`].filter(
    (part) => part !== null,
  );
  return diagnosticParts.length === 0 ? null : diagnosticParts.join(', ');
}

/** RFC 5965 section 3.2, or the domain of the author. */
function readReportingHost(fields: readonly Field[], message: Entity): string | null {
  const reportingMta = findFieldValue(fields, 'reporting-mta');
  if (reportingMta !== null) return stripType(reportingMta);
  const authorAddress = parseFieldAddress(findFieldValue(message.fields, 'from') ?? '', true);
  return authorAddress === null ? null : authorAddress.slice(authorAddress.lastIndexOf('@') + 1);
}

function isReply({ fields }: Entity, subject: string): boolean {
  return (
    REPLY_PREFIXES.some((prefix) => subject.startsWith(prefix)) ||
    findFieldValue(fields, 'in-reply-to') !== null ||
    findFieldValue(fields, 'references') !== null
  );
}

/** An answer repeats the subject that it answers, and the name of its sender proves nothing: fields decide. */
function detectAuthor(message: Entity, subject: string): AuthorKind {
  const parts = listLeafParts(message);
  // RFC 8098: the mail client of the recipient reports that the message was displayed or deleted.
  if (parts.some(({ type }) => type === 'message/disposition-notification')) return 'machine';
  if (hasField(message, AUTO_REPLY_FIELDS)) return 'machine';
  if (parts.some(isDeliveryStatus) || isFailureReport(message)) return 'server';
  const isAnswer = isReply(message, subject);
  if (isFromDaemon(message) && !(isAnswer && isAutomatic(message))) return 'server';
  if (isAutomatic(message) || beginsLikeAutoReply(subject)) return 'machine';
  // RFC 5321 section 4.5.5: bounces and most automatic replies have the null return path, a person's answer has not.
  const returnPath = findFieldValue(message.fields, 'return-path');
  if (isAnswer) return returnPath === '<>' ? 'machine' : 'person';
  const isBounce = containsPhrase(subject, FAILURE_PHRASES) || containsPhrase(subject, DELAY_PHRASES);
  if (containsPhrase(subject, AUTO_REPLY_SUBJECTS) && !isBounce) return 'machine';
  if (returnPath !== null && returnPath !== '<>') return 'person';
  const fromField = findFieldValue(message.fields, 'from')?.toLowerCase() ?? '';
  const hasServerName = SERVER_SENDERS.some((name) => fromField.includes(name));
  return hasServerName || isBounce || returnPath === '<>' ? 'server' : 'person';
}

function isFailureReport(message: Entity): boolean {
  return (
    message.parameters.get('report-type')?.toLowerCase() === 'delivery-status' ||
    findFieldValue(message.fields, 'x-failed-recipients') !== null
  );
}

/** Some servers send bounces without an author. */
function isFromDaemon({ fields }: Entity): boolean {
  const from = decodeHeaderValue(findFieldValue(fields, 'from') ?? '').toLowerCase();
  const address = from.slice(from.lastIndexOf('<') + 1).trim();
  return address === '' || address.startsWith('>') || DAEMON_MAILBOXES.some((name) => address.startsWith(name));
}

/** RFC 3834 section 5. Microsoft writes `auto-generated`. Mail servers use both values in bounces too. */
function isAutomatic(message: Entity): boolean {
  const autoSubmitted = findFieldValue(message.fields, 'auto-submitted')?.toLowerCase() ?? '';
  if (autoSubmitted.startsWith('auto-replied')) return true;
  if (autoSubmitted.startsWith('auto-generated') && hasField(message, ANSWER_FIELDS)) return true;
  return AUTO_REPLY_PRECEDENCE.includes(findFieldValue(message.fields, 'precedence')?.toLowerCase() ?? '');
}

const ANSWER_FIELDS: readonly string[] = ['x-auto-response-suppress', 'in-reply-to', 'references'];

function hasField({ fields }: Entity, names: readonly string[]): boolean {
  return names.some((name) => findFieldValue(fields, name) !== null);
}

/** `Automatic reply: …`: what follows the colon is the subject of another message. */
function beginsLikeAutoReply(subject: string): boolean {
  const colonIndex = subject.replaceAll('：', ':').indexOf(':');
  return colonIndex > 0 && containsPhrase(subject.slice(0, colonIndex + 1), AUTO_REPLY_SUBJECTS);
}

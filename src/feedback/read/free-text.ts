/**
 * Reads free-text bounce messages: the text before the returned message, the failed recipients in it, and the cause for each
 * recipient. The phrases are in separate data files. The result is empty if the message is not a bounce.
 */
import type { FeedbackEvent } from '../../model/feedback.ts';
import type { AuthorKind } from './author.ts';
import type { FailureClassification } from './classify-failure.ts';
import { findEnhancedStatus, findReplyCode } from './codes.ts';
import { createEvidence } from './evidence.ts';
import type { FailureClassifier } from './failure-classifier.ts';
import { DELAY_PHRASES, FAILURE_PHRASES, FINAL_FAILURE_PHRASES, QUOTED_HEADER_PREFIXES } from './kind-phrases.ts';
import { RETURNED_MESSAGE_FIELDS, RETURNED_MESSAGE_HEADINGS } from './layout-phrases.ts';
import { containsPhrase, normalizeText } from './phrases.ts';
import { type FoundAddress, findAddresses } from './report-addresses.ts';

const MAX_RECIPIENTS = 100;
/** Maximum number of characters of the text before the returned message. */
const MAX_LENGTH = 32_768;
/** Maximum number of characters that are classified for one recipient, and for all recipients. */
const MAX_SECTION_LENGTH = 2_000;
const MAX_TEXT_LENGTH = 6_000;
/** A longer line is not a heading. */
const MAX_HEADING_LENGTH = 120;

/** A failed recipient that the text names, and its second address (alias). */
export interface FreeTextRecipient {
  readonly recipient: string;
  readonly alias: string | null;
}

/** A parsed free text: its failed recipients, and the cause for each. */
export interface FreeText {
  readonly text: string;
  readonly recipients: readonly FreeTextRecipient[];
  /**
   * Classifies the failure of this recipient. If the text does not name the recipient, classifies the failure of all
   * recipients.
   */
  readonly classify: (recipient: string | null, status: string | null) => FailureClassification;
  /** Returns the text about this recipient. */
  readonly section: (recipient: string | null) => string;
}

/** Addresses in the headers of the bounce and of the returned message, in lower case. */
export interface KnownAddresses {
  /** Addresses that cannot be the failed recipient, such as the sender of the bounce. */
  readonly notRecipients: ReadonlySet<string>;
  /** Recipients in the header of the returned message. */
  readonly recipients: ReadonlySet<string>;
}

/** Parses the text of a bounce. Failures are classified on demand by the classifier of the report. */
export function readFreeText(text: string, knownAddresses: KnownAddresses, classifier: FailureClassifier): FreeText {
  const body = removeHeaderLines(textBeforeReturnedMessage(text.slice(0, 4 * MAX_LENGTH)).slice(0, MAX_LENGTH));
  const found = findAddresses(body).filter(
    ({ address, role }) => role !== 'other' && !knownAddresses.notRecipients.has(address.toLowerCase()),
  );
  const sections = findSections(body, selectRecipients(found, knownAddresses.recipients));
  const excerpt = body.slice(0, MAX_TEXT_LENGTH);
  const leadingText = body.slice(
    0,
    Math.min(MAX_TEXT_LENGTH, Math.min(...[...sections.values()].map(({ from }) => from), body.length)),
  );
  const findSection = (recipient: string | null): Section | undefined => sections.get(recipient?.toLowerCase() ?? '');
  return {
    text: body,
    recipients: [...sections.values()].slice(0, MAX_RECIPIENTS).map(({ address, originalAddress: origin }) => ({
      recipient: origin ?? address,
      alias: origin === null ? null : address,
    })),
    classify: (recipient, status) => {
      const section = findSection(recipient);
      const sectionResult = classifier.classify(section?.reason ?? section?.text ?? '', status);
      if (sectionResult.known) return sectionResult;
      // Text about one recipient does not apply to the others. Text before the first recipient applies to all.
      return classifier.classify(sections.size > 1 ? leadingText : excerpt, status);
    },
    section: (recipient) => {
      const section = findSection(recipient);
      const sectionText = section === undefined ? '' : section.text + (section.reason ?? '');
      return sectionText.trim() === '' ? excerpt : sectionText;
    },
  };
}

/**
 * Selects the failed recipients: those that the text names, else those of the returned message, else the only address in the
 * text.
 */
function selectRecipients(found: readonly FoundAddress[], recipients: ReadonlySet<string>): readonly FoundAddress[] {
  const named = found.filter(({ role }) => role === 'named' || role === 'origin');
  if (named.length > 0) return named;
  const sentTo = found.filter(({ address }) => recipients.has(address.toLowerCase()));
  if (sentTo.length > 0) return sentTo;
  return new Set(found.map(({ address }) => address.toLowerCase())).size === 1 ? found : [];
}

export interface FreeTextReport {
  readonly freeText: FreeText;
  /** Normalized by `normalizeText`. */
  readonly subject: string;
  readonly author: AuthorKind;
  /** True if the message is a reply of a person. */
  readonly isReply: boolean;
  /** Failed recipients in a header field of the bounce. */
  readonly failedRecipients: readonly string[];
  readonly reportingHost: string | null;
}

/** Returns the events of the text; empty if the message is not a bounce. */
export function readFreeTextEvents(report: FreeTextReport): readonly FeedbackEvent[] {
  const { freeText, subject, author, isReply, failedRecipients, reportingHost } = report;
  const text = normalizeText(freeText.text);
  // A server with an unusual sender name includes a code, and its message is not a reply.
  const hasCode =
    !isReply &&
    containsPhrase(text, FAILURE_PHRASES) &&
    (findEnhancedStatus(freeText.text) !== null || findReplyCode(freeText.text) !== null);
  if (author !== 'server' && !hasCode) return [];
  const isDelay =
    (containsPhrase(subject, DELAY_PHRASES) || containsPhrase(text, DELAY_PHRASES)) &&
    !containsPhrase(subject, FINAL_FAILURE_PHRASES) &&
    !containsPhrase(text, FINAL_FAILURE_PHRASES);
  // A server message with a known cause is a bounce, even without a failure phrase.
  const isBounce =
    isDelay ||
    containsPhrase(subject, FAILURE_PHRASES) ||
    containsPhrase(text, FAILURE_PHRASES) ||
    freeText.classify(null, null).known;
  if (!isBounce) return [];
  const named =
    failedRecipients.length > 0
      ? failedRecipients.map((recipient) => ({ recipient, alias: null }))
      : freeText.recipients;
  const targets = named.length > 0 ? named : [{ recipient: null, alias: null }];
  return targets.slice(0, MAX_RECIPIENTS).map(({ recipient, alias }) => {
    const sectionText = freeText.section(alias ?? recipient);
    const evidence = createEvidence(findEnhancedStatus(sectionText), sectionText, reportingHost);
    if (isDelay && !isFinal(sectionText)) return { kind: 'delayed', recipient, alias, evidence };
    const { permanent, mailboxMissing } = freeText.classify(alias ?? recipient, null);
    return { kind: 'bounce', recipient, alias, evidence, permanent, mailboxMissing };
  });
}

/** Returns true if the code in the text is permanent. */
function isFinal(text: string): boolean {
  const reply = findReplyCode(text);
  if (reply !== null) return reply.code >= 500 && findEnhancedStatus(text)?.startsWith('4.') !== true;
  return findEnhancedStatus(text)?.startsWith('5.') === true;
}

interface Section {
  readonly address: string;
  readonly from: number;
  originalAddress: string | null;
  text: string;
  /** The shared reason of a list of addresses, when the text of this address contains none. */
  reason: string | null;
}

/** Collects for each address the text from its lines up to the line of the next address. */
function findSections(body: string, found: readonly FoundAddress[]): ReadonlyMap<string, Section> {
  const sections = new Map<string, Section>();
  let last: Section | null = null;
  for (const [index, { address, lineStart: lineAt, at, role }] of found.entries()) {
    const before = found[index - 1];
    const start = before !== undefined && before.lineStart === lineAt ? at : lineAt;
    const next = found[index + 1];
    const end = next === undefined ? body.length : next.lineStart === lineAt ? next.at : next.lineStart;
    const text = body.slice(start, Math.min(end, start + MAX_SECTION_LENGTH));
    if (role === 'origin' && last !== null && last.originalAddress === null) {
      if (last.address.toLowerCase() !== address.toLowerCase()) last.originalAddress = address;
      last.text += `${text}\n`;
      continue;
    }
    const key = address.toLowerCase();
    const section: Section = sections.get(key) ?? {
      address,
      from: lineAt,
      originalAddress: null,
      text: '',
      reason: null,
    };
    if (section.text.length < MAX_SECTION_LENGTH) section.text += `${text}\n`;
    sections.set(key, section);
    last = section;
  }
  shareReasons([...sections.values()]);
  return sections;
}

/** Assigns the reason after a list of addresses to every address of the list. */
function shareReasons(sections: readonly Section[]): void {
  let reason: string | null = null;
  for (const section of [...sections].reverse()) {
    if (hasOnlyAddresses(section.text)) section.reason = reason;
    else reason = section.text;
  }
}

/** Returns true when the text contains nothing but addresses. */
function hasOnlyAddresses(text: string): boolean {
  const normalized = normalizeText(text);
  for (let i = 0; i < normalized.length; i += 1) {
    const c = normalized.charCodeAt(i);
    if ((c >= 0x61 && c <= 0x7a) || (c >= 0x30 && c <= 0x39) || c >= 0xc0) return false;
  }
  return true;
}

/** Removes quoted header lines and their continuation lines. */
function removeHeaderLines(text: string): string {
  let isHeaderLine = false;
  const lines = text.split('\n').filter((line) => {
    const unquoted = line.replaceAll('>', ' ');
    const content = unquoted.trim().toLowerCase();
    const isContinuation =
      isHeaderLine && content !== '' && (unquoted.startsWith('\t') || unquoted.startsWith('      '));
    isHeaderLine = isContinuation || QUOTED_HEADER_PREFIXES.some((name) => content.startsWith(name));
    return !isHeaderLine;
  });
  return lines.join('\n');
}

/** Returns the text before the returned message, which begins with a heading or with its header. */
function textBeforeReturnedMessage(text: string): string {
  let at = 0;
  let hasText = false;
  for (const line of text.split('\n')) {
    if (at >= MAX_LENGTH) break;
    const lineStart = line
      .trim()
      .toLowerCase()
      .slice(0, MAX_HEADING_LENGTH + 1);
    if (hasText && RETURNED_MESSAGE_FIELDS.some((field) => lineStart.startsWith(field))) return text.slice(0, at);
    if (lineStart.length <= MAX_HEADING_LENGTH && isHeading(lineStart)) return text.slice(0, at);
    hasText ||= lineStart !== '';
    at += line.length + 1;
  }
  return text;
}

/** Returns true for `--- Original message follows ---` and `Copy of the message:`, but not for a sentence about a message. */
function isHeading(line: string): boolean {
  const hasMark = HEADING_MARKS.some((mark) => line.startsWith(mark));
  const unmarked = removeMarks(line);
  if (unmarked === '') return false;
  if (hasMark) return includesAny(unmarked, RETURNED_MESSAGE_HEADINGS) && !includesAny(unmarked, REPORT_HEADINGS);
  const withoutLeadIn = removeLeadIn(unmarked);
  const isShort = unmarked.split(' ').length <= 6;
  return RETURNED_MESSAGE_HEADINGS.some(
    (heading) =>
      (withoutLeadIn.startsWith(heading) && hasHeadingEnd(line)) ||
      (isShort && unmarked.endsWith(heading) && line.endsWith(':')),
  );
}

function includesAny(line: string, phrases: readonly string[]): boolean {
  return phrases.some((phrase) => line.includes(phrase));
}

/** Returns `copy of …` for `This is a copy of …`. */
function removeLeadIn(line: string): string {
  const leadInFound = HEADING_LEAD_INS.find((leadIn) => line.startsWith(leadIn));
  return leadInFound === undefined ? line : line.slice(leadInFound.length);
}

const HEADING_LEAD_INS: readonly string[] = [
  'this is a ',
  'here is a ',
  'below is a ',
  'included is a ',
  'a ',
  'the ',
  'your ',
];
const HEADING_MARKS: readonly string[] = ['--', '==', '**', '__', '>>', '##', '++', '~~', '|--', '|==', '- -', '<<'];
/** Headings that have the same marks but introduce the report, not the returned message. */
const REPORT_HEADINGS: readonly string[] = [
  'transcript',
  'message log',
  'message from',
  'not delivered',
  'failed',
  'session',
  'error',
];

function hasHeadingEnd(line: string): boolean {
  return (
    line.endsWith(':') || line.endsWith('：') || line.endsWith('.') || line.endsWith('follows') || line.endsWith('-')
  );
}

function removeMarks(line: string): string {
  let from = 0;
  let to = line.length;
  while (from < to && MARK_CHARACTERS.includes(line.charAt(from))) from += 1;
  while (to > from && MARK_CHARACTERS.includes(line.charAt(to - 1))) to -= 1;
  return line.slice(from, to).trim();
}

const MARK_CHARACTERS = '-=*_>#+~|<:. \t：';

import { containsPhrase, normalizeText, parsePhrases } from '../../classify/phrases.ts';
import type { FeedbackEvent } from '../../model/feedback.ts';
import { type Diagnose, type Diagnosis, findEnhancedStatus, findReplyCode, toTemporaryFailure } from './diagnosis.ts';
import { createEvidence } from './evidence.ts';
import {
  DELAY_PHRASES,
  FAILURE_PHRASES,
  FINAL_FAILURE_PHRASES,
  QUOTED_HEADER_PREFIXES,
  RETURNED_MESSAGE_FIELDS,
  RETURNED_MESSAGE_HEADINGS,
  UNREAL_FAILURE_PHRASES,
} from './phrases.ts';
import { type FoundAddress, findAddresses } from './report-addresses.ts';

const MAX_RECIPIENTS = 100;
/** Of the text before the returned message. */
const MAX_LENGTH = 32_768;
const MAX_SECTION_LENGTH = 2_000;
const MAX_TEXT_LENGTH = 6_000;
const MAX_HEADING_LENGTH = 120;

export type AuthorKind = 'server' | 'machine' | 'person';

export interface FreeTextRecipient {
  readonly recipient: string;
  readonly alias: string | null;
}

export interface FreeText {
  readonly text: string;
  readonly recipients: readonly FreeTextRecipient[];
  /** Of this recipient, or of the text for all recipients if the one about this recipient has no known cause. */
  readonly diagnose: (recipient: string | null, status: string | null) => Diagnosis;
  readonly getSection: (recipient: string | null) => string;
}

/** In the headers of the bounce and of the returned message, in lower case. */
export interface KnownAddresses {
  readonly notRecipients: ReadonlySet<string>;
  readonly recipients: ReadonlySet<string>;
}

export function readFreeText(text: string, knownAddresses: KnownAddresses, diagnose: Diagnose): FreeText {
  const body = removeHeaderLines(removeReturnedMessage(text.slice(0, 4 * MAX_LENGTH)).slice(0, MAX_LENGTH));
  const foundAddresses = findAddresses(body).filter(
    ({ address, role }) => role !== 'other' && !knownAddresses.notRecipients.has(address.toLowerCase()),
  );
  const sections = findSections(body, selectRecipients(foundAddresses, knownAddresses.recipients));
  const excerpt = body.slice(0, MAX_TEXT_LENGTH);
  const leadingText = body.slice(
    0,
    Math.min(MAX_TEXT_LENGTH, Math.min(...[...sections.values()].map(({ startIndex }) => startIndex), body.length)),
  );
  const findSection = (recipient: string | null): Section | undefined => sections.get(recipient?.toLowerCase() ?? '');
  return {
    text: body,
    recipients: [...sections.values()].slice(0, MAX_RECIPIENTS).map(({ address, originalAddress }) => ({
      recipient: originalAddress ?? address,
      alias: originalAddress === null ? null : address,
    })),
    diagnose: (recipient, status) => {
      const section = findSection(recipient);
      const sectionResult = diagnose(section?.reason ?? section?.text ?? '', status);
      if (sectionResult.isKnown) return sectionResult;
      // Text about one recipient concerns no other; text before the first concerns all.
      return diagnose(sections.size > 1 ? leadingText : excerpt, status);
    },
    getSection: (recipient) => {
      const section = findSection(recipient);
      const sectionText = section === undefined ? '' : section.text + (section.reason ?? '');
      return sectionText.trim() === '' ? excerpt : sectionText;
    },
  };
}

/** What the text names as recipients, else the recipients of the returned message, else the only address. */
function selectRecipients(
  foundAddresses: readonly FoundAddress[],
  recipients: ReadonlySet<string>,
): readonly FoundAddress[] {
  const namedAddresses = foundAddresses.filter(({ role }) => role === 'named' || role === 'origin');
  if (namedAddresses.length > 0) return namedAddresses;
  const knownRecipients = foundAddresses.filter(({ address }) => recipients.has(address.toLowerCase()));
  if (knownRecipients.length > 0) return knownRecipients;
  return new Set(foundAddresses.map(({ address }) => address.toLowerCase())).size === 1 ? foundAddresses : [];
}

export interface FreeTextReport {
  readonly freeText: FreeText;
  readonly subject: string;
  readonly author: AuthorKind;
  readonly isReply: boolean;
  readonly failedRecipients: readonly string[];
  readonly reportingHost: string | null;
}

export function readFreeTextEvents(report: FreeTextReport): readonly FeedbackEvent[] {
  const { freeText, subject, author, isReply, failedRecipients, reportingHost } = report;
  const text = normalizeText(freeText.text);
  // With a failure phrase and a code, it is from a server even if its sender name is unusual.
  const reportsFailureCode =
    !isReply &&
    containsPhrase(text, FAILURE_PHRASES) &&
    (findEnhancedStatus(freeText.text) !== null || findReplyCode(freeText.text) !== null);
  if (author !== 'server' && !reportsFailureCode) return [];
  const isDelay =
    (containsPhrase(subject, DELAY_PHRASES) || containsPhrase(text, DELAY_PHRASES)) &&
    !reportsFinalFailure(subject) &&
    !reportsFinalFailure(text);
  const isBounce =
    isDelay ||
    containsPhrase(subject, FAILURE_PHRASES) ||
    containsPhrase(text, FAILURE_PHRASES) ||
    freeText.diagnose(null, null).isKnown;
  if (!isBounce) return [];
  const namedRecipients =
    failedRecipients.length > 0
      ? failedRecipients.map((recipient) => ({ recipient, alias: null }))
      : freeText.recipients;
  const eventRecipients = namedRecipients.length > 0 ? namedRecipients : [{ recipient: null, alias: null }];
  return eventRecipients.slice(0, MAX_RECIPIENTS).map(({ recipient, alias }) => {
    const sectionText = freeText.getSection(alias ?? recipient);
    const evidence = createEvidence(findEnhancedStatus(sectionText), sectionText, reportingHost);
    const { permanent, failure } = freeText.diagnose(alias ?? recipient, null);
    if (isDelay && !hasPermanentCode(sectionText))
      return { kind: 'delayed', recipient, alias, evidence, failure: toTemporaryFailure(failure) };
    return { kind: 'bounce', recipient, alias, evidence, permanent, failure };
  });
}

/** A sentence can also deny a final failure or expect one. */
function reportsFinalFailure(text: string): boolean {
  if (!containsPhrase(text, FINAL_FAILURE_PHRASES)) return false;
  return text
    .split(SENTENCE_END)
    .some(
      (sentence) => containsPhrase(sentence, FINAL_FAILURE_PHRASES) && !containsWord(sentence, UNREAL_FAILURE_PHRASES),
    );
}

const SENTENCE_END = /[.!?;] |[。！？]/;

/** Short words such as `if` match only as whole words. */
function containsWord(text: string, phrases: readonly string[]): boolean {
  const words = ` ${text} `;
  return phrases.some((phrase) => words.includes(SHORT_WORD.test(phrase) ? ` ${phrase} ` : phrase));
}

const SHORT_WORD = /^[a-z]{1,6}$/;

function hasPermanentCode(text: string): boolean {
  const reply = findReplyCode(text);
  if (reply !== null) return reply.code >= 500 && findEnhancedStatus(text)?.startsWith('4.') !== true;
  return findEnhancedStatus(text)?.startsWith('5.') === true;
}

interface Section {
  readonly address: string;
  readonly startIndex: number;
  originalAddress: string | null;
  text: string;
  /** From below a list of addresses with this one, if its own text has none. */
  reason: string | null;
}

/** From the line of the address up to the line of the next. */
function findSections(body: string, foundAddresses: readonly FoundAddress[]): ReadonlyMap<string, Section> {
  const sections = new Map<string, Section>();
  let lastSection: Section | null = null;
  for (const [position, { address, lineStart, index, role }] of foundAddresses.entries()) {
    const previousAddress = foundAddresses[position - 1];
    const sectionStart = previousAddress !== undefined && previousAddress.lineStart === lineStart ? index : lineStart;
    const nextAddress = foundAddresses[position + 1];
    const sectionEnd =
      nextAddress === undefined
        ? body.length
        : nextAddress.lineStart === lineStart
          ? nextAddress.index
          : nextAddress.lineStart;
    const text = body.slice(sectionStart, Math.min(sectionEnd, sectionStart + MAX_SECTION_LENGTH));
    if (role === 'origin' && lastSection !== null && lastSection.originalAddress === null) {
      if (lastSection.address.toLowerCase() !== address.toLowerCase()) lastSection.originalAddress = address;
      lastSection.text += `${text}\n`;
      continue;
    }
    const addressKey = address.toLowerCase();
    const section: Section = sections.get(addressKey) ?? {
      address,
      startIndex: lineStart,
      originalAddress: null,
      text: '',
      reason: null,
    };
    if (section.text.length < MAX_SECTION_LENGTH) section.text += `${text}\n`;
    sections.set(addressKey, section);
    lastSection = section;
  }
  shareReasons([...sections.values()]);
  return sections;
}

/** The reason after a list of addresses is that of each of them. */
function shareReasons(sections: readonly Section[]): void {
  let reason: string | null = null;
  for (const section of [...sections].reverse()) {
    if (hasOnlyAddresses(section.text)) section.reason = reason;
    else reason = section.text;
  }
}

function hasOnlyAddresses(text: string): boolean {
  const normalizedText = normalizeText(text);
  for (let i = 0; i < normalizedText.length; i += 1) {
    const charCode = normalizedText.charCodeAt(i);
    if ((charCode >= 0x61 && charCode <= 0x7a) || (charCode >= 0x30 && charCode <= 0x39) || charCode >= 0xc0)
      return false;
  }
  return true;
}

function removeHeaderLines(text: string): string {
  let isHeaderLine = false;
  const lines = text.split('\n').filter((line) => {
    const unquotedLine = line.replaceAll('>', ' ');
    const content = unquotedLine.trim().toLowerCase();
    const isContinuation =
      isHeaderLine && content !== '' && (unquotedLine.startsWith('\t') || unquotedLine.startsWith('      '));
    isHeaderLine = isContinuation || QUOTED_HEADER_PREFIXES.some((name) => content.startsWith(name));
    return !isHeaderLine;
  });
  return lines.join('\n');
}

/** It begins with a heading or with a header. */
function removeReturnedMessage(text: string): string {
  let index = 0;
  let hasText = false;
  for (const line of text.split('\n')) {
    if (index >= MAX_LENGTH) break;
    const lineStart = line
      .trim()
      .toLowerCase()
      .slice(0, MAX_HEADING_LENGTH + 1);
    if (hasText && RETURNED_MESSAGE_FIELDS.some((field) => lineStart.startsWith(field))) return text.slice(0, index);
    if (lineStart.length <= MAX_HEADING_LENGTH && isHeading(lineStart)) return text.slice(0, index);
    hasText ||= lineStart !== '';
    index += line.length + 1;
  }
  return text;
}

/** `--- Original message follows ---` and `Copy of the message:`, but no sentence about a message. */
function isHeading(line: string): boolean {
  const hasMark = HEADING_MARKS.some((mark) => line.startsWith(mark));
  const lineWithoutMarks = removeMarks(line);
  if (lineWithoutMarks === '') return false;
  if (hasMark)
    return includesAny(lineWithoutMarks, RETURNED_MESSAGE_HEADINGS) && !includesAny(lineWithoutMarks, REPORT_HEADINGS);
  const lineWithoutIntroduction = removeIntroduction(lineWithoutMarks);
  const hasFewWords = lineWithoutMarks.split(' ').length <= 6;
  return RETURNED_MESSAGE_HEADINGS.some(
    (heading) =>
      (lineWithoutIntroduction.startsWith(heading) && hasHeadingEnd(line)) ||
      (hasFewWords && lineWithoutMarks.endsWith(heading) && line.endsWith(':')),
  );
}

function includesAny(line: string, phrases: readonly string[]): boolean {
  return phrases.some((phrase) => line.includes(phrase));
}

/** `This is a` in `This is a copy of …`. */
function removeIntroduction(line: string): string {
  const foundIntroduction = HEADING_INTRODUCTIONS.find((introduction) => line.startsWith(introduction));
  return foundIntroduction === undefined ? line : line.slice(foundIntroduction.length);
}

const HEADING_INTRODUCTIONS: readonly string[] = [
  'this is a ',
  'here is a ',
  'below is a ',
  'included is a ',
  'a ',
  'the ',
  'your ',
];
const HEADING_MARKS: readonly string[] = ['--', '==', '**', '__', '>>', '##', '++', '~~', '|--', '|==', '- -', '<<'];
/** Of headings with marks that introduce the report, not the returned message. */
const REPORT_HEADINGS: readonly string[] = parsePhrases(`
  transcript, message log, message from, not delivered, failed, session, error
`);

function hasHeadingEnd(line: string): boolean {
  return (
    line.endsWith(':') || line.endsWith('：') || line.endsWith('.') || line.endsWith('follows') || line.endsWith('-')
  );
}

function removeMarks(line: string): string {
  let startIndex = 0;
  let endIndex = line.length;
  while (startIndex < endIndex && MARK_CHARACTERS.includes(line.charAt(startIndex))) startIndex += 1;
  while (endIndex > startIndex && MARK_CHARACTERS.includes(line.charAt(endIndex - 1))) endIndex -= 1;
  return line.slice(startIndex, endIndex).trim();
}

const MARK_CHARACTERS = '-=*_>#+~|<:. \t：';

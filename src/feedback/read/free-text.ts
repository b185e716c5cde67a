/**
 * Reads free-text bounce messages: the text before the returned message, the failed recipients in it, and the cause for each
 * recipient. The phrases are in separate data files. A message that does not look like a bounce returns no notice.
 */
import type { Notice } from '../../model/feedback.ts';
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
/** Characters of the text before the returned message. */
const MAX_LENGTH = 32_768;
/** Characters that are classified for one recipient, and for all. */
const MAX_PASSAGE_LENGTH = 2_000;
const MAX_TEXT_LENGTH = 6_000;
/** A longer line is not a heading. */
const MAX_HEADING_LENGTH = 120;

/** A recipient in the text, and its other address. */
export interface FreeTextRecipient {
  readonly recipient: string;
  readonly alias: string | null;
}

/** A parsed free text: its failed recipients, and the cause for each. */
export interface FreeText {
  readonly text: string;
  readonly recipients: readonly FreeTextRecipient[];
  /** Classifies the failure of this recipient; of all recipients when the text does not name it. */
  readonly classify: (recipient: string | null, status: string | null) => FailureClassification;
  /** Returns the text about this recipient. */
  readonly passage: (recipient: string | null) => string;
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
  const body = withoutHeaderLines(beforeReturned(text.slice(0, 4 * MAX_LENGTH)).slice(0, MAX_LENGTH));
  const found = findAddresses(body).filter(
    ({ address, role }) => role !== 'other' && !knownAddresses.notRecipients.has(address.toLowerCase()),
  );
  const passages = passagesOf(body, selectRecipients(found, knownAddresses.recipients));
  const excerpt = body.slice(0, MAX_TEXT_LENGTH);
  const opening = body.slice(
    0,
    Math.min(MAX_TEXT_LENGTH, Math.min(...[...passages.values()].map(({ from }) => from), body.length)),
  );
  const passageAbout = (recipient: string | null): Passage | undefined => passages.get(recipient?.toLowerCase() ?? '');
  return {
    text: body,
    recipients: [...passages.values()]
      .slice(0, MAX_RECIPIENTS)
      .map(({ address, origin }) => ({ recipient: origin ?? address, alias: origin === null ? null : address })),
    classify: (recipient, status) => {
      const passage = passageAbout(recipient);
      const own = classifier.classify(passage?.reason ?? passage?.text ?? '', status);
      if (own.known) return own;
      // Text about one recipient does not apply to the others. Text before the first recipient applies to all.
      return classifier.classify(passages.size > 1 ? opening : excerpt, status);
    },
    passage: (recipient) => {
      const passage = passageAbout(recipient);
      const words = passage === undefined ? '' : passage.text + (passage.reason ?? '');
      return words.trim() === '' ? excerpt : words;
    },
  };
}

/** Selects the failed recipients: those that the text names, else those of the returned message, else the only address in the text. */
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
  /** True for a person's reply. */
  readonly isReply: boolean;
  /** Failed recipients in a header field of the bounce. */
  readonly failedRecipients: readonly string[];
  readonly reportingHost: string | null;
}

/** Returns the notices of the text; none when the message is not a bounce. */
export function readFreeTextNotices(report: FreeTextReport): readonly Notice[] {
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
  // A known cause from a server is a bounce, whatever the other text is.
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
    const words = freeText.passage(alias ?? recipient);
    const evidence = createEvidence(findEnhancedStatus(words), words, reportingHost);
    if (isDelay && !isFinal(words)) return { kind: 'delayed', recipient, alias, evidence };
    const { permanent, mailboxMissing } = freeText.classify(alias ?? recipient, null);
    return { kind: 'bounce', recipient, alias, evidence, permanent, mailboxMissing };
  });
}

/** True when a code in the text is final. */
function isFinal(words: string): boolean {
  const reply = findReplyCode(words);
  if (reply !== null) return reply.code >= 500 && findEnhancedStatus(words)?.startsWith('4.') !== true;
  return findEnhancedStatus(words)?.startsWith('5.') === true;
}

interface Passage {
  readonly address: string;
  readonly from: number;
  origin: string | null;
  text: string;
  /** The shared reason of a list of addresses, when the text of this address contains none. */
  reason: string | null;
}

/** Collects for each address the text from its lines up to the line of the next address. */
function passagesOf(body: string, found: readonly FoundAddress[]): ReadonlyMap<string, Passage> {
  const passages = new Map<string, Passage>();
  let last: Passage | null = null;
  for (const [index, { address, lineAt, at, role }] of found.entries()) {
    const before = found[index - 1];
    const start = before !== undefined && before.lineAt === lineAt ? at : lineAt;
    const next = found[index + 1];
    const until = next === undefined ? body.length : next.lineAt === lineAt ? next.at : next.lineAt;
    const text = body.slice(start, Math.min(until, start + MAX_PASSAGE_LENGTH));
    if (role === 'origin' && last !== null && last.origin === null) {
      if (last.address.toLowerCase() !== address.toLowerCase()) last.origin = address;
      last.text += `${text}\n`;
      continue;
    }
    const key = address.toLowerCase();
    const passage: Passage = passages.get(key) ?? { address, from: lineAt, origin: null, text: '', reason: null };
    if (passage.text.length < MAX_PASSAGE_LENGTH) passage.text += `${text}\n`;
    passages.set(key, passage);
    last = passage;
  }
  shareReasons([...passages.values()]);
  return passages;
}

/** Assigns the reason after a list of addresses to every address of the list. */
function shareReasons(passages: readonly Passage[]): void {
  let reason: string | null = null;
  for (const passage of [...passages].reverse()) {
    if (hasOnlyAddresses(passage.text)) passage.reason = reason;
    else reason = passage.text;
  }
}

/** True when the text contains nothing but addresses. */
function hasOnlyAddresses(text: string): boolean {
  const words = normalizeText(text);
  for (let i = 0; i < words.length; i += 1) {
    const c = words.charCodeAt(i);
    if ((c >= 0x61 && c <= 0x7a) || (c >= 0x30 && c <= 0x39) || c >= 0xc0) return false;
  }
  return true;
}

/** Removes quoted header lines and their continuation lines. */
function withoutHeaderLines(text: string): string {
  let quoted = false;
  const kept = text.split('\n').filter((line) => {
    const plain = line.replaceAll('>', ' ');
    const words = plain.trim().toLowerCase();
    const continues = quoted && words !== '' && (plain.startsWith('\t') || plain.startsWith('      '));
    quoted = continues || QUOTED_HEADER_PREFIXES.some((name) => words.startsWith(name));
    return !quoted;
  });
  return kept.join('\n');
}

/** Returns the text before the returned message, which begins with a heading or with its header. */
function beforeReturned(text: string): string {
  let at = 0;
  let hasText = false;
  for (const line of text.split('\n')) {
    if (at >= MAX_LENGTH) break;
    const short = line
      .trim()
      .toLowerCase()
      .slice(0, MAX_HEADING_LENGTH + 1);
    if (hasText && RETURNED_MESSAGE_FIELDS.some((field) => short.startsWith(field))) return text.slice(0, at);
    if (short.length <= MAX_HEADING_LENGTH && isHeading(short)) return text.slice(0, at);
    hasText ||= short !== '';
    at += line.length + 1;
  }
  return text;
}

/** True for `--- Original message follows ---` and `Copy of the message:`, but not for a sentence about a message. */
function isHeading(line: string): boolean {
  const marked = HEADING_MARKS.some((mark) => line.startsWith(mark));
  const bare = withoutMarks(line);
  if (bare === '') return false;
  if (marked) return holdsAny(bare, RETURNED_MESSAGE_HEADINGS) && !holdsAny(bare, REPORT_HEADINGS);
  const noun = withoutArticle(bare);
  const brief = bare.split(' ').length <= 6;
  return RETURNED_MESSAGE_HEADINGS.some(
    (words) => (noun.startsWith(words) && isEnd(line)) || (brief && bare.endsWith(words) && line.endsWith(':')),
  );
}

function holdsAny(line: string, phrases: readonly string[]): boolean {
  return phrases.some((words) => line.includes(words));
}

/** Returns `copy of …` for `This is a copy of …`. */
function withoutArticle(line: string): string {
  const article = ARTICLES.find((words) => line.startsWith(words));
  return article === undefined ? line : line.slice(article.length);
}

const ARTICLES: readonly string[] = [
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

function isEnd(line: string): boolean {
  return (
    line.endsWith(':') || line.endsWith('：') || line.endsWith('.') || line.endsWith('follows') || line.endsWith('-')
  );
}

function withoutMarks(line: string): string {
  let from = 0;
  let to = line.length;
  while (from < to && MARKS.includes(line.charAt(from))) from += 1;
  while (to > from && MARKS.includes(line.charAt(to - 1))) to -= 1;
  return line.slice(from, to).trim();
}

const MARKS = '-=*_>#+~|<:. \t：';

/**
 * Bounces that only people were meant to read: the text before the returned message, the recipients that it points at, and
 * what it says of each. What it says is data, in causes.ts, kind-phrases.ts and layout-phrases.ts. Only what looks like a bounce is one.
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

const MOST_RECIPIENTS = 100;
/** Of the text before the returned message. */
const LONGEST = 32_768;
/** What is said of one recipient, and of all. */
const LONGEST_PASSAGE = 2_000;
const LONGEST_WHOLE = 6_000;
/** A line that announces the returned message has no more words than that. */
const LONGEST_HEADING = 120;

/** A recipient that the text names, and what it calls the same one besides. */
export interface FreeTextRecipient {
  readonly recipient: string;
  readonly alias: string | null;
}

/** A text for people, read: whom it points at, and what it says of each. */
export interface FreeText {
  readonly text: string;
  readonly recipients: readonly FreeTextRecipient[];
  /** What it says of this recipient, or of all where it does not name it. */
  readonly classify: (recipient: string | null, status: string | null) => FailureClassification;
  /** The words by which it was judged. */
  readonly passage: (recipient: string | null) => string;
}

/** Who has to do with the notice and the returned message, in lower case. */
export interface KnownAddresses {
  /** Who cannot be the recipient, such as the notice's sender. */
  readonly notRecipients: ReadonlySet<string>;
  /** Whom the returned message's header names. */
  readonly recipients: ReadonlySet<string>;
}

/** Reads the text of a notice; what it says is judged by `judgements` when it is asked for. */
export function readFreeText(text: string, parties: KnownAddresses, judgements: FailureClassifier): FreeText {
  const told = withoutHeaderLines(beforeReturned(text.slice(0, 4 * LONGEST)).slice(0, LONGEST));
  const found = findAddresses(told).filter(
    ({ address, role: weight }) => weight !== 'other' && !parties.notRecipients.has(address.toLowerCase()),
  );
  const passages = passagesOf(told, meant(found, parties.recipients));
  const whole = told.slice(0, LONGEST_WHOLE);
  const opening = told.slice(
    0,
    Math.min(LONGEST_WHOLE, Math.min(...[...passages.values()].map(({ from }) => from), told.length)),
  );
  const passageOf = (recipient: string | null): Passage | undefined => passages.get(recipient?.toLowerCase() ?? '');
  return {
    text: told,
    recipients: [...passages.values()]
      .slice(0, MOST_RECIPIENTS)
      .map(({ address, origin }) => ({ recipient: origin ?? address, alias: origin === null ? null : address })),
    classify: (recipient, status) => {
      const passage = passageOf(recipient);
      const own = judgements.classify(passage?.reason ?? passage?.text ?? '', status);
      if (own.known) return own;
      // What is said of one of several is not said of the others; what is said before all of them is.
      return judgements.classify(passages.size > 1 ? opening : whole, status);
    },
    passage: (recipient) => {
      const passage = passageOf(recipient);
      const words = passage === undefined ? '' : passage.text + (passage.reason ?? '');
      return words.trim() === '' ? whole : words;
    },
  };
}

/** The addresses that count: those that the text points at, else those that the message was sent to, else the one that it mentions, where it mentions one alone. */
function meant(found: readonly FoundAddress[], recipients: ReadonlySet<string>): readonly FoundAddress[] {
  const named = found.filter(({ role: weight }) => weight === 'named' || weight === 'origin');
  if (named.length > 0) return named;
  const sentTo = found.filter(({ address }) => recipients.has(address.toLowerCase()));
  if (sentTo.length > 0) return sentTo;
  return new Set(found.map(({ address }) => address.toLowerCase())).size === 1 ? found : [];
}

export interface FreeTextReport {
  readonly freeText: FreeText;
  /** In `normalizeText`. */
  readonly subject: string;
  readonly author: AuthorKind;
  /** Somebody answers to something. */
  readonly isReply: boolean;
  /** Recipients that a header field of the notice names. */
  readonly failedRecipients: readonly string[];
  readonly reportingHost: string | null;
}

/** The notices of the text, or none where it is no bounce. */
export function readFreeTextNotices(mail: FreeTextReport): readonly Notice[] {
  const { freeText: prose, subject, author: speaker, isReply: answers, failedRecipients: failed, reportingHost } = mail;
  const text = normalizeText(prose.text);
  // Servers without a server's name give codes, and answer to nothing.
  const coded =
    !answers &&
    containsPhrase(text, FAILURE_PHRASES) &&
    (findEnhancedStatus(prose.text) !== null || findReplyCode(prose.text) !== null);
  if (speaker !== 'server' && !coded) return [];
  const waits =
    (containsPhrase(subject, DELAY_PHRASES) || containsPhrase(text, DELAY_PHRASES)) &&
    !containsPhrase(subject, FINAL_FAILURE_PHRASES) &&
    !containsPhrase(text, FINAL_FAILURE_PHRASES);
  // A server that says something known of a mailbox bounces, whatever it calls that.
  const reports =
    waits ||
    containsPhrase(subject, FAILURE_PHRASES) ||
    containsPhrase(text, FAILURE_PHRASES) ||
    prose.classify(null, null).known;
  if (!reports) return [];
  const named = failed.length > 0 ? failed.map((recipient) => ({ recipient, alias: null })) : prose.recipients;
  const about = named.length > 0 ? named : [{ recipient: null, alias: null }];
  return about.slice(0, MOST_RECIPIENTS).map(({ recipient, alias }) => {
    const words = prose.passage(alias ?? recipient);
    const evidence = createEvidence(findEnhancedStatus(words), words, reportingHost);
    if (waits && !isFinal(words)) return { kind: 'delayed', recipient, alias, evidence };
    const { permanent, mailboxMissing } = prose.classify(alias ?? recipient, null);
    return { kind: 'bounce', recipient, alias, evidence, permanent, mailboxMissing };
  });
}

/** Whether a server's code says that nobody tries any more. */
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
  /** What is said of an address further on, where its own text says nothing: the same for all that stand together. */
  reason: string | null;
}

/** For each address, what stands from its line up to that of another one, wherever it is named. */
function passagesOf(told: string, found: readonly FoundAddress[]): ReadonlyMap<string, Passage> {
  const passages = new Map<string, Passage>();
  let last: Passage | null = null;
  for (const [index, { address, lineAt, at, role: weight }] of found.entries()) {
    const before = found[index - 1];
    const start = before !== undefined && before.lineAt === lineAt ? at : lineAt;
    const next = found[index + 1];
    const until = next === undefined ? told.length : next.lineAt === lineAt ? next.at : next.lineAt;
    const text = told.slice(start, Math.min(until, start + LONGEST_PASSAGE));
    if (weight === 'origin' && last !== null && last.origin === null) {
      if (last.address.toLowerCase() !== address.toLowerCase()) last.origin = address;
      last.text += `${text}\n`;
      continue;
    }
    const key = address.toLowerCase();
    const passage: Passage = passages.get(key) ?? { address, from: lineAt, origin: null, text: '', reason: null };
    if (passage.text.length < LONGEST_PASSAGE) passage.text += `${text}\n`;
    passages.set(key, passage);
    last = passage;
  }
  shareReasons([...passages.values()]);
  return passages;
}

/** A list of addresses with one reason behind the last of them: the others have it too. */
function shareReasons(passages: readonly Passage[]): void {
  let reason: string | null = null;
  for (const passage of [...passages].reverse()) {
    if (saysNothing(passage.text)) passage.reason = reason;
    else reason = passage.text;
  }
}

/** No word but addresses. */
function saysNothing(text: string): boolean {
  const words = normalizeText(text);
  for (let i = 0; i < words.length; i += 1) {
    const c = words.charCodeAt(i);
    if ((c >= 0x61 && c <= 0x7a) || (c >= 0x30 && c <= 0x39) || c >= 0xc0) return false;
  }
  return true;
}

/** Without the lines of a header that the text quotes, and what continues them. */
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

/** The text up to where the returned message begins: a line that says so, or its header. */
function beforeReturned(text: string): string {
  let at = 0;
  let said = false;
  for (const line of text.split('\n')) {
    if (at >= LONGEST) break;
    const short = line
      .trim()
      .toLowerCase()
      .slice(0, LONGEST_HEADING + 1);
    if (said && RETURNED_MESSAGE_FIELDS.some((field) => short.startsWith(field))) return text.slice(0, at);
    if (short.length <= LONGEST_HEADING && isHeading(short)) return text.slice(0, at);
    said ||= short !== '';
    at += line.length + 1;
  }
  return text;
}

/** `--- Original message follows ---`, `Copy of the message:`; not a sentence that speaks of a message. */
function isHeading(line: string): boolean {
  const marked = HEADING_MARKS.some((mark) => line.startsWith(mark));
  const bare = withoutMarks(line);
  if (bare === '') return false;
  if (marked) return holdsAny(bare, RETURNED_MESSAGE_HEADINGS) && !holdsAny(bare, HEADINGS_OF_REPORT);
  const noun = withoutArticle(bare);
  const brief = bare.split(' ').length <= 6;
  return RETURNED_MESSAGE_HEADINGS.some(
    (words) => (noun.startsWith(words) && isEnd(line)) || (brief && bare.endsWith(words) && line.endsWith(':')),
  );
}

function holdsAny(line: string, phrases: readonly string[]): boolean {
  return phrases.some((words) => line.includes(words));
}

/** `This is a copy of …` as `copy of …`. */
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
/** With marks around them as well, and before what is said. */
const HEADINGS_OF_REPORT: readonly string[] = [
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

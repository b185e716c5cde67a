/** What a diagnostic says takes precedence over the type of a provider’s event. */
import { isGenericCode, type Judgement, judge } from '../../classify/classify.ts';
import { containsPhrase, normalizeText, parsePhrases } from '../../classify/phrases.ts';
import { isAlphanumeric } from '../../message/markup-reader.ts';
import type { Failure, FailureCategory, FailureClass } from '../../model/failure.ts';
import type { FailureScope } from '../../model/outcome.ts';

export interface Diagnosis {
  readonly permanent: boolean;
  /** Else the class is `soft`. */
  readonly isKnown: boolean;
  readonly failure: Failure;
  readonly scope: FailureScope;
}

export type Diagnose = (text: string, status: string | null) => Diagnosis;

export function createDiagnose(): Diagnose {
  const diagnoses = new Map<string, Diagnosis>();
  return (text, status) => {
    const key = `${status ?? ''}\n${text}`;
    const diagnosis = diagnoses.get(key) ?? diagnose(text, status);
    diagnoses.set(key, diagnosis);
    return diagnosis;
  };
}

const MAX_TEXT_LENGTH = 8_000;
/** Beyond it, a transcript continues with another reply. */
const MAX_REPLY_LENGTH = 500;

/** A code in the text takes precedence over `status`: that of a gateway is often wrong. */
export function diagnose(source: string, status: string | null): Diagnosis {
  const text = source.slice(0, MAX_TEXT_LENGTH);
  const found = findReplyCode(text);
  const isUseless = found !== null && status !== null && isGenericCode(status) && !status.startsWith('5.7.');
  const enhanced = findEnhancedStatus(text) ?? (isUseless ? null : status);
  if (found === null) return toDiagnosis(judge({ stage: null, code: null, enhanced, text }), false);
  const { code, index } = found;
  const stage = isReplyToMail(text.slice(0, index)) ? 'mail' : null;
  const judgement = judge({ stage, code, enhanced, text: readReply(text, found) });
  return toDiagnosis(judgement.rule === null ? judge({ stage, code, enhanced, text }) : judgement, true);
}

/** Exim and Postfix. */
function isReplyToMail(precedingText: string): boolean {
  return precedingText.slice(-MAX_REPLY_LENGTH).toLowerCase().includes('after mail from:');
}

/** Up to a blank line, a line with another code, or the bracket that encloses the reply. */
function readReply(text: string, { code, index }: FoundCode): string {
  const reply = text.slice(index, index + MAX_REPLY_LENGTH);
  const lines = reply.split('\n');
  const end = lines.findIndex((line) => line.trim() === '' || (REPLY_LINE.test(line) && !line.includes(String(code))));
  const ownLines = (end < 0 ? lines : lines.slice(0, end)).join('\n');
  return text.charAt(index - 1) === '[' ? (ownLines.split(']')[0] ?? '') : ownLines;
}

const REPLY_LINE = /^[ \t>]{0,8}[245]\d\d[ -]/;

function toDiagnosis({ verdict, rule, replyClass }: Judgement, hasCode: boolean): Diagnosis {
  const { scope, ...failure } = verdict;
  const isPassing = failure.class === 'soft' && failure.category !== 'unknown';
  return { permanent: replyClass !== 4 && !isPassing, isKnown: rule !== null || hasCode, failure, scope };
}

const HARD_CATEGORIES: readonly FailureCategory[] = ['mailbox-unknown', 'mailbox-disabled', 'domain'];

export function withFailureClass(failureClass: FailureClass, { category }: Failure): Failure {
  if (failureClass === 'hard' && !HARD_CATEGORIES.includes(category))
    return { class: 'hard', category: 'mailbox-unknown' };
  const isExcluded = failureClass === 'soft' && (category === 'mailbox-unknown' || category === 'domain');
  return { class: failureClass, category: isExcluded ? 'unknown' : category };
}

/** Causes that are no fault of the address: such a failure suppresses nobody, whatever a provider calls it. */
const FAULTLESS_CATEGORIES: readonly string[] = parsePhrases(
  'policy, reputation, content, size, mailbox-full, auth, throttled, quota, greylisted',
);

export function isFaultless({ failure, isKnown }: Diagnosis): boolean {
  return isKnown && failure.class !== 'hard' && FAULTLESS_CATEGORIES.includes(failure.category);
}

/** The class of the provider counts where the text says nothing. */
export function decideProviderFailure(failureClass: FailureClass, diagnosis: Diagnosis): Failure {
  return failureClass === 'hard' && isFaultless(diagnosis)
    ? diagnosis.failure
    : withFailureClass(failureClass, diagnosis.failure);
}

/** How a provider says that the address is on its own suppression list: Postmark, Amazon SES, SparkPost and Resend. */
const PROVIDER_LIST_PHRASES: readonly string[] = parsePhrases(
  'marked as inactive, suppression list, address was suppressed, address suppressed, suppressed sending',
);

export function namesProviderList(text: string): boolean {
  return containsPhrase(normalizeText(text.slice(0, MAX_TEXT_LENGTH)), PROVIDER_LIST_PHRASES);
}

/** A temporary failure does not prove that the mailbox is missing. */
export function toTemporaryFailure(failure: Failure): Failure {
  return failure.class === 'hard' ? withFailureClass('soft', failure) : failure;
}

/** The text beyond concerns another server or another message. */
const MAX_LENGTH = 8_000;
const DOT = 0x2e;
const HYPHEN = 0x2d;

/** RFC 3463 section 2, at the beginning, without leading zeros. */
export function parseEnhancedStatus(value: string): string | null {
  const text = value.trimStart();
  return parseStatusAt(text, text.startsWith('#') ? 1 : 0)?.status ?? null;
}

/** Of class 4 or 5. Digits in an address, a version or a longer number are none. */
export function findEnhancedStatus(text: string): string | null {
  const searchEnd = Math.min(text.length, MAX_LENGTH);
  for (let index = 0; index < searchEnd; index += 1) {
    const charCode = text.charCodeAt(index);
    if (charCode !== 0x34 && charCode !== 0x35) continue;
    const precedingCharCode = index === 0 ? 0x20 : text.charCodeAt(index - 1);
    if (
      isAlphanumeric(precedingCharCode) ||
      precedingCharCode === DOT ||
      (precedingCharCode === HYPHEN && !isDigit(text.charCodeAt(index - 2)))
    )
      continue;
    const parsedStatus = parseStatusAt(text, index);
    if (parsedStatus !== null) return parsedStatus.status;
  }
  return null;
}

function parseStatusAt(text: string, startIndex: number): { readonly status: string } | null {
  const classDigit = text.charAt(startIndex);
  if ((classDigit !== '2' && classDigit !== '4' && classDigit !== '5') || text.charCodeAt(startIndex + 1) !== DOT)
    return null;
  const subjectDigits = readDigits(text, startIndex + 2);
  if (subjectDigits === '' || text.charCodeAt(startIndex + 2 + subjectDigits.length) !== DOT) return null;
  const detailStart = startIndex + 3 + subjectDigits.length;
  const detailDigits = readDigits(text, detailStart);
  const followingCharCode = text.charCodeAt(detailStart + detailDigits.length);
  // Four numbers are an IP address.
  if (
    detailDigits === '' ||
    isDigit(followingCharCode) ||
    (followingCharCode === DOT && isDigit(text.charCodeAt(detailStart + detailDigits.length + 1)))
  )
    return null;
  return { status: `${classDigit}.${Number(subjectDigits)}.${Number(detailDigits)}` };
}

function readDigits(text: string, startIndex: number): string {
  let digitsEnd = startIndex;
  while (digitsEnd < startIndex + 3 && isDigit(text.charCodeAt(digitsEnd))) digitsEnd += 1;
  return text.slice(startIndex, digitsEnd);
}

interface FoundCode {
  readonly code: number;
  readonly index: number;
}

/** Of class 4 or 5 (RFC 5321 section 4.2), after punctuation, `error` or nothing, and not before a unit. */
export function findReplyCode(text: string): FoundCode | null {
  const searchEnd = Math.min(text.length, MAX_LENGTH);
  for (let index = 0; index < searchEnd; index += 1) {
    const charCode = text.charCodeAt(index);
    if ((charCode !== 0x34 && charCode !== 0x35) || (index > 0 && !isCodeStart(text, index))) continue;
    const secondDigit = text.charCodeAt(index + 1);
    if (secondDigit < 0x30 || secondDigit > 0x37 || !isDigit(text.charCodeAt(index + 2)) || !isCodeEnd(text, index + 3))
      continue;
    const code = Number(text.slice(index, index + 3));
    if (code <= 459 || (code >= 500 && code <= 559) || code === 571) return { code, index };
  }
  return null;
}

function isCodeStart(text: string, index: number): boolean {
  const precedingCharacter = text.charAt(index - 1);
  if (':;("\'[#=>|\n'.includes(precedingCharacter)) return true;
  if (precedingCharacter !== ' ' && precedingCharacter !== '\t') return false;
  const precedingText = text
    .slice(Math.max(0, index - 24), index)
    .trimEnd()
    .toLowerCase();
  const lastCharacter = precedingText.charAt(precedingText.length - 1);
  return (
    precedingText === '' ||
    ':;>(|-.,<#\n'.includes(lastCharacter) ||
    WORDS_BEFORE_CODE.some((word) => precedingText.endsWith(word))
  );
}

const WORDS_BEFORE_CODE: readonly string[] = parsePhrases(`
  said, error, code, reply, response, smtp, with, returned, was, status, replied, answer, failed, dsn, 550, 554, 553
  reason, command, end of data, is, by, err, antwort, fehler, erreur
`);

function isCodeEnd(text: string, index: number): boolean {
  const nextCharacter = text.charAt(index);
  if (nextCharacter === '' || '\n\r])"\'<'.includes(nextCharacter)) return true;
  if (':,;.'.includes(nextCharacter)) return !isDigit(text.charCodeAt(index + 1));
  if (!' -\t'.includes(nextCharacter)) return false;
  const word = text
    .slice(index + 1, index + 14)
    .toLowerCase()
    .trimStart();
  return !UNITS_AFTER_NUMBER.some((unit) => word.startsWith(unit));
}

const UNITS_AFTER_NUMBER: readonly string[] = [
  'k ',
  ...parsePhrases('byte, kb, mb, hour, day, minutes, seconds, lines, attempts, times, messages, recipients'),
];

function isDigit(charCode: number): boolean {
  return charCode >= 0x30 && charCode <= 0x39;
}

/**
 * Finds the reply in a diagnostic or in the text of a report, and judges it (classify/judge.ts). Events of providers and
 * of Amazon SES are decided here too: what the diagnostic says takes precedence over the type of the event.
 */
import { isGenericCode, type Judgement, judge } from '../../classify/judge.ts';
import { containsPhrase, normalizeText, parsePhrases } from '../../classify/text.ts';
import type { Failure, FailureCategory, FailureClass } from '../../model/failure.ts';
import type { FailureScope } from '../../model/failure-rule.ts';
import { type FoundCode, findEnhancedStatus, findReplyCode } from './codes.ts';

/** What a diagnostic says about a failure. */
export interface Diagnosis {
  /** False if the server says that a later attempt may succeed. */
  readonly permanent: boolean;
  /** False if the text contains no known cause and no specific code. If false, the class is `soft`. */
  readonly isKnown: boolean;
  readonly failure: Failure;
  readonly scope: FailureScope;
}

/** Diagnoses a text. `status` is the status code of the report, or null. */
export type Diagnose = (text: string, status: string | null) => Diagnosis;

/** Returns a function that diagnoses each text of one report once, so that the cost is linear in its length. */
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
/** Maximum length of a reply. In a transcript, the text beyond this length belongs to another reply. */
const MAX_REPLY_LENGTH = 500;

/**
 * Diagnoses a text. A code in the text takes precedence over `status`, because the status of a gateway is often wrong.
 */
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

/** Returns true for the words of Exim and Postfix before a refusal of the sender. */
function isReplyToMail(precedingText: string): boolean {
  return precedingText.slice(-MAX_REPLY_LENGTH).toLowerCase().includes('after mail from:');
}

/** Returns the text from the code up to a blank line, to a line with another code, or to the bracket that encloses the reply. */
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
  // The server reports a failure that ends by itself, such as a full mailbox.
  const isPassing = failure.class === 'soft' && failure.category !== 'unknown';
  return { permanent: replyClass !== 4 && !isPassing, isKnown: rule !== null || hasCode, failure, scope };
}

/** The categories that a failure with the class `hard` can have. */
const HARD_CATEGORIES: readonly FailureCategory[] = ['mailbox-unknown', 'mailbox-disabled', 'domain'];

/** Returns a failure with the given class, and with the given category unless the class excludes it. */
export function withFailureClass(failureClass: FailureClass, { category }: Failure): Failure {
  if (failureClass === 'hard' && !HARD_CATEGORIES.includes(category))
    return { class: 'hard', category: 'mailbox-unknown' };
  const isExcluded = failureClass === 'soft' && (category === 'mailbox-unknown' || category === 'domain');
  return { class: failureClass, category: isExcluded ? 'unknown' : category };
}

/** Causes that are no fault of the address: such a failure suppresses nobody, whatever a provider calls it. */
const FAULTLESS_CATEGORIES: readonly string[] = parsePhrases(
  'policy, reputation, content, size, mailbox-full, auth, throttled, greylisted',
);

/** Returns true if the text of a failure reports a cause that is no fault of the address. */
export function isFaultless({ failure, isKnown }: Diagnosis): boolean {
  return isKnown && failure.class !== 'hard' && FAULTLESS_CATEGORIES.includes(failure.category);
}

/** Returns the failure of a provider event. The class that the provider reports counts where the text says nothing. */
export function decideProviderFailure(failureClass: FailureClass, diagnosis: Diagnosis): Failure {
  return failureClass === 'hard' && isFaultless(diagnosis)
    ? diagnosis.failure
    : withFailureClass(failureClass, diagnosis.failure);
}

/**
 * Words with which a provider says that the address is on its own suppression list: Postmark, Amazon SES, SparkPost and
 * Resend.
 */
const PROVIDER_LIST_PHRASES: readonly string[] = parsePhrases(
  'marked as inactive, suppression list, address was suppressed, address suppressed, suppressed sending',
);

export function namesProviderList(text: string): boolean {
  return containsPhrase(normalizeText(text.slice(0, MAX_TEXT_LENGTH)), PROVIDER_LIST_PHRASES);
}

/**
 * Converts the failure of an attempt after which the server tries again: a `hard` failure becomes `soft`, because a
 * temporary failure does not prove that the mailbox is missing.
 */
export function toTemporaryFailure(failure: Failure): Failure {
  return failure.class === 'hard' ? withFailureClass('soft', failure) : failure;
}

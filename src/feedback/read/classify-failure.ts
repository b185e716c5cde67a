/**
 * Classifies a reported failure: determines whether the failure is permanent, and whether the mailbox is missing. The
 * function `classify` interprets SMTP replies. causes.ts contains the rules for the surrounding text. This module
 * defines whether the SMTP reply or the surrounding text takes precedence.
 *
 * The functions are pure. The cost per phrase is linear in the length of the text. A status 5.7.x never means a missing
 * mailbox. A full mailbox and an expired retry period are temporary failures.
 */
import { classify, findRule } from '../../classify/classify.ts';
import { classifyOutcome } from '../../classify/failure.ts';
import type { Failure, FailureCategory, FailureClass } from '../../model/failure.ts';
import type { Outcome, Reason, Reply } from '../../model/outcome.ts';
import { CATEGORY_PHRASES, CAUSE_RULES, type CauseRule } from './causes.ts';
import { findEnhancedStatus, findReplyCode } from './codes.ts';
import { containsPhrase, normalizeText } from './phrases.ts';

/** The classification of a reported failure. */
export interface FailureClassification {
  readonly permanent: boolean;
  /** False if the text contains no known cause and no specific code. If false, the class is `soft`. */
  readonly isKnown: boolean;
  readonly failure: Failure;
}

/** The result of the rules of precedence, without the category. If `isMailboxMissing` is true, the class is `hard`. */
interface PrecedenceResult {
  readonly permanent: boolean;
  readonly isMailboxMissing: boolean;
  readonly isKnown: boolean;
}

const TEMPORARY_FAILURE: PrecedenceResult = { permanent: false, isMailboxMissing: false, isKnown: true };
const REFUSED_FAILURE: PrecedenceResult = { permanent: true, isMailboxMissing: false, isKnown: true };
const MISSING_MAILBOX_FAILURE: PrecedenceResult = { permanent: true, isMailboxMissing: true, isKnown: true };
const UNKNOWN_FAILURE: PrecedenceResult = { permanent: true, isMailboxMissing: false, isKnown: false };

/** Reasons that count as temporary even after a permanent reply. */
const TEMPORARY_REASONS: readonly Reason[] = ['mailbox-full', 'greylisted', 'throttled', 'unavailable', 'connection'];

/**
 * Status codes, without their class, that mean a missing mailbox or a temporary failure. Sources: RFC 3463 section 3,
 * the registry of RFC 5248, and the three-digit codes of Microsoft. All other codes mean that the message was refused,
 * or are too general.
 */
const MISSING_MAILBOX_DETAILS: ReadonlySet<string> = new Set(['1.1', '1.2', '1.3', '1.6', '1.10', '2.1', '4.310']);
const TEMPORARY_DETAILS: ReadonlySet<string> = new Set([
  ...['2.2', '3.1', '4.1', '4.2', '4.3', '4.5', '4.7', '4.300', '4.312', '4.316', '4.317'],
  ...['4.318', '4.319', '3.2'],
]);
/** The status of a full mailbox (RFC 3463 section 3.3). */
const FULL_MAILBOX_DETAIL = '2.2';
/** Status codes about the sender's address. */
const SENDER_DETAILS: ReadonlySet<string> = new Set(['1.7', '1.8']);
/** Categories by the subject and detail of an enhanced status code, or by its subject alone (RFC 3463 section 3). */
const DETAIL_CATEGORIES: ReadonlyMap<string, FailureCategory> = new Map([
  ['1.1', 'mailbox-unknown'],
  ['1.2', 'domain'],
  ['1.3', 'mailbox-unknown'],
  ['1.6', 'mailbox-unknown'],
  ['1.7', 'policy'],
  ['1.8', 'policy'],
  ['1.10', 'mailbox-unknown'],
  ['2.1', 'mailbox-disabled'],
  ['2.2', 'mailbox-full'],
  ['2.3', 'size'],
  ['3.4', 'size'],
  ['4.4', 'domain'],
  ['4.310', 'domain'],
]);
const SUBJECT_CATEGORIES: ReadonlyMap<string, FailureCategory> = new Map([
  ['3', 'network'],
  ['4', 'network'],
  ['6', 'content'],
  ['7', 'policy'],
]);
/**
 * The categories of a hard bounce. If the category of a hard bounce is not in this list, it is replaced by
 * `mailbox-unknown`.
 */
const HARD_CATEGORIES: readonly FailureCategory[] = ['mailbox-unknown', 'mailbox-disabled', 'domain'];
/** The categories that a temporary failure cannot have, because they are permanent conditions. */
const PERMANENT_CATEGORIES: readonly FailureCategory[] = ['mailbox-unknown', 'domain'];
/**
 * General status codes. If the text of the report contains a known cause, the text takes precedence over these codes.
 */
const GENERIC_DETAILS: ReadonlySet<string> = new Set([
  '0.0',
  '1.0',
  '2.0',
  '3.0',
  '4.0',
  '5.0',
  '6.0',
  '7.0',
  '7.1',
  '5.2',
]);

/**
 * Maximum length of the text to which the reply rules are applied. In a transcript, the text beyond this length belongs
 * to another reply.
 */
const MAX_REPLY_LENGTH = 500;
const MAX_TEXT_LENGTH = 8_000;

/**
 * Classifies a diagnostic or a free text. `status` is the status code of the report, or null. A status code or reply
 * code in the text takes precedence over `status`, because the status of a gateway is often wrong.
 */
export function classifyFailure(source: string, status: string | null): FailureClassification {
  const text = readFailureText(source, status);
  const reply = classifyReplyText(text);
  const result = applyPrecedence(text, reply);
  const { permanent, isKnown } = result;
  const failureClass = toFailureClass(result, reply);
  const categories = [reply?.category, findTextCategory(text), findStatusCategory(text.statusDetail)];
  return { permanent, isKnown, failure: { class: failureClass, category: selectCategory(failureClass, categories) } };
}

/** Returns a failure with the given class, and with the given category unless the class excludes it. */
export function withFailureClass(failureClass: FailureClass, { category }: Failure): Failure {
  return { class: failureClass, category: selectCategory(failureClass, [category]) };
}

/** Causes that are no fault of the address: such a failure suppresses nobody, whatever a provider calls it. */
const FAULTLESS_CATEGORIES: readonly FailureCategory[] = [
  'policy',
  'reputation',
  'content',
  'size',
  'mailbox-full',
  'auth',
  'throttled',
  'greylisted',
];

/** Returns true if the text of a failure reports a cause that is no fault of the address. */
export function isFaultless({ failure, isKnown }: FailureClassification): boolean {
  return isKnown && failure.class !== 'hard' && FAULTLESS_CATEGORIES.includes(failure.category);
}

/** Returns the failure of a provider event. The class that the provider reports counts where the text says nothing. */
export function decideProviderFailure(failureClass: FailureClass, classification: FailureClassification): Failure {
  return failureClass === 'hard' && isFaultless(classification)
    ? classification.failure
    : withFailureClass(failureClass, classification.failure);
}

/**
 * Words with which a provider says that the address is on its own suppression list: Postmark, Amazon SES, SparkPost and
 * Resend.
 */
const PROVIDER_LIST_PHRASES: readonly string[] = [
  'marked as inactive',
  'suppression list',
  'address was suppressed',
  'address suppressed',
  'suppressed sending',
];

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

/** The parts of a failure report that determine its classification. */
interface FailureText {
  readonly text: string;
  /** The text from the reply code onwards. */
  readonly replyText: string;
  readonly code: number | null;
  readonly enhanced: string | null;
  readonly statusDetail: string;
  readonly cause: CauseRule | null;
}

function readFailureText(source: string, status: string | null): FailureText {
  const excerpt = source.slice(0, MAX_TEXT_LENGTH);
  const foundCode = findReplyCode(excerpt);
  const code = foundCode?.code ?? null;
  const enhanced = findEnhancedStatus(excerpt) ?? (code !== null && isGenericStatus(status) ? null : status);
  const text = normalizeText(excerpt);
  return {
    text,
    replyText: excerpt.slice(foundCode?.index ?? 0),
    code,
    enhanced,
    statusDetail: enhanced?.slice(2) ?? '',
    cause: findCauseRule(text),
  };
}

function applyPrecedence(
  { text, code, enhanced, statusDetail, cause }: FailureText,
  reply: ReplyClassification | null,
): PrecedenceResult {
  const concernsMailbox = MISSING_MAILBOX_DETAILS.has(statusDetail);
  // Text about a full or suspended mailbox takes precedence over every code, because such a mailbox exists.
  if (cause?.cause === 'temporary' && cause.isVague !== true && !(concernsMailbox && matchesMissingMailbox(text)))
    return TEMPORARY_FAILURE;
  if (isTemporaryClass(code, enhanced)) return TEMPORARY_FAILURE;
  const isMailboxMissing =
    cause?.cause === 'missing' && !statusDetail.startsWith('7.') && !SENDER_DETAILS.has(statusDetail);
  if (statusDetail === FULL_MAILBOX_DETAIL) return TEMPORARY_FAILURE;
  if (isMailboxMissing && concernsMailbox) return MISSING_MAILBOX_FAILURE;
  if (reply !== null) return reply.isDisabled && isMailboxMissing ? MISSING_MAILBOX_FAILURE : reply.result;
  if (TEMPORARY_DETAILS.has(statusDetail)) return isMailboxMissing ? MISSING_MAILBOX_FAILURE : TEMPORARY_FAILURE;
  if (concernsMailbox && cause?.cause !== 'refused') return MISSING_MAILBOX_FAILURE;
  if (isMailboxMissing) return MISSING_MAILBOX_FAILURE;
  if (cause?.cause === 'temporary' && (enhanced === null || GENERIC_DETAILS.has(statusDetail)))
    return TEMPORARY_FAILURE;
  const isKnown =
    cause?.cause === 'refused' || code !== null || (enhanced !== null && !GENERIC_DETAILS.has(statusDetail));
  return isKnown ? REFUSED_FAILURE : UNKNOWN_FAILURE;
}

function toFailureClass(
  { permanent, isMailboxMissing, isKnown }: PrecedenceResult,
  reply: ReplyClassification | null,
): FailureClass {
  if (isMailboxMissing) return 'hard';
  return permanent && isKnown && reply?.isSoft !== true ? 'block' : 'soft';
}

/** Returns the first category that a failure of this class can have. */
function selectCategory(
  failureClass: FailureClass,
  categories: readonly (FailureCategory | null | undefined)[],
): FailureCategory {
  const isPossible = (category: FailureCategory): boolean =>
    failureClass === 'hard'
      ? HARD_CATEGORIES.includes(category)
      : category !== 'unknown' && !(failureClass === 'soft' && PERMANENT_CATEGORIES.includes(category));
  for (const category of categories) {
    if (category !== null && category !== undefined && isPossible(category)) return category;
  }
  return failureClass === 'hard' ? 'mailbox-unknown' : 'unknown';
}

function findTextCategory({ text, cause }: FailureText): FailureCategory | null {
  if (cause === null) return null;
  const { category } = cause;
  return (
    CATEGORY_PHRASES.find((entry) => entry.generalCategory === category && containsPhrase(text, entry.phrases))
      ?.category ?? category
  );
}

function findStatusCategory(statusDetail: string): FailureCategory | null {
  const subject = statusDetail.slice(0, statusDetail.indexOf('.'));
  return DETAIL_CATEGORIES.get(statusDetail) ?? SUBJECT_CATEGORIES.get(subject) ?? null;
}

/** Returns the first matching rule, or null. */
export function findCauseRule(text: string): CauseRule | null {
  for (const rule of CAUSE_RULES) {
    if (
      containsPhrase(text, rule.phrases) &&
      (rule.exceptPhrases === undefined || !containsPhrase(text, rule.exceptPhrases))
    )
      return rule;
  }
  return null;
}

function matchesMissingMailbox(text: string): boolean {
  return CAUSE_RULES.some(({ cause, phrases }) => cause === 'missing' && containsPhrase(text, phrases));
}

/** Returns true if the reply code or the status has class 4. */
function isTemporaryClass(code: number | null, enhanced: string | null): boolean {
  if (code !== null && code < 500) return true;
  return enhanced?.startsWith('4.') === true;
}

function isGenericStatus(status: string | null): boolean {
  return status !== null && !status.startsWith('5.7.') && GENERIC_DETAILS.has(status.slice(2));
}

/** The classification of a reply by the rules for SMTP replies. */
interface ReplyClassification {
  readonly result: PrecedenceResult;
  /** True if the mailbox exists but is disabled. */
  readonly isDisabled: boolean;
  /** True if the class of the reply is `soft`. */
  readonly isSoft: boolean;
  readonly category: FailureCategory;
}

/**
 * Classifies a reply with the rules for SMTP replies. Returns null if no rule matches. Also returns null if the text
 * contains a known cause and no code, because such a text is not a reply.
 */
function classifyReplyText({
  replyText,
  code,
  enhanced,
  statusDetail,
  cause,
}: FailureText): ReplyClassification | null {
  const hasCode = code !== null || (enhanced !== null && !GENERIC_DETAILS.has(statusDetail));
  if (!hasCode && cause !== null) return null;
  const reply: Reply = { stage: 'rcpt', code: code ?? 550, enhanced, text: replyText.slice(0, MAX_REPLY_LENGTH) };
  return classifyReply(reply) ?? classifyReply({ ...reply, stage: 'content' });
}

function classifyReply(reply: Reply): ReplyClassification | null {
  return findRule(reply) === null ? null : toReplyClassification(classify(reply));
}

function toReplyClassification(outcome: Outcome): ReplyClassification | null {
  const failure = classifyOutcome(outcome);
  if (failure === null || !('reason' in outcome)) return null;
  const isTemporary = TEMPORARY_REASONS.includes(outcome.reason);
  const isMailboxMissing = outcome.kind === 'bounced' && outcome.suppress;
  return {
    // A deferral whose reason is not in `TEMPORARY_REASONS` concerns the configuration or the reputation of the sender.
    // In a report, such a failure is permanent, because the reporting server does not try again.
    result: isTemporary ? TEMPORARY_FAILURE : isMailboxMissing ? MISSING_MAILBOX_FAILURE : REFUSED_FAILURE,
    isDisabled: outcome.kind === 'bounced' && outcome.reason === 'recipient-disabled',
    isSoft: failure.class === 'soft',
    category: failure.category,
  };
}

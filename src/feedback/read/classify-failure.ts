/**
 * Classifies a reported failure: determines whether the failure is permanent, and whether the mailbox is missing.
 * `classify` interprets SMTP replies. causes.ts contains the rules for the surrounding text. This module defines which
 * of the two takes precedence.
 *
 * The functions are pure. The cost per phrase is linear in the length of the text. A status 5.7.x never means a missing
 * mailbox. A full mailbox and an expired retry period are temporary failures.
 */
import { classify, findRule } from '../../classify/classify.ts';
import type { Outcome, Reason, Reply } from '../../model/outcome.ts';
import { CAUSE_RULES, type CauseRule } from './causes.ts';
import { findEnhancedStatus, findReplyCode } from './codes.ts';
import { containsPhrase, normalizeText } from './phrases.ts';

export interface FailureClass {
  readonly permanent: boolean;
  readonly mailboxMissing: boolean;
}

/** A classification. `known` is false if the text contains no known cause and no specific code. */
export interface FailureClassification extends FailureClass {
  readonly known: boolean;
}

const TEMPORARY_FAILURE: FailureClassification = { permanent: false, mailboxMissing: false, known: true };
const REFUSED_FAILURE: FailureClassification = { permanent: true, mailboxMissing: false, known: true };
const MISSING_MAILBOX_FAILURE: FailureClassification = { permanent: true, mailboxMissing: true, known: true };
const UNKNOWN_FAILURE: FailureClassification = { permanent: true, mailboxMissing: false, known: false };

/** Reasons that count as temporary even after a permanent reply. */
const TEMPORARY_REASONS: readonly Reason[] = ['mailbox-full', 'greylisted', 'throttled', 'unavailable', 'connection'];

/**
 * The subject and detail of status codes, without the class (RFC 3463 section 3, the registry of RFC 5248, three-digit
 * codes of Microsoft). Other codes mean that the message was refused, or are too general.
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
/** General status codes. The text of the report is more specific than these codes. */
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
 * Maximum length of the text to which the reply rules are applied. Later text in a transcript belongs to another reply.
 */
const MAX_REPLY_LENGTH = 500;
const MAX_TEXT_LENGTH = 8_000;

/**
 * Classifies a diagnostic or a free text. `status` is the status code of the report, or null. A status code or reply
 * code in the text takes precedence over `status`, because the status of a gateway is often wrong.
 */
export function classifyFailure(source: string, status: string | null): FailureClassification {
  const excerpt = source.slice(0, MAX_TEXT_LENGTH);
  const foundCode = findReplyCode(excerpt);
  const code = foundCode?.code ?? null;
  const enhanced = findEnhancedStatus(excerpt) ?? (code !== null && isGenericStatus(status) ? null : status);
  const text = normalizeText(excerpt);
  const cause = findCauseRule(text);
  const hasCode = code !== null || (enhanced !== null && !GENERIC_DETAILS.has(enhanced.slice(2)));
  const statusDetail = enhanced?.slice(2) ?? '';
  const concernsMailbox = MISSING_MAILBOX_DETAILS.has(statusDetail);
  // Text about a full or suspended mailbox takes precedence over every code, because such a mailbox exists.
  if (cause?.cause === 'temporary' && cause.isVague !== true && !(concernsMailbox && matchesMissingMailbox(text)))
    return TEMPORARY_FAILURE;
  if (isTemporaryClass(code, enhanced)) return TEMPORARY_FAILURE;
  const missing = cause?.cause === 'missing' && !statusDetail.startsWith('7.') && !SENDER_DETAILS.has(statusDetail);
  if (statusDetail === FULL_MAILBOX_DETAIL) return TEMPORARY_FAILURE;
  if (missing && concernsMailbox) return MISSING_MAILBOX_FAILURE;
  // A text without a code is not a reply, so the reply rules do not apply.
  const reply =
    hasCode || cause === null ? classifyReplyText(excerpt.slice(foundCode?.index ?? 0), code, enhanced) : null;
  if (reply !== null) return reply.disabled && missing ? MISSING_MAILBOX_FAILURE : reply;
  if (TEMPORARY_DETAILS.has(statusDetail)) return missing ? MISSING_MAILBOX_FAILURE : TEMPORARY_FAILURE;
  if (concernsMailbox && cause?.cause !== 'refused') return MISSING_MAILBOX_FAILURE;
  if (missing) return MISSING_MAILBOX_FAILURE;
  if (cause?.cause === 'temporary' && (enhanced === null || GENERIC_DETAILS.has(statusDetail)))
    return TEMPORARY_FAILURE;
  const known =
    cause?.cause === 'refused' || code !== null || (enhanced !== null && !GENERIC_DETAILS.has(statusDetail));
  return known ? REFUSED_FAILURE : UNKNOWN_FAILURE;
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

/** Returns true when the reply code or the status has class 4. */
function isTemporaryClass(code: number | null, enhanced: string | null): boolean {
  if (code !== null && code < 500) return true;
  return enhanced?.startsWith('4.') === true;
}

function isGenericStatus(status: string | null): boolean {
  return status !== null && !status.startsWith('5.7.') && GENERIC_DETAILS.has(status.slice(2));
}

/** A classification by a reply rule. `disabled` is true if the mailbox exists but is disabled. */
type ReplyClassification = FailureClassification & { readonly disabled: boolean };

/** Classifies a reply with the rules for SMTP replies. Returns null when no rule matches. */
function classifyReplyText(text: string, code: number | null, enhanced: string | null): ReplyClassification | null {
  const reply: Reply = { stage: 'rcpt', code: code ?? 550, enhanced, text: text.slice(0, MAX_REPLY_LENGTH) };
  return classifyReply(reply) ?? classifyReply({ ...reply, stage: 'content' });
}

function classifyReply(reply: Reply): ReplyClassification | null {
  return findRule(reply) === null ? null : toReplyClassification(classify(reply));
}

function toReplyClassification(outcome: Outcome): ReplyClassification | null {
  switch (outcome.kind) {
    case 'bounced': {
      const disabled = outcome.reason === 'recipient-disabled';
      if (TEMPORARY_REASONS.includes(outcome.reason)) return { ...TEMPORARY_FAILURE, disabled };
      return { ...(outcome.suppress ? MISSING_MAILBOX_FAILURE : REFUSED_FAILURE), disabled };
    }
    case 'deferred':
      // The reason concerns the configuration or reputation of the sender, but the message was refused permanently.
      return { ...(TEMPORARY_REASONS.includes(outcome.reason) ? TEMPORARY_FAILURE : REFUSED_FAILURE), disabled: false };
    case 'delivered':
    case 'unanswered':
      return null;
  }
}

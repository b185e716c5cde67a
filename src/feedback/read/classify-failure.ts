/**
 * Classifies a reported failure: whether it is permanent, and whether the mailbox is missing. `classify` interprets SMTP replies.
 * causes.ts has the rules for the surrounding text. This module defines the precedence of the two.
 *
 * It is pure. The cost is linear in the length of the text for each phrase. A status 5.7.x never means a missing mailbox. A full mailbox and an expired
 * retry period are temporary failures.
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

/** `known` is false if the text contains no known cause and no specific code. */
export interface FailureClassification extends FailureClass {
  readonly known: boolean;
}

const TEMPORARY: FailureClassification = { permanent: false, mailboxMissing: false, known: true };
const REFUSED: FailureClassification = { permanent: true, mailboxMissing: false, known: true };
const MISSING: FailureClassification = { permanent: true, mailboxMissing: true, known: true };
const UNKNOWN: FailureClassification = { permanent: true, mailboxMissing: false, known: false };

/** Reasons that count as temporary even after a permanent reply. */
const TEMPORARY_REASONS: readonly Reason[] = ['mailbox-full', 'greylisted', 'throttled', 'unavailable', 'connection'];

/**
 * Status codes by subject and detail, for every class (RFC 3463 section 3, the registry of RFC 5248, three-digit codes of
 * Microsoft). Other codes mean that the message was refused, or are too general.
 */
const MISSING_STATUS: ReadonlySet<string> = new Set(['1.1', '1.2', '1.3', '1.6', '1.10', '2.1', '4.310']);
const TEMPORARY_STATUS: ReadonlySet<string> = new Set([
  ...['2.2', '3.1', '4.1', '4.2', '4.3', '4.5', '4.7', '4.300', '4.312', '4.316', '4.317'],
  ...['4.318', '4.319', '3.2'],
]);
/** RFC 3463 section 3.3: mailbox full. */
const FULL_STATUS = '2.2';
/** Status codes about the sender's address. */
const SENDER_STATUS: ReadonlySet<string> = new Set(['1.7', '1.8']);
/** General status codes. The text is more specific. */
const GENERIC_STATUS: ReadonlySet<string> = new Set([
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

/** Maximum length of a reply for the reply rules. Later text in a transcript belongs to another reply. */
const MAX_REPLY_LENGTH = 500;
const MAX_TEXT_LENGTH = 8_000;

/**
 * Classifies a text (a diagnostic or free text) together with the status of the report, or null. A status or reply code within the
 * text takes precedence over the status of the report, because the status of a gateway is often wrong.
 */
export function classifyFailure(source: string, status: string | null): FailureClassification {
  const excerpt = source.slice(0, MAX_TEXT_LENGTH);
  const found = findReplyCode(excerpt);
  const code = found?.code ?? null;
  const enhanced = findEnhancedStatus(excerpt) ?? (code !== null && isGeneric(status) ? null : status);
  const text = normalizeText(excerpt);
  const cause = findCauseRule(text);
  const hasCode = code !== null || (enhanced !== null && !GENERIC_STATUS.has(enhanced.slice(2)));
  const detail = enhanced?.slice(2) ?? '';
  const aboutMailbox = MISSING_STATUS.has(detail);
  // Text about a full or suspended mailbox takes precedence over every code, because that mailbox exists.
  if (cause?.cause === 'temporary' && cause.isVague !== true && !(aboutMailbox && matchesMissing(text)))
    return TEMPORARY;
  if (isTemporaryClass(code, enhanced)) return TEMPORARY;
  const missing = cause?.cause === 'missing' && !detail.startsWith('7.') && !SENDER_STATUS.has(detail);
  if (detail === FULL_STATUS) return TEMPORARY;
  if (missing && aboutMailbox) return MISSING;
  // A text without a code is not a reply, so the reply rules do not apply.
  const reply = hasCode || cause === null ? classifyReplyText(excerpt.slice(found?.at ?? 0), code, enhanced) : null;
  if (reply !== null) return reply.disabled && missing ? MISSING : reply;
  if (TEMPORARY_STATUS.has(detail)) return missing ? MISSING : TEMPORARY;
  if (aboutMailbox && cause?.cause !== 'refused') return MISSING;
  if (missing) return MISSING;
  if (cause?.cause === 'temporary' && (enhanced === null || GENERIC_STATUS.has(detail))) return TEMPORARY;
  const known = cause?.cause === 'refused' || code !== null || (enhanced !== null && !GENERIC_STATUS.has(detail));
  return known ? REFUSED : UNKNOWN;
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

function matchesMissing(text: string): boolean {
  return CAUSE_RULES.some(({ cause, phrases }) => cause === 'missing' && containsPhrase(text, phrases));
}

/** Returns true when the reply code or the status has class 4. */
function isTemporaryClass(code: number | null, enhanced: string | null): boolean {
  if (code !== null && code < 500) return true;
  return enhanced?.startsWith('4.') === true;
}

function isGeneric(status: string | null): boolean {
  return status !== null && !status.startsWith('5.7.') && GENERIC_STATUS.has(status.slice(2));
}

/** `disabled`: the mailbox exists but is disabled. */
type ReplyClassification = FailureClassification & { readonly disabled: boolean };

/** Classifies a reply by the reply rules. Returns null when no rule matches. */
function classifyReplyText(text: string, code: number | null, enhanced: string | null): ReplyClassification | null {
  const reply: Reply = { stage: 'rcpt', code: code ?? 550, enhanced, text: text.slice(0, MAX_REPLY_LENGTH) };
  return classifyReply(reply) ?? classifyReply({ ...reply, stage: 'content' });
}

function classifyReply(reply: Reply): ReplyClassification | null {
  return findRule(reply) === null ? null : fromOutcome(classify(reply));
}

function fromOutcome(outcome: Outcome): ReplyClassification | null {
  switch (outcome.kind) {
    case 'bounced': {
      const disabled = outcome.reason === 'recipient-disabled';
      if (TEMPORARY_REASONS.includes(outcome.reason)) return { ...TEMPORARY, disabled };
      return { ...(outcome.suppress ? MISSING : REFUSED), disabled };
    }
    case 'deferred':
      // The sender has a problem with its configuration or reputation. This message was refused permanently.
      return { ...(TEMPORARY_REASONS.includes(outcome.reason) ? TEMPORARY : REFUSED), disabled: false };
    case 'delivered':
    case 'unanswered':
      return null;
  }
}

/**
 * Whether what a report says of a recipient is final, and whether the mailbox is known not to exist. What replies of mail
 * servers mean is asked of `classify`, what is said around them of causes.ts; here is what goes before what.
 *
 * Promises: pure, linear in the text for each phrase; a status 5.7.x never says that a mailbox is missing; a full mailbox
 * and an attempt that was given up after a time are not final.
 */
import { classify, ruleFor } from '../../classify/classify.ts';
import type { Outcome, Reason, Reply } from '../../model/outcome.ts';
import { CAUSE_RULES, type CauseRule } from './causes.ts';
import { findEnhancedStatus, findReplyCode } from './codes.ts';
import { containsPhrase, normalizeText } from './phrases.ts';

export interface FailureClass {
  readonly permanent: boolean;
  readonly mailboxMissing: boolean;
}

/** `sure` is false where nothing in it was known, or only what is said of any failure. */
export interface FailureClassification extends FailureClass {
  readonly known: boolean;
}

const PASSING: FailureClassification = { permanent: false, mailboxMissing: false, known: true };
const REFUSED: FailureClassification = { permanent: true, mailboxMissing: false, known: true };
const MISSING: FailureClassification = { permanent: true, mailboxMissing: true, known: true };
const VAGUE: FailureClassification = { permanent: true, mailboxMissing: false, known: false };

/** Of a reply that was final, what another day may change all the same. */
const PASSING_REASONS: readonly Reason[] = ['mailbox-full', 'greylisted', 'throttled', 'unavailable', 'connection'];

/**
 * Statuses by subject and detail (RFC 3463 section 3, RFC 5248's registry, Microsoft's own of three digits), whatever their
 * class. Those that are not here say that the message was refused, or nothing.
 */
const MISSING_STATUS: ReadonlySet<string> = new Set(['1.1', '1.2', '1.3', '1.6', '1.10', '2.1', '4.310']);
const PASSING_STATUS: ReadonlySet<string> = new Set([
  ...['2.2', '3.1', '4.1', '4.2', '4.3', '4.5', '4.7', '4.300', '4.312', '4.316', '4.317'],
  ...['4.318', '4.319', '3.2'],
]);
/** RFC 3463 section 3.3: mailbox full, and nothing else. */
const FULL_STATUS = '2.2';
/** About the sender's address, whatever the words call it. */
const SENDER_STATUS: ReadonlySet<string> = new Set(['1.7', '1.8']);
/** Statuses that servers send for want of a better one: words say more. */
const LAZY_STATUS: ReadonlySet<string> = new Set([
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

/** As long as replies are that the rules for them were written for; what follows in a transcript is another one. */
const LONGEST_REPLY = 500;
const LONGEST_WORDS = 8_000;

/**
 * Judges `words` (of a server, or of a notice to people) with the status that the report gives besides, or null. A status
 * or reply code within the words counts more than the report's: gateways make theirs up.
 */
export function classifyFailure(words: string, status: string | null): FailureClassification {
  const said = words.slice(0, LONGEST_WORDS);
  const found = findReplyCode(said);
  const code = found?.code ?? null;
  const enhanced = findEnhancedStatus(said) ?? (code !== null && isLazy(status) ? null : status);
  const text = normalizeText(said);
  const cause = findCauseRule(text);
  const coded = code !== null || (enhanced !== null && !LAZY_STATUS.has(enhanced.slice(2)));
  const detail = enhanced?.slice(2) ?? '';
  const aboutMailbox = MISSING_STATUS.has(detail);
  // Text that is plain about a full or sleeping mailbox beats any code: it exists.
  if (cause?.cause === 'passing' && cause.weak !== true && !(aboutMailbox && saysMissing(text))) return PASSING;
  if (isPassingClass(code, enhanced)) return PASSING;
  const missing = cause?.cause === 'missing' && !detail.startsWith('7.') && !SENDER_STATUS.has(detail);
  if (detail === FULL_STATUS) return PASSING;
  if (missing && aboutMailbox) return MISSING;
  // Without a code it is no reply, and rules for replies would read too much into it.
  const reply = coded || cause === null ? judgeReply(said.slice(found?.at ?? 0), code, enhanced) : null;
  if (reply !== null) return reply.disabled && missing ? MISSING : reply;
  if (PASSING_STATUS.has(detail)) return missing ? MISSING : PASSING;
  if (aboutMailbox && cause?.cause !== 'refused') return MISSING;
  if (missing) return MISSING;
  if (cause?.cause === 'passing' && (enhanced === null || LAZY_STATUS.has(detail))) return PASSING;
  const known = cause?.cause === 'refused' || code !== null || (enhanced !== null && !LAZY_STATUS.has(detail));
  return known ? REFUSED : VAGUE;
}

/** The first rule that holds, or null. */
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

function saysMissing(text: string): boolean {
  return CAUSE_RULES.some(({ cause, phrases: words }) => cause === 'missing' && containsPhrase(text, words));
}

/** Class 4 in the reply code or in the status is not final, whichever of the two says so. */
function isPassingClass(code: number | null, enhanced: string | null): boolean {
  if (code !== null && code < 500) return true;
  return enhanced?.startsWith('4.') === true;
}

function isLazy(status: string | null): boolean {
  return status !== null && !status.startsWith('5.7.') && LAZY_STATUS.has(status.slice(2));
}

/** `disabled`: there was such a mailbox, and the rules for replies do not say whether it will be again. */
type ReplyJudgement = FailureClassification & { readonly disabled: boolean };

/** What the rules for replies know of it; null where they know nothing, or the words are no reply. */
function judgeReply(words: string, code: number | null, enhanced: string | null): ReplyJudgement | null {
  const reply: Reply = { stage: 'rcpt', code: code ?? 550, enhanced, text: words.slice(0, LONGEST_REPLY) };
  return judgementOf(reply) ?? judgementOf({ ...reply, stage: 'content' });
}

function judgementOf(reply: Reply): ReplyJudgement | null {
  return ruleFor(reply) === null ? null : fromOutcome(classify(reply));
}

function fromOutcome(outcome: Outcome): ReplyJudgement | null {
  switch (outcome.kind) {
    case 'bounced': {
      const disabled = outcome.reason === 'recipient-disabled';
      if (PASSING_REASONS.includes(outcome.reason)) return { ...PASSING, disabled };
      return { ...(outcome.suppress ? MISSING : REFUSED), disabled };
    }
    case 'deferred':
      // Our own configuration or reputation: mended for the next message, and this one was refused for good.
      return { ...(PASSING_REASONS.includes(outcome.reason) ? PASSING : REFUSED), disabled: false };
    case 'delivered':
    case 'unanswered':
      return null;
  }
}

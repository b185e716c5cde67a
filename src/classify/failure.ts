/**
 * Determines the class and the category of a failed attempt (model/failure.ts). The class is `hard` for an attempt that
 * suppresses its recipient and for a bounce of the mailbox simulator, which suppresses nobody, and for no other attempt.
 */
import type { Failure, FailureCategory } from '../model/failure.ts';
import type { HistoryEntry } from '../model/message.ts';
import { type Attempt, type Outcome, type Reason, SIMULATOR } from '../model/outcome.ts';
import { getReason } from './classify.ts';
import { judge } from './judge.ts';

/** The category of a failure by its reason, if no rule of rules.ts has a more specific category. */
const CATEGORIES_BY_REASON: Readonly<Record<Reason, FailureCategory>> = {
  'recipient-unknown': 'mailbox-unknown',
  'recipient-disabled': 'mailbox-disabled',
  'mailbox-full': 'mailbox-full',
  'sender-refused': 'policy',
  content: 'content',
  size: 'size',
  policy: 'policy',
  reputation: 'reputation',
  configuration: 'auth',
  throttled: 'throttled',
  greylisted: 'greylisted',
  unavailable: 'network',
  connection: 'network',
  smtputf8: 'content',
  unknown: 'unknown',
};

/**
 * Reasons of failures that end by themselves: the recipient or the server cannot receive the message now. A failure
 * with any other reason is a refusal, unless its reply is temporary and its reason is `unknown`.
 */
const SOFT_REASONS: readonly Reason[] = [
  'recipient-disabled',
  'mailbox-full',
  'throttled',
  'greylisted',
  'unavailable',
  'connection',
];

/** Reasons that more than one verdict has. */
const AMBIGUOUS_REASONS: readonly Reason[] = ['recipient-unknown', 'recipient-disabled', 'unavailable'];

/**
 * Returns the class and the category of the outcome, or null if the attempt did not fail or its result is not known. The
 * reason decides. Of an ambiguous reason, the rules decide, unless the relay’s own rules gave it.
 */
export function classifyOutcome(outcome: Outcome): Failure | null {
  if (outcome.kind === 'delivered' || outcome.kind === 'unanswered') return null;
  const { reply, reason } = outcome;
  const suppresses = outcome.kind === 'bounced' && outcome.suppress;
  if (AMBIGUOUS_REASONS.includes(reason) && reply.code !== null) {
    const { verdict } = judge(reply);
    if (getReason(verdict) === reason && suppresses === (verdict.class === 'hard'))
      return { class: verdict.class, category: verdict.category };
  }
  const isSoft = SOFT_REASONS.includes(reason) || (outcome.kind === 'deferred' && reason === 'unknown');
  return { class: suppresses ? 'hard' : isSoft ? 'soft' : 'block', category: CATEGORIES_BY_REASON[reason] };
}

/**
 * Returns the class and the category of the attempt as `classifyOutcome` does. A bounce of the mailbox simulator is
 * hard.
 */
export function classifyAttempt({ outcome, remote }: Pick<Attempt, 'outcome' | 'remote'>): Failure | null {
  const failure = classifyOutcome(outcome);
  return failure !== null && outcome.kind === 'bounced' && remote === SIMULATOR
    ? { ...failure, class: 'hard' }
    : failure;
}

/**
 * Returns the recorded failure of a history entry, or null. For an attempt that an earlier version recorded without a
 * failure, the failure is derived from the outcome of the attempt.
 */
export function classifyEntry({ attempt, failure }: Pick<HistoryEntry, 'attempt' | 'failure'>): Failure | null {
  return failure ?? (attempt === null ? null : classifyAttempt(attempt));
}

/**
 * Determines the class and the category of a failed attempt (model/failure.ts). The classification of bounce messages
 * uses the same function for the replies that they contain.
 *
 * Guarantees: the functions are pure. The class is `hard` for an attempt that suppresses its recipient and for a
 * simulated bounce, and for no other attempt. The mailbox simulator suppresses no recipient, but its bounces have the
 * class of real bounces.
 */
import type { Failure, FailureCategory } from '../model/failure.ts';
import type { HistoryEntry } from '../model/message.ts';
import { type Attempt, type Outcome, type Reason, SIMULATOR } from '../model/outcome.ts';
import { findRule } from './classify.ts';

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

/**
 * Returns the class and the category of the outcome, or null if the attempt did not fail or its result is not known.
 */
export function classifyOutcome(outcome: Outcome): Failure | null {
  switch (outcome.kind) {
    case 'delivered':
    case 'unanswered':
      return null;
    case 'bounced': {
      const refusalClass = SOFT_REASONS.includes(outcome.reason) ? 'soft' : 'block';
      return { class: outcome.suppress ? 'hard' : refusalClass, category: findCategory(outcome) };
    }
    case 'deferred': {
      const isSoft = outcome.reason === 'unknown' || SOFT_REASONS.includes(outcome.reason);
      return { class: isSoft ? 'soft' : 'block', category: findCategory(outcome) };
    }
  }
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

/**
 * Returns the category of the reason. If the reason is `recipient-unknown` and the matching rule has the same reason,
 * returns the category of the rule. The matching rule has another reason if the rules of an earlier version determined
 * the outcome.
 */
function findCategory({ reply, reason }: Extract<Outcome, { reason: Reason }>): FailureCategory {
  if (reason !== 'recipient-unknown') return CATEGORIES_BY_REASON[reason];
  const rule = findRule(reply);
  return rule !== null && rule.result.reason === reason && rule.category !== undefined
    ? rule.category
    : CATEGORIES_BY_REASON[reason];
}

/** A reply with a 4yz, malformed or missing code never bounces a message. */

import type { Failure, FailureCategory, FailureRule, Verdict } from '../model/failure.ts';
import type { HistoryEntry } from '../model/message.ts';
import { type Attempt, type Outcome, type Reason, type Reply, SIMULATOR } from '../model/outcome.ts';
import { judge } from './judge.ts';

export function classify(reply: Reply, relayRules: readonly FailureRule[] = []): Outcome {
  const { code, stage } = reply;
  if (code === null) return { kind: 'deferred', reply, reason: 'connection', scope: 'transport' };
  // RFC 5321 section 4.2: the second digit of a reply code is 0 to 5.
  if (code >= 200 && code < 260 && stage === 'content') return { kind: 'delivered', reply };
  const { verdict, replyClass } = judge(reply, relayRules);
  const reason = getReason(verdict);
  if (replyClass === 5 && isFinal(verdict, reply))
    return { kind: 'bounced', reply, reason, suppress: verdict.class === 'hard' };
  return { kind: 'deferred', reply, reason, scope: verdict.scope === 'route' ? 'transport' : 'message' };
}

/** A later attempt can succeed when the operator has acted, by another route, or at a lower rate. */
function isFinal({ category, scope }: Verdict, { stage }: Reply): boolean {
  if (category === 'auth' || category === 'throttled' || category === 'greylisted') return false;
  // After the content, a bad reputation concerns what this message contains.
  return scope !== 'route' || (category === 'reputation' && (stage === 'data' || stage === 'content'));
}

function getReason({ category, scope }: Verdict): Reason {
  switch (category) {
    case 'mailbox-unknown':
    case 'domain':
      return 'recipient-unknown';
    case 'mailbox-disabled':
      return 'recipient-disabled';
    case 'policy':
      return scope === 'sender' ? 'sender-refused' : 'policy';
    case 'auth':
      return 'configuration';
    case 'network':
      return 'unavailable';
    case 'mailbox-full':
    case 'reputation':
    case 'content':
    case 'size':
    case 'throttled':
    case 'greylisted':
    case 'unknown':
      return category;
  }
}

export const ALARMING_REASONS = ['configuration', 'reputation'] as const satisfies readonly Reason[];

type AlarmOutcome = Extract<Outcome, { reason: Reason }> & { readonly reason: (typeof ALARMING_REASONS)[number] };

export function raisesAlarm(outcome: Outcome): outcome is AlarmOutcome {
  return 'reason' in outcome && ALARMING_REASONS.some((reason) => reason === outcome.reason);
}

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

/** The recipient or the server cannot receive now. Other reasons refuse, unless a temporary reply is `unknown`. */
const SOFT_REASONS: readonly Reason[] = [
  'recipient-disabled',
  'mailbox-full',
  'throttled',
  'greylisted',
  'unavailable',
  'connection',
];

const AMBIGUOUS_REASONS: readonly Reason[] = ['recipient-unknown', 'recipient-disabled', 'unavailable'];

/** Null without a failure or a known result. Rules decide ambiguous reasons, unless they are the relay’s own. */
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

/** A bounce of the mailbox simulator is hard, and suppresses nobody. */
export function classifyAttempt({ outcome, remote }: Pick<Attempt, 'outcome' | 'remote'>): Failure | null {
  const failure = classifyOutcome(outcome);
  return failure !== null && outcome.kind === 'bounced' && remote === SIMULATOR
    ? { ...failure, class: 'hard' }
    : failure;
}

/** Of an attempt without a recorded failure, the outcome decides. */
export function classifyEntry({ attempt, failure }: Pick<HistoryEntry, 'attempt' | 'failure'>): Failure | null {
  return failure ?? (attempt === null ? null : classifyAttempt(attempt));
}

/**
 * Turns the reply of a next hop into the outcome of an attempt. A reply with a 4yz, malformed or missing code never
 * bounces a message. An unknown failure before the message is temporary.
 */
import type { FailureRule, Verdict } from '../model/failure-rule.ts';
import type { Outcome, Reason, Reply } from '../model/outcome.ts';
import { judge } from './judge.ts';

/**
 * Returns the outcome of an attempt that ended with this reply. `relayRules` are the rules of the relay that replied.
 */
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

/** Returns true unless a later attempt can succeed: when the operator has acted, by another route, or at a lower rate. */
function isFinal({ category, scope }: Verdict, { stage }: Reply): boolean {
  if (category === 'auth' || category === 'throttled' || category === 'greylisted') return false;
  // After the content, a bad reputation concerns what this message contains.
  return scope !== 'route' || (category === 'reputation' && (stage === 'data' || stage === 'content'));
}

export function getReason({ category, scope }: Verdict): Reason {
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

/** Reasons that concern the configuration or the reputation of this service. An operator must correct the cause. */
export const ALARMING_REASONS = ['configuration', 'reputation'] as const satisfies readonly Reason[];

type AlarmOutcome = Extract<Outcome, { reason: Reason }> & { readonly reason: (typeof ALARMING_REASONS)[number] };

/** Returns true if an operator must act on the outcome. */
export function raisesAlarm(outcome: Outcome): outcome is AlarmOutcome {
  return 'reason' in outcome && ALARMING_REASONS.some((reason) => reason === outcome.reason);
}

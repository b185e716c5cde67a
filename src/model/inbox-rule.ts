/**
 * The rules of the inbox. A rule answers delivery attempts to an address or to a domain in place of `capture:`, so that
 * a developer can test the error handling of a program. The retries of the message, the suppression of its recipient
 * and the webhooks are the same as after a real failure.
 */
import type { Reply } from './outcome.ts';

export type InboxRuleAnswer =
  /** The attempt ends with this SMTP reply to RCPT, which is classified like the reply of a server. */
  | { readonly kind: 'reply'; readonly code: number; readonly enhanced: string | null; readonly text: string }
  /** The message is captured after a delay. */
  | { readonly kind: 'delay'; readonly delayMs: number }
  /** The connection is lost before the message is complete. */
  | { readonly kind: 'disconnect' }
  /** The connection is lost after the final dot, so it is unknown whether the message was delivered. */
  | { readonly kind: 'unanswered' };

export const INBOX_ANSWER_KINDS = [
  'reply',
  'delay',
  'disconnect',
  'unanswered',
] as const satisfies readonly InboxRuleAnswer['kind'][];

export interface NewInboxRule {
  /** A canonical address, or a domain in lower-case A-labels. Only an address contains an `@`. */
  readonly match: string;
  readonly answer: InboxRuleAnswer;
  /** The number of delivery attempts that the rule answers. */
  readonly times: number;
  readonly expiresAt: number;
}

export interface InboxRule extends NewInboxRule {
  readonly id: number;
  readonly createdAt: number;
  /** The number of delivery attempts that the rule has answered. */
  readonly used: number;
  /** The last delivery attempt that the rule answered, or null. */
  readonly lastUse: { readonly messageId: string; readonly recipient: string; readonly at: number } | null;
}

/** A delivery attempt that a rule may answer. */
export interface InboxRuleRequest {
  readonly messageId: string;
  /** The canonical address of the recipient. */
  readonly recipient: string;
  readonly domain: string;
}

/** The maximum number of rules that can answer attempts, and the number of ended rules that stay in the list. */
export const MAX_ACTIVE_INBOX_RULES = 50;
export const MAX_ENDED_INBOX_RULES = 50;

/** `used`: the rule has answered all its attempts. */
export type InboxRuleStatus = 'active' | 'used' | 'expired';

export function getInboxRuleStatus({ used, times, expiresAt }: InboxRule, now: number): InboxRuleStatus {
  if (used >= times) return 'used';
  return expiresAt <= now ? 'expired' : 'active';
}

/** Returns the members of a rule that an audit log entry contains. */
export function toAuditedInboxRule({ answer, times, expiresAt }: NewInboxRule) {
  return { answer: formatInboxAnswer(answer), times, expiresAt };
}

/** Returns the answer on one line, such as `451 4.3.0 Try again later`. */
export function formatInboxAnswer(answer: InboxRuleAnswer): string {
  switch (answer.kind) {
    case 'reply':
      return [String(answer.code), answer.enhanced, answer.text].filter((part) => part !== null).join(' ');
    case 'delay':
      return `250 after ${answer.delayMs < 1_000 ? `${answer.delayMs} ms` : `${answer.delayMs / 1_000} s`}`;
    case 'disconnect':
      return 'connection lost before the end of the message';
    case 'unanswered':
      return 'connection lost after the final dot';
  }
}

/** Returns the SMTP reply of an answer to RCPT. */
export function toReply({ code, enhanced, text }: Extract<InboxRuleAnswer, { kind: 'reply' }>): Reply {
  return { stage: 'rcpt', code, enhanced, text };
}

/**
 * Assigns active rules to delivery attempts, in the order of the attempts. A rule for the address takes precedence over
 * a rule for the domain, and an older rule over a newer rule. Returns the rule of each attempt (null if none matches),
 * and the changed rules.
 */
export function assignInboxRules(
  activeRules: readonly InboxRule[],
  requests: readonly InboxRuleRequest[],
  now: number,
): { readonly assignedRules: readonly (InboxRule | null)[]; readonly changedRules: readonly InboxRule[] } {
  const rules = new Map(activeRules.map((rule) => [rule.id, rule]));
  const changedIds = new Set<number>();
  const assignedRules = requests.map((request) => {
    const rule = findRule([...rules.values()], request, now);
    if (rule === null) return null;
    const { messageId, recipient } = request;
    const usedRule = { ...rule, used: rule.used + 1, lastUse: { messageId, recipient, at: now } };
    rules.set(rule.id, usedRule);
    changedIds.add(rule.id);
    return usedRule;
  });
  return { assignedRules, changedRules: [...rules.values()].filter(({ id }) => changedIds.has(id)) };
}

function findRule(rules: readonly InboxRule[], request: InboxRuleRequest, now: number): InboxRule | null {
  const findOldestRule = (match: string): InboxRule | null =>
    rules
      .filter((rule) => rule.match === match && getInboxRuleStatus(rule, now) === 'active')
      .sort((one, other) => one.id - other.id)[0] ?? null;
  return findOldestRule(request.recipient) ?? findOldestRule(request.domain);
}

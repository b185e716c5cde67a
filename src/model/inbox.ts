/** The types of the inbox: the messages that the transport `capture:` stored instead of sending them. */
import type { Reply } from './outcome.ts';

export interface InboxEntry {
  readonly id: string;
  readonly at: number;
  /** Decoded. */
  readonly from: string;
  /** The envelope sender. */
  readonly returnPath: string;
  readonly to: string;
  readonly subject: string;
}

export interface Inbox {
  /** In the reverse order of acceptance, before the message with the id `before`. */
  list(limit: number, before?: string | null): Promise<readonly InboxEntry[]>;
  findEntry(id: string): Promise<InboxEntry | null>;
  findSource(id: string): Promise<Uint8Array | null>;
}

// The rules of the inbox answer attempts in place of `capture:`, so that a developer can test error handling.

export type InboxRuleAnswer =
  /** Classified like the reply of a server to RCPT. */
  | { readonly kind: 'reply'; readonly code: number; readonly enhanced: string | null; readonly text: string }
  | { readonly kind: 'delay'; readonly delayMs: number }
  /** Before the message is complete. */
  | { readonly kind: 'disconnect' }
  /** After the final dot, so it is unknown whether the message was delivered. */
  | { readonly kind: 'unanswered' };

export const INBOX_ANSWER_KINDS = [
  'reply',
  'delay',
  'disconnect',
  'unanswered',
] as const satisfies readonly InboxRuleAnswer['kind'][];

export interface NewInboxRule {
  /** A canonical address, or a domain in lower-case A-labels. */
  readonly match: string;
  readonly answer: InboxRuleAnswer;
  readonly times: number;
  readonly expiresAt: number;
}

export interface InboxRule extends NewInboxRule {
  readonly id: number;
  readonly createdAt: number;
  readonly used: number;
  readonly lastUse: { readonly messageId: string; readonly recipient: string; readonly at: number } | null;
}

export interface InboxRuleRequest {
  readonly messageId: string;
  /** Canonical. */
  readonly recipient: string;
  readonly domain: string;
}

export const MAX_ACTIVE_INBOX_RULES = 50;
export const MAX_ENDED_INBOX_RULES = 50;

export type InboxRuleStatus = 'active' | 'used' | 'expired';

export function getInboxRuleStatus({ used, times, expiresAt }: InboxRule, now: number): InboxRuleStatus {
  if (used >= times) return 'used';
  return expiresAt <= now ? 'expired' : 'active';
}

export function toAuditedInboxRule({ answer, times, expiresAt }: NewInboxRule) {
  return { answer: formatInboxAnswer(answer), times, expiresAt };
}

/** Such as `451 4.3.0 Try again later`. */
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

export function toReply({ code, enhanced, text }: Extract<InboxRuleAnswer, { kind: 'reply' }>): Reply {
  return { stage: 'rcpt', code, enhanced, text };
}

/** A rule for the address precedes one for the domain, and an older rule a newer one. Null: no rule matches. */
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

/** Converts rows of inbox rules. Shared by both databases. */
import { getInboxRuleStatus, type InboxRule, type InboxRuleAnswer, MAX_ENDED_INBOX_RULES } from '../../model/inbox.ts';
import * as rows from './rows.ts';

export function toInboxRule(row: rows.Row): InboxRule {
  const [messageId, recipient] = [rows.readTextOrNull(row, 'last_message'), rows.readTextOrNull(row, 'last_recipient')];
  const lastUsedAt = rows.readIntegerOrNull(row, 'last_used_at');
  return {
    id: rows.readInteger(row, 'id'),
    match: rows.readText(row, 'target'),
    answer: JSON.parse(rows.readText(row, 'answer')) as InboxRuleAnswer,
    times: rows.readInteger(row, 'times'),
    used: rows.readInteger(row, 'used'),
    createdAt: rows.readInteger(row, 'created_at'),
    expiresAt: rows.readInteger(row, 'expires_at'),
    lastUse:
      messageId === null || recipient === null || lastUsedAt === null ? null : { messageId, recipient, at: lastUsedAt },
  };
}

/** Returns the ids of the ended rules that must be deleted. */
export function findPurgedInboxRules(rules: readonly InboxRule[], now: number): readonly number[] {
  return rules
    .filter((rule) => getInboxRuleStatus(rule, now) !== 'active')
    .map(({ id }) => id)
    .sort((one, other) => other - one)
    .slice(MAX_ENDED_INBOX_RULES);
}

/** Stores the rules of the inbox. Each operation runs in its own transaction or savepoint. */
import type { DatabaseSync } from 'node:sqlite';
import type { Actor } from '../../model/audit.ts';
import {
  assignInboxRules,
  getInboxRuleStatus,
  type InboxRule,
  type InboxRuleRequest,
  MAX_ACTIVE_INBOX_RULES,
  type NewInboxRule,
  toAuditedInboxRule,
} from '../../model/inbox-rule.ts';
import { findPurgedInboxRules, toInboxRule } from '../rules/inbox-rules.ts';
import type { Audit } from './audit.ts';

export function prepareInboxRules(database: DatabaseSync, audit: Audit) {
  const selectAll = database.prepare('SELECT * FROM inbox_rule ORDER BY id DESC');
  const selectActive = database.prepare('SELECT * FROM inbox_rule WHERE used < times AND expires_at > ?');
  const insertRule = database.prepare(
    'INSERT INTO inbox_rule (target, answer, times, created_at, expires_at) VALUES (?, ?, ?, ?, ?) RETURNING *',
  );
  const deleteRule = database.prepare('DELETE FROM inbox_rule WHERE id = ? RETURNING *');
  const updateUse = database.prepare(
    'UPDATE inbox_rule SET used = ?, last_message = ?, last_recipient = ?, last_used_at = ? WHERE id = ?',
  );

  return {
    addInboxRule(rule: NewInboxRule, now: number, actor?: Actor) {
      const rules = selectAll.all().map(toInboxRule);
      if (
        rules.filter((storedRule) => getInboxRuleStatus(storedRule, now) === 'active').length >= MAX_ACTIVE_INBOX_RULES
      )
        return { kind: 'full' } as const;
      for (const id of findPurgedInboxRules(rules, now)) deleteRule.run(id);
      const { match, answer, times, expiresAt } = rule;
      const addedRule = toInboxRule(insertRule.get(match, JSON.stringify(answer), times, now, expiresAt) ?? {});
      audit.writeChange(actor, 'inbox.add-rule', match, null, toAuditedInboxRule(rule));
      return { kind: 'added', rule: addedRule } as const;
    },
    listInboxRules: (): InboxRule[] => selectAll.all().map(toInboxRule),
    removeInboxRule(id: number, actor?: Actor) {
      const row = deleteRule.get(id);
      if (row === undefined) return { kind: 'missing' } as const;
      const value = toInboxRule(row);
      audit.writeChange(actor, 'inbox.remove-rule', value.match, toAuditedInboxRule(value), null);
      return { kind: 'done', value } as const;
    },
    consumeInboxRules(batch: readonly InboxRuleRequest[], now: number): readonly (InboxRule | null)[] {
      const { assignedRules, changedRules } = assignInboxRules(selectActive.all(now).map(toInboxRule), batch, now);
      for (const { id, used, lastUse } of changedRules)
        updateUse.run(used, lastUse?.messageId ?? null, lastUse?.recipient ?? null, lastUse?.at ?? null, id);
      return assignedRules;
    },
  };
}

/** Stores the rules of the inbox. Locks on the rows keep the number of uses of each rule exact on all nodes. */
import {
  assignInboxRules,
  getInboxRuleStatus,
  MAX_ACTIVE_INBOX_RULES,
  toAuditedInboxRule,
} from '../../model/inbox-rule.ts';
import type { InboxRuleStore } from '../inbox-rule-store.ts';
import { findPurgedInboxRules, toInboxRule } from '../rules/inbox-rules.ts';
import { writeChange } from './audit.ts';
import { type Database, forceDurableCommit, type Statement } from './session.ts';

const SELECT_ALL: Statement = { name: 'inbox_rule_all', text: 'SELECT * FROM inbox_rule ORDER BY id DESC' };
/** This lock serializes concurrent additions, so that the number of active rules cannot exceed the maximum. */
const LOCK_ADDITIONS: Statement = {
  name: 'inbox_rule_lock',
  text: 'LOCK TABLE inbox_rule IN SHARE ROW EXCLUSIVE MODE',
};
const HAS_ACTIVE_RULE: Statement = {
  name: 'inbox_rule_active',
  text: 'SELECT 1 AS one FROM inbox_rule WHERE used < times AND expires_at > $1 LIMIT 1',
};
/**
 * All transactions lock the rules in the order of their ids. A rule whose last use another transaction has consumed is
 * omitted.
 */
const LOCK_MATCHING_RULES: Statement = {
  name: 'inbox_rule_matching',
  text: `SELECT * FROM inbox_rule WHERE target = ANY($1::text[]) AND used < times AND expires_at > $2
    ORDER BY id FOR UPDATE`,
};
const INSERT_RULE: Statement = {
  name: 'inbox_rule_insert',
  text: `INSERT INTO inbox_rule (target, answer, times, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)
    RETURNING *`,
};
const DELETE_RULES: Statement = {
  name: 'inbox_rule_delete',
  text: 'DELETE FROM inbox_rule WHERE id = ANY($1::integer[]) RETURNING *',
};
const UPDATE_USES: Statement = {
  name: 'inbox_rule_use',
  text: `UPDATE inbox_rule r SET used = u.used, last_message = u.message, last_recipient = u.recipient, last_used_at = $5
    FROM unnest($1::integer[], $2::integer[], $3::uuid[], $4::text[]) AS u(id, used, message, recipient)
    WHERE r.id = u.id`,
};

export function prepareInboxRules(database: Database): InboxRuleStore {
  return {
    addInboxRule: (rule, now, actor) =>
      database.transaction(async (transaction) => {
        await transaction.query(LOCK_ADDITIONS, []);
        const rules = (await transaction.query(SELECT_ALL, [])).map(toInboxRule);
        if (rules.filter((one) => getInboxRuleStatus(one, now) === 'active').length >= MAX_ACTIVE_INBOX_RULES) {
          await forceDurableCommit(transaction);
          return { kind: 'full' };
        }
        const purgedIds = findPurgedInboxRules(rules, now);
        if (purgedIds.length > 0) await transaction.query(DELETE_RULES, [purgedIds]);
        const { match, answer, times, expiresAt } = rule;
        const [row = {}] = await transaction.query(INSERT_RULE, [match, JSON.stringify(answer), times, now, expiresAt]);
        await writeChange(transaction, actor, 'inbox.add-rule', match, null, toAuditedInboxRule(rule));
        return { kind: 'added', rule: toInboxRule(row) };
      }),
    async listInboxRules() {
      return (await database.query(SELECT_ALL, [])).map(toInboxRule);
    },
    removeInboxRule: (id, actor) =>
      database.transaction(async (transaction) => {
        const [row] = await transaction.query(DELETE_RULES, [[id]]);
        if (row === undefined) return { kind: 'missing' };
        const value = toInboxRule(row);
        await writeChange(transaction, actor, 'inbox.remove-rule', value.match, toAuditedInboxRule(value), null);
        return { kind: 'done', value };
      }),
    async consumeInboxRules(batch, now) {
      if ((await database.query(HAS_ACTIVE_RULE, [now])).length === 0) return batch.map(() => null);
      return database.transaction(async (transaction) => {
        const targets = [...new Set(batch.flatMap(({ recipient, domain }) => [recipient, domain]))];
        const rules = (await transaction.query(LOCK_MATCHING_RULES, [targets, now])).map(toInboxRule);
        const { assignedRules, changedRules } = assignInboxRules(rules, batch, now);
        if (changedRules.length > 0)
          await transaction.query(UPDATE_USES, [
            changedRules.map(({ id }) => id),
            changedRules.map(({ used }) => used),
            changedRules.map(({ lastUse }) => lastUse?.messageId ?? null),
            changedRules.map(({ lastUse }) => lastUse?.recipient ?? null),
            now,
          ]);
        return assignedRules;
      });
    },
  };
}

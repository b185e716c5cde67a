/** Stores the rules of the inbox. Locks on the rows keep the number of uses of each rule exact on all nodes. */
import type { Actor } from '../model/audit.ts';
import {
  assignInboxRules,
  getInboxRuleStatus,
  type InboxRule,
  type InboxRuleRequest,
  MAX_ACTIVE_INBOX_RULES,
  type NewInboxRule,
  toAuditedInboxRule,
} from '../model/inbox.ts';
import { writeAudit } from './audit.ts';
import { findPurgedInboxRules, toInboxRule } from './rules/inbox-rules.ts';
import { forceDurableCommit, type Transaction } from './transaction.ts';

const SELECT_ALL = 'SELECT * FROM inbox_rule ORDER BY id DESC';
const DELETE_RULES = 'DELETE FROM inbox_rule WHERE id = ANY($1::integer[]) RETURNING *';

export async function addInboxRule(
  tx: Transaction,
  rule: NewInboxRule,
  now: number,
  actor?: Actor,
): Promise<{ readonly kind: 'added'; readonly rule: InboxRule } | { readonly kind: 'full' }> {
  // The lock serializes concurrent additions, so that the number of active rules cannot exceed the maximum.
  if (tx.dialect === 'postgres') await tx.query('LOCK TABLE inbox_rule IN SHARE ROW EXCLUSIVE MODE');
  const rules = (await tx.query(SELECT_ALL)).map(toInboxRule);
  if (rules.filter((one) => getInboxRuleStatus(one, now) === 'active').length >= MAX_ACTIVE_INBOX_RULES) {
    await forceDurableCommit(tx);
    return { kind: 'full' };
  }
  await tx.query(DELETE_RULES, [findPurgedInboxRules(rules, now)]);
  const { match, answer, times, expiresAt } = rule;
  const [row = {}] = await tx.query(
    `INSERT INTO inbox_rule (target, answer, times, created_at, expires_at) VALUES ($1, $2, $3, $4, $5) RETURNING *`,
    [match, JSON.stringify(answer), times, now, expiresAt],
  );
  await writeAudit(tx, actor, 'inbox.add-rule', match, null, toAuditedInboxRule(rule));
  return { kind: 'added', rule: toInboxRule(row) };
}

export async function listInboxRules(tx: Transaction): Promise<readonly InboxRule[]> {
  return (await tx.query(SELECT_ALL)).map(toInboxRule);
}

export async function removeInboxRule(
  tx: Transaction,
  id: number,
  actor?: Actor,
): Promise<{ readonly kind: 'done'; readonly value: InboxRule } | { readonly kind: 'missing' }> {
  const [row] = await tx.query(DELETE_RULES, [[id]]);
  if (row === undefined) return { kind: 'missing' };
  const value = toInboxRule(row);
  await writeAudit(tx, actor, 'inbox.remove-rule', value.match, toAuditedInboxRule(value), null);
  return { kind: 'done', value };
}

/** All transactions lock the rules in order of id, so a rule whose last use another transaction took is left out. */
export async function consumeInboxRules(
  tx: Transaction,
  batch: readonly InboxRuleRequest[],
  now: number,
): Promise<readonly (InboxRule | null)[]> {
  const targets = [...new Set(batch.flatMap(({ recipient, domain }) => [recipient, domain]))];
  const matching = await tx.query(
    `SELECT * FROM inbox_rule WHERE target = ANY($1::text[]) AND used < times AND expires_at > $2 ORDER BY id FOR UPDATE`,
    [targets, now],
  );
  const { assignedRules, changedRules } = assignInboxRules(matching.map(toInboxRule), batch, now);
  await Promise.all(
    changedRules.map(({ id, used, lastUse }) =>
      tx.query(
        'UPDATE inbox_rule SET used = $1, last_message = $2, last_recipient = $3, last_used_at = $4 WHERE id = $5',
        [used, lastUse?.messageId ?? null, lastUse?.recipient ?? null, now, id],
      ),
    ),
  );
  return assignedRules;
}

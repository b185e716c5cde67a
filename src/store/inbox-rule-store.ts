/**
 * Defines the role of the store for the rules of the inbox. These rules answer delivery attempts in place of the
 * transport `capture:`.
 */
import type { Actor } from '../model/audit.ts';
import type { InboxRule, InboxRuleRequest, NewInboxRule } from '../model/inbox-rule.ts';

export interface InboxRuleStore {
  /**
   * Adds a rule. Resolves to `full` if `MAX_ACTIVE_INBOX_RULES` rules are active. Of the ended rules, only the newest
   * `MAX_ENDED_INBOX_RULES` rules remain stored.
   */
  addInboxRule(
    rule: NewInboxRule,
    now: number,
    actor?: Actor,
  ): Promise<{ readonly kind: 'added'; readonly rule: InboxRule } | { readonly kind: 'full' }>;
  /** Lists the active rules and the stored ended rules, newest first. */
  listInboxRules(): Promise<readonly InboxRule[]>;
  removeInboxRule(
    id: number,
    actor?: Actor,
  ): Promise<{ readonly kind: 'done'; readonly value: InboxRule } | { readonly kind: 'missing' }>;
  /**
   * Assigns rules to delivery attempts (`assignInboxRules`) and counts their uses in one transaction, so that a rule
   * answers at most `times` attempts on all nodes. Resolves to the rule of each attempt, or to null for an attempt
   * without a rule. Without an active rule, the call writes nothing.
   */
  consumeInboxRules(batch: readonly InboxRuleRequest[], now: number): Promise<readonly (InboxRule | null)[]>;
}

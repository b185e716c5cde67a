/**
 * Assigns the rules of the inbox to attempts in batches, so that concurrent delivery attempts share a transaction of
 * the store.
 */
import type { MonotonicClock } from '../clock.ts';
import type { InboxRule, InboxRuleRequest } from '../model/inbox-rule.ts';
import { createGroupCommit } from '../store/commits.ts';
import type { InboxRuleStore } from '../store/inbox-rule-store.ts';
import type { ConsumeInboxRule } from '../transports/capture/rules.ts';

/** The maximum number of attempts in one batch. The transport `capture:` makes at most 16 attempts at the same time. */
const MAX_BATCH_ATTEMPTS = 16;

export function createConsumeInboxRule(
  store: Pick<InboxRuleStore, 'consumeInboxRules'>,
  clock: MonotonicClock,
): ConsumeInboxRule {
  const { submit } = createGroupCommit<InboxRuleRequest, { readonly rule: InboxRule | null }>(
    async (batch) => (await store.consumeInboxRules(batch, clock.now())).map((rule) => ({ rule })),
    { maxBatch: MAX_BATCH_ATTEMPTS, now: clock.monotonic },
  );
  return async (request) => (await submit(request)).rule;
}

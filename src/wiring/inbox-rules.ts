/** Takes the rules of the inbox in batches, so that concurrent delivery attempts share a transaction of the store. */
import type { MonotonicClock } from '../clock.ts';
import type { InboxRule, InboxRuleRequest } from '../model/inbox-rule.ts';
import { createGroupCommit } from '../store/commits.ts';
import type { InboxRuleStore } from '../store/inbox-rule-store.ts';
import type { TakeInboxRule } from '../transports/capture/rules.ts';

/** The number of attempts in one batch. `capture:` makes at most 16 attempts at the same time. */
const MAX_BATCH = 16;

export function createTakeInboxRule(
  store: Pick<InboxRuleStore, 'takeInboxRules'>,
  clock: MonotonicClock,
): TakeInboxRule {
  const { submit } = createGroupCommit<InboxRuleRequest, { readonly rule: InboxRule | null }>(
    async (batch) => (await store.takeInboxRules(batch, clock.now())).map((rule) => ({ rule })),
    { maxBatch: MAX_BATCH, now: clock.monotonic },
  );
  return async (request) => (await submit(request)).rule;
}

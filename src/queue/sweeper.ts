import type { Clock } from '../clock.ts';
import type { Settings } from '../config/settings.ts';
import { SPAN_RETENTIONS } from '../model/deliverability.ts';
import type { PublishOf } from '../model/events.ts';
import { MAILBOX_PROVIDER_RETENTION_MS, MAX_STORED_MAILBOX_PROVIDERS } from '../model/mailbox-provider.ts';
import { type DeliveryPolicy, IDEMPOTENCY_KEY_TTL_MS, MAX_RETRY_DELAY_MS } from '../model/message.ts';
import { DELIVERY_LEASE_MS, DELIVERY_RETENTION_MS, MAX_FAILING_MS } from '../model/webhook.ts';
import type { QueueStore, RetentionStore, WebhookWorkerStore } from '../store/contract.ts';
import type { PurgedMessages } from '../store/retention.ts';
import { LEASE_MS } from './attempt.ts';
import type { AgeClock } from './membership.ts';
import type { HoldChecks } from './parking.ts';

const EXPIRE_INTERVAL_MS = 5_000;
const FREQUENT_INTERVAL_MS = 60_000;
/** No message stays a minute longer than `keepHistoryMs`. */
const HISTORY_INTERVAL_MS = 15_000;
const RARE_INTERVAL_MS = 600_000;
/** Between two searches for leases of this node that are not in its memory. */
const ROUNDS_PER_OWN_LEASE_RECOVERY = 6;
/** An older lease that is not in memory belongs to a claim whose answer was lost. */
const MAX_CLAIM_RESPONSE_MS = 60_000;
/** A stored report detects its repetitions. Return paths are valid for half of this time. */
const FEEDBACK_RETENTION_MS = 90 * 24 * 3_600_000;
const MINUTE_ROWS_RETENTION_MS = 48 * 3_600_000;
const HOUR_ROWS_RETENTION_MS = 400 * 24 * 3_600_000;
const DELIVERED_RETENTION_MS = 7 * 24 * 3_600_000;
const MAX_STORED_REPORTS = 10_000;
/** Per transaction; small, so that a round does not delay the acceptance of messages. */
const MAX_ROWS_PER_ROUND = 500;
const MIN_HISTORY_PAUSE_MS = 20;

/** The store returns only the id of an expired message. */
const UNKNOWN_MESSAGE_FIELDS = {
  accountId: null,
  to: null,
  from: null,
  acceptedAt: null,
  attempts: null,
  attempt: null,
  dueAt: null,
  reportedBy: null,
  detail: null,
  failure: null,
  suppresses: false,
} as const;

export interface SweeperParts {
  readonly node: string;
  readonly clock: Clock;
  readonly ages: AgeClock;
  readonly policy: DeliveryPolicy & Pick<Settings, 'keepBodyMs' | 'keepHistoryMs' | 'keepAuditMs'>;
  readonly store: RetentionStore &
    Pick<QueueStore, 'recover'> &
    Pick<WebhookWorkerStore, 'purgeDeliveries' | 'recoverDeliveries' | 'disableFailingWebhooks'>;
  readonly holds: Pick<HoldChecks, 'hasActiveHolds' | 'mayBeHeld'>;
  readonly canDetectDeadNodes: () => boolean;
  readonly listLeasedMessageIds: () => readonly string[];
  readonly publish: PublishOf<
    'message.expired' | 'node.leases_recovered' | 'node.operation_failed' | 'webhook.disabled'
  >;
}

export function startSweeper({
  node,
  clock,
  ages,
  policy,
  store,
  holds,
  canDetectDeadNodes,
  listLeasedMessageIds,
  publish,
}: SweeperParts): () => Promise<void> {
  let isStopped = false;
  const stopFunctions: (() => Promise<void>)[] = [];

  function runPeriodically(intervalMs: number, operation: string, runRound: (now: number) => Promise<number>): void {
    let cancel: () => void = () => undefined;
    let roundsInProgress = Promise.resolve();
    const runRounds = async () => {
      try {
        while (!isStopped && (await runRound(clock.now())) >= MAX_ROWS_PER_ROUND);
      } catch (error) {
        publish({ type: 'node.operation_failed', at: clock.now(), operation, error });
      }
      if (!isStopped) cancel = clock.after(intervalMs, startRound);
    };
    const startRound = () => {
      roundsInProgress = runRounds();
    };
    startRound();
    stopFunctions.push(() => {
      cancel();
      return roundsInProgress;
    });
  }

  /** Parks messages until no hold stops one of those that expire next. */
  async function parkExpiring(acceptedBefore: number, now: number): Promise<void> {
    let parkedCount = 1;
    while (parkedCount > 0 && !isStopped) {
      const expiring = await store.listExpiring(acceptedBefore, MAX_ROWS_PER_ROUND);
      const heldIds = expiring.filter(holds.mayBeHeld).map(({ id }) => id);
      parkedCount = heldIds.length === 0 ? 0 : await store.parkQueued(heldIds, now);
    }
  }

  let expireRoundCount = 0;
  runPeriodically(EXPIRE_INTERVAL_MS, 'expire', async (now) => {
    const acceptedBefore = ages.getCutoff(policy.maxAgeMs);
    if (holds.hasActiveHolds) await parkExpiring(acceptedBefore, now);
    const expiredIds = await store.expire(acceptedBefore, now, MAX_ROWS_PER_ROUND, node);
    for (const id of expiredIds) publish({ type: 'message.expired', at: clock.now(), id, ...UNKNOWN_MESSAGE_FIELDS });
    const { onUncertain } = policy;
    expireRoundCount += 1;
    const ownLeases =
      expireRoundCount % ROUNDS_PER_OWN_LEASE_RECOVERY === 0
        ? { ownLeasesUntil: now + LEASE_MS - MAX_CLAIM_RESPONSE_MS }
        : {};
    if (ages.isClockStable()) {
      const includeDeadNodes = canDetectDeadNodes();
      const leases = { now, node, includeAllLeases: false };
      const excludedIds = listLeasedMessageIds();
      const count = await store.recover({ ...leases, onUncertain, includeDeadNodes, excludedIds, ...ownLeases });
      if (count > 0) publish({ type: 'node.leases_recovered', at: clock.now(), count });
      if (includeDeadNodes) await store.recoverDeliveries({ ...leases, until: now + DELIVERY_LEASE_MS });
    }
    return expiredIds.length;
  });
  const { getCutoff } = ages;
  runPeriodically(FREQUENT_INTERVAL_MS, 'reset due times', (now) =>
    store.resetExcessiveDueTimes(now + MAX_RETRY_DELAY_MS, now, MAX_ROWS_PER_ROUND),
  );
  runPeriodically(FREQUENT_INTERVAL_MS, 'purge bodies', () =>
    store.purgeBodiesAndKeys(getCutoff(policy.keepBodyMs), getCutoff(IDEMPOTENCY_KEY_TTL_MS), MAX_ROWS_PER_ROUND),
  );
  runPeriodically(FREQUENT_INTERVAL_MS, 'purge suppressions', (now) =>
    store.purgeSuppressions(now, MAX_ROWS_PER_ROUND),
  );
  let endPause: () => void = () => undefined;
  runPeriodically(HISTORY_INTERVAL_MS, 'purge messages', async () => {
    let after: string | null = null;
    do {
      const startedAt = clock.now();
      const endedBefore = getCutoff(policy.keepHistoryMs);
      const step: PurgedMessages = await store.purgeMessages({ endedBefore, after, limit: MAX_ROWS_PER_ROUND });
      after = step.next;
      const pauseMs = Math.max(MIN_HISTORY_PAUSE_MS, (clock.now() - startedAt) * step.pauseSteps);
      if (after !== null && !isStopped) await waitForPause(pauseMs);
    } while (after !== null && !isStopped);
    return 0;
  });
  stopFunctions.push(async () => endPause());
  function waitForPause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = clock.after(ms, resolve);
      endPause = () => {
        cancel();
        resolve();
      };
    });
  }
  runPeriodically(FREQUENT_INTERVAL_MS, 'purge audit log', () =>
    store.purgeAudit(getCutoff(policy.keepAuditMs), MAX_ROWS_PER_ROUND),
  );
  runPeriodically(RARE_INTERVAL_MS, 'purge feedback', () =>
    store.purgeFeedback(getCutoff(FEEDBACK_RETENTION_MS), MAX_STORED_REPORTS, MAX_ROWS_PER_ROUND),
  );
  runPeriodically(RARE_INTERVAL_MS, 'purge traffic', () =>
    store.purgeTraffic(getCutoff(MINUTE_ROWS_RETENTION_MS), getCutoff(HOUR_ROWS_RETENTION_MS), MAX_ROWS_PER_ROUND),
  );
  runPeriodically(RARE_INTERVAL_MS, 'purge deliverability figures', async () => {
    let maxPurgedCount = 0;
    for (const { spanMs, retentionMs } of SPAN_RETENTIONS) {
      const purgedCount = await store.purgeDeliverability(spanMs, getCutoff(retentionMs), MAX_ROWS_PER_ROUND);
      maxPurgedCount = Math.max(maxPurgedCount, purgedCount);
    }
    return maxPurgedCount;
  });
  runPeriodically(RARE_INTERVAL_MS, 'purge mailbox providers', () => {
    const cutoff = getCutoff(MAILBOX_PROVIDER_RETENTION_MS);
    return store.purgeMailboxProviders(cutoff, MAX_STORED_MAILBOX_PROVIDERS, MAX_ROWS_PER_ROUND);
  });
  runPeriodically(FREQUENT_INTERVAL_MS, 'purge webhook deliveries', () =>
    store.purgeDeliveries(getCutoff(DELIVERED_RETENTION_MS), getCutoff(DELIVERY_RETENTION_MS), MAX_ROWS_PER_ROUND),
  );
  // Time during which no node ran does not count towards `MAX_FAILING_MS`.
  runPeriodically(FREQUENT_INTERVAL_MS, 'disable failing webhooks', async (now) => {
    const ids = await store.disableFailingWebhooks(getCutoff(MAX_FAILING_MS), now, MAX_ROWS_PER_ROUND);
    for (const webhookId of ids) publish({ type: 'webhook.disabled', at: clock.now(), webhookId, reason: 'failing' });
    return ids.length;
  });

  return async () => {
    isStopped = true;
    await Promise.all(stopFunctions.map((stop) => stop()));
  };
}

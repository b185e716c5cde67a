/**
 * Runs periodic work on stored data. It expires messages that exceed their maximum age. It recovers expired leases of
 * messages, and the leases of dead nodes on messages and on deliveries of webhooks. After the clock was set back, it
 * resets due times that are too far in the future. It purges bodies, idempotency keys, reports, time series, mailbox
 * providers and deliveries of webhooks at the end of their retention. It disables each webhook endpoint whose attempts
 * have failed for five days without a success.
 *
 * Guarantees: if a round of the work fails, an event is published and the round is repeated after the interval.
 */
import type { Clock } from '../clock.ts';
import { SPAN_RETENTIONS } from '../model/deliverability.ts';
import type { PublishOf } from '../model/events.ts';
import { MAILBOX_PROVIDER_RETENTION_MS, MAX_STORED_MAILBOX_PROVIDERS } from '../model/mailbox-provider.ts';
import { type DeliveryPolicy, IDEMPOTENCY_KEY_TTL_MS, MAX_RETRY_DELAY_MS } from '../model/message.ts';
import { DELIVERY_LEASE_MS, DELIVERY_RETENTION_MS, MAX_FAILING_MS } from '../model/webhook.ts';
import type { QueueStore, RetentionStore } from '../store/contract.ts';
import type { WebhookWorkerStore } from '../store/webhook-store.ts';
import { LEASE_MS } from './attempt.ts';
import type { AgeClock } from './membership.ts';

const EXPIRE_INTERVAL_MS = 5_000;
/** The interval, in rounds of `expire`, between two searches for leases of this node that are not in its memory. */
const ROUNDS_PER_OWN_LEASE_RECOVERY = 6;
/**
 * The maximum time for the store to answer a claim. If a lease is older than this time and not in memory, the answer to
 * its claim was lost.
 */
const MAX_CLAIM_RESPONSE_MS = 60_000;
const PURGE_BODIES_INTERVAL_MS = 60_000;
const RESET_DUE_TIMES_INTERVAL_MS = 60_000;
/**
 * The retention of feedback reports. A stored report is used to detect repetitions of the report. Return paths are
 * valid for half of this time.
 */
const FEEDBACK_RETENTION_MS = 90 * 24 * 3_600_000;
const PURGE_FEEDBACK_INTERVAL_MS = 600_000;
const PURGE_TRAFFIC_INTERVAL_MS = 600_000;
const MINUTE_ROWS_RETENTION_MS = 48 * 3_600_000;
const HOUR_ROWS_RETENTION_MS = 400 * 24 * 3_600_000;
const PURGE_DELIVERIES_INTERVAL_MS = 60_000;
const DISABLE_FAILING_WEBHOOKS_INTERVAL_MS = 60_000;
/** The retention of a delivery of a webhook after its success. */
const DELIVERED_RETENTION_MS = 7 * 24 * 3_600_000;
/** The maximum number of stored reports that were not understood. If there are more, the oldest ones are purged. */
const MAX_STORED_REPORTS = 10_000;
/**
 * The maximum number of rows per transaction. The number is small, so that a round does not delay the acceptance of
 * messages.
 */
const MAX_ROWS_PER_ROUND = 500;

/** The fields without a value in the event `message.expired`. The store returns only the id of an expired message. */
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
  readonly policy: DeliveryPolicy & { readonly keepBodyMs: number };
  readonly store: RetentionStore &
    Pick<QueueStore, 'recover'> &
    Pick<WebhookWorkerStore, 'purgeDeliveries' | 'recoverDeliveries' | 'disableFailingWebhooks'>;
  /** Returns true if this node may recover the leases of dead nodes. */
  readonly canDetectDeadNodes: () => boolean;
  /**
   * Returns the ids of the messages that this node has leased. The leases of these messages are not recovered, even if
   * their expiry time has passed.
   */
  readonly listLeasedMessageIds: () => readonly string[];
  readonly publish: PublishOf<
    'message.expired' | 'node.leases_recovered' | 'node.operation_failed' | 'webhook.disabled'
  >;
}

/** Starts the periodic work. The returned function stops the work and resolves when the running rounds have ended. */
export function startSweeper({
  node,
  clock,
  ages,
  policy,
  store,
  canDetectDeadNodes,
  listLeasedMessageIds,
  publish,
}: SweeperParts): () => Promise<void> {
  let isStopped = false;
  const stopFunctions: (() => Promise<void>)[] = [];

  /**
   * Runs `runRound` at once, and again `intervalMs` after the end of each round. If `runRound` resolves to at least
   * `MAX_ROWS_PER_ROUND` rows, the next round starts at once.
   */
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

  let expireRoundCount = 0;
  runPeriodically(EXPIRE_INTERVAL_MS, 'expire', async (now) => {
    const expiredIds = await store.expire(ages.getCutoff(policy.maxAgeMs), now, MAX_ROWS_PER_ROUND, node);
    for (const id of expiredIds) publish({ type: 'message.expired', at: clock.now(), id, ...UNKNOWN_MESSAGE_FIELDS });
    const { onUncertain } = policy;
    expireRoundCount += 1;
    // The option `ownLeasesUntil` recovers the leases of a claim whose commit succeeded but whose answer was lost. Such
    // leases are not in the memory of this node.
    const ownLeases =
      expireRoundCount % ROUNDS_PER_OWN_LEASE_RECOVERY === 0
        ? { ownLeasesUntil: now + LEASE_MS - MAX_CLAIM_RESPONSE_MS }
        : {};
    if (ages.isClockStable()) {
      const includeDeadNodes = canDetectDeadNodes();
      const recoverOptions = {
        now,
        onUncertain,
        node,
        includeAllLeases: false,
        includeDeadNodes,
        excludedIds: listLeasedMessageIds(),
      };
      const recoveredCount = await store.recover({ ...recoverOptions, ...ownLeases });
      if (recoveredCount > 0) publish({ type: 'node.leases_recovered', at: clock.now(), count: recoveredCount });
      if (includeDeadNodes)
        await store.recoverDeliveries({ now, until: now + DELIVERY_LEASE_MS, node, includeAllLeases: false });
    }
    return expiredIds.length;
  });
  runPeriodically(RESET_DUE_TIMES_INTERVAL_MS, 'reset due times', (now) =>
    store.resetExcessiveDueTimes(now + MAX_RETRY_DELAY_MS, now, MAX_ROWS_PER_ROUND),
  );
  runPeriodically(PURGE_BODIES_INTERVAL_MS, 'purge bodies', () =>
    store.purgeBodiesAndKeys(
      ages.getCutoff(policy.keepBodyMs),
      ages.getCutoff(IDEMPOTENCY_KEY_TTL_MS),
      MAX_ROWS_PER_ROUND,
    ),
  );
  runPeriodically(PURGE_FEEDBACK_INTERVAL_MS, 'purge feedback', () =>
    store.purgeFeedback(ages.getCutoff(FEEDBACK_RETENTION_MS), MAX_STORED_REPORTS, MAX_ROWS_PER_ROUND),
  );
  runPeriodically(PURGE_TRAFFIC_INTERVAL_MS, 'purge traffic', () =>
    store.purgeTraffic(
      ages.getCutoff(MINUTE_ROWS_RETENTION_MS),
      ages.getCutoff(HOUR_ROWS_RETENTION_MS),
      MAX_ROWS_PER_ROUND,
    ),
  );
  runPeriodically(PURGE_TRAFFIC_INTERVAL_MS, 'purge deliverability figures', async () => {
    let maxPurgedCount = 0;
    for (const { spanMs, retentionMs } of SPAN_RETENTIONS) {
      const cutoff = ages.getCutoff(retentionMs);
      maxPurgedCount = Math.max(maxPurgedCount, await store.purgeDeliverability(spanMs, cutoff, MAX_ROWS_PER_ROUND));
    }
    return maxPurgedCount;
  });
  runPeriodically(PURGE_TRAFFIC_INTERVAL_MS, 'purge mailbox providers', () =>
    store.purgeMailboxProviders(
      ages.getCutoff(MAILBOX_PROVIDER_RETENTION_MS),
      MAX_STORED_MAILBOX_PROVIDERS,
      MAX_ROWS_PER_ROUND,
    ),
  );
  runPeriodically(PURGE_DELIVERIES_INTERVAL_MS, 'purge webhook deliveries', () =>
    store.purgeDeliveries(
      ages.getCutoff(DELIVERED_RETENTION_MS),
      ages.getCutoff(DELIVERY_RETENTION_MS),
      MAX_ROWS_PER_ROUND,
    ),
  );

  // Time during which no node ran does not count towards `MAX_FAILING_MS`.
  runPeriodically(DISABLE_FAILING_WEBHOOKS_INTERVAL_MS, 'disable failing webhooks', async (now) => {
    const ids = await store.disableFailingWebhooks(ages.getCutoff(MAX_FAILING_MS), now, MAX_ROWS_PER_ROUND);
    for (const webhookId of ids) publish({ type: 'webhook.disabled', at: clock.now(), webhookId, reason: 'failing' });
    return ids.length;
  });

  return async () => {
    isStopped = true;
    await Promise.all(stopFunctions.map((stop) => stop()));
  };
}

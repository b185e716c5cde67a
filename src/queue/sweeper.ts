/**
 * The periodic work on stored data: expires messages past their maximum age, recovers leases that have expired, resets due times that a
 * clock set back has left too far ahead, and purges bodies, reports and time series after their retention.
 *
 * Guarantees: a round that fails is published and repeated at the next interval.
 */
import type { Clock } from '../clock.ts';
import type { PublishOf } from '../model/events.ts';
import { type DeliveryPolicy, IDEMPOTENCY_KEY_TTL_MS, MAX_RETRY_DELAY_MS } from '../model/message.ts';
import type { QueueStore, RetentionStore } from '../store/contract.ts';
import { LEASE_MS } from './attempt.ts';
import type { AgeClock } from './membership.ts';

const EXPIRE_EVERY_MS = 5_000;
/** Every sixth of these rounds also recovers leases of this node that are not in its memory. */
const OWN_LEASES_EVERY_ROUNDS = 6;
/** A lease that is not in memory this long after it began never will be: every answer of the store comes sooner. */
const MAX_CLAIM_ANSWER_MS = 60_000;
const PURGE_BODIES_EVERY_MS = 60_000;
const RESET_DUE_TIMES_EVERY_MS = 60_000;
/** How long reports are kept to recognise repeated ones. Return paths are valid for half of this time. */
const FEEDBACK_RETENTION_MS = 90 * 24 * 3_600_000;
const PURGE_FEEDBACK_EVERY_MS = 600_000;
const PURGE_TRAFFIC_EVERY_MS = 600_000;
const MINUTES_RETENTION_MS = 48 * 3_600_000;
const HOURS_RETENTION_MS = 400 * 24 * 3_600_000;
/** Reports that were not understood: only the newest are kept. */
const MAX_KEPT_FEEDBACK = 10_000;
/** Rows of one round. It is small, so that a round delays no accept. */
const MAX_ROWS = 500;

/** The store returns only the ids of expired messages. */
const UNKNOWN = {
  accountId: null,
  to: null,
  acceptedAt: null,
  attempts: null,
  attempt: null,
  dueAt: null,
  reportedBy: null,
  detail: null,
  suppresses: false,
} as const;

export interface SweeperParts {
  readonly node: string;
  readonly clock: Clock;
  readonly ages: AgeClock;
  readonly policy: DeliveryPolicy & { readonly keepBodyMs: number };
  readonly store: RetentionStore & Pick<QueueStore, 'recover'>;
  /** True where this node may recover the leases of dead nodes. */
  readonly canDetectDeadNodes: () => boolean;
  /** The messages that this node has a lease for. Their leases are not recovered, whatever the clock shows. */
  readonly leasedMessageIds: () => readonly string[];
  readonly publish: PublishOf<'message.expired' | 'node.leases_recovered' | 'node.operation_failed'>;
}

/** Starts the sweeps. The returned function stops them and resolves after the running rounds. */
export function startSweeper({
  node,
  clock,
  ages,
  policy,
  store,
  canDetectDeadNodes,
  leasedMessageIds,
  publish,
}: SweeperParts): () => Promise<void> {
  let stopped = false;
  const stopFunctions: (() => Promise<void>)[] = [];

  /** Runs `round` now and then every `intervalMs`; repeats it at once while it handles `MAX_ROWS`. */
  function runEvery(intervalMs: number, operation: string, round: (now: number) => Promise<number>): void {
    let cancel: () => void = () => undefined;
    let running = Promise.resolve();
    const run = async () => {
      try {
        while (!stopped && (await round(clock.now())) >= MAX_ROWS);
      } catch (error) {
        publish({ type: 'node.operation_failed', at: clock.now(), operation, error });
      }
      if (!stopped) cancel = clock.after(intervalMs, begin);
    };
    const begin = () => {
      running = run();
    };
    begin();
    stopFunctions.push(() => {
      cancel();
      return running;
    });
  }

  let rounds = 0;
  runEvery(EXPIRE_EVERY_MS, 'expire', async (now) => {
    const ids = await store.expire(ages.cutoffFor(policy.maxAgeMs), now, MAX_ROWS, node);
    for (const id of ids) publish({ type: 'message.expired', at: clock.now(), id, ...UNKNOWN });
    const { onUncertain } = policy;
    rounds += 1;
    // A claim that was committed although its answer was lost: this node does not know of these leases.
    const own = rounds % OWN_LEASES_EVERY_ROUNDS === 0 ? { ownLeasesUntil: now + LEASE_MS - MAX_CLAIM_ANSWER_MS } : {};
    if (ages.isSettled()) {
      const includeDeadNodes = canDetectDeadNodes();
      const common = {
        now,
        onUncertain,
        node,
        includeAllLeases: false,
        includeDeadNodes,
        excludedIds: leasedMessageIds(),
      };
      const count = await store.recover({ ...common, ...own });
      if (count > 0) publish({ type: 'node.leases_recovered', at: clock.now(), count });
    }
    return ids.length;
  });
  runEvery(RESET_DUE_TIMES_EVERY_MS, 'reset due times', (now) =>
    store.resetExcessiveDueTimes(now + MAX_RETRY_DELAY_MS, now, MAX_ROWS),
  );
  runEvery(PURGE_BODIES_EVERY_MS, 'purge bodies', () =>
    store.purgeBodiesAndKeys(ages.cutoffFor(policy.keepBodyMs), ages.cutoffFor(IDEMPOTENCY_KEY_TTL_MS), MAX_ROWS),
  );
  runEvery(PURGE_FEEDBACK_EVERY_MS, 'purge feedback', () =>
    store.purgeFeedback(ages.cutoffFor(FEEDBACK_RETENTION_MS), MAX_KEPT_FEEDBACK, MAX_ROWS),
  );
  runEvery(PURGE_TRAFFIC_EVERY_MS, 'purge traffic', () =>
    store.purgeTraffic(ages.cutoffFor(MINUTES_RETENTION_MS), ages.cutoffFor(HOURS_RETENTION_MS), MAX_ROWS),
  );

  return async () => {
    stopped = true;
    await Promise.all(stopFunctions.map((stop) => stop()));
  };
}

/**
 * What time alone does: ends mail requests past their maximum age wherever they wait, takes back leases whose time is
 * over, puts right what a clock set back has left too far ahead, erases bodies kept long enough. A failed round is reported and tried again at the next.
 */
import type { Clock } from '../clock.ts';
import type { PublishOf } from '../model/events.ts';
import { type DeliveryPolicy, IDEMPOTENCY_KEY_TTL_MS, MAX_RETRY_DELAY_MS } from '../model/message.ts';
import type { QueueStore, RetentionStore } from '../store/contract.ts';
import { LEASE_MS } from './attempt.ts';
import type { AgeClock } from './membership.ts';

const EXPIRE_EVERY_MS = 5_000;
/** Of the rounds above, one in so many also looks for leases that this node does not know of. */
const AUDIT_EVERY = 6;
/** So old a lease is in memory if it ever gets there: no answer of the store takes longer. */
const KNOWN_MS = 60_000;
const ERASE_EVERY_MS = 60_000;
const HASTEN_EVERY_MS = 60_000;
/** What came back is remembered for so long, against its coming again; return paths are good for half of it. */
const FEEDBACK_MS = 90 * 24 * 3_600_000;
const FEEDBACK_EVERY_MS = 600_000;
const TRAFFIC_EVERY_MS = 600_000;
/** Figures by minutes are kept so long, by hours so long. */
const MINUTES_MS = 48 * 3_600_000;
const HOURS_MS = 400 * 24 * 3_600_000;
/** Reports that were not understood; beyond that the oldest go. */
const MOST_KEPT_FEEDBACK = 10_000;
/** Rows of one round: small, so that no accept waits behind a sweep. */
const ROUND = 500;

/** The store names the expired messages and no more. */
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
  /** True where this node can tell which other nodes are dead: then it takes over what they held. */
  readonly canDetectDeadNodes: () => boolean;
  /** All that this node holds a lease of, as far as it knows: their leases are not over, whatever the clock shows. */
  readonly leasedMessageIds: () => readonly string[];
  readonly publish: PublishOf<'message.expired' | 'node.leases_recovered' | 'node.operation_failed'>;
}

/** Starts the sweeps; the returned function stops them after the round under way. */
export function startSweeper({
  node,
  clock,
  ages,
  policy,
  store,
  canDetectDeadNodes: judges,
  leasedMessageIds: holding,
  publish,
}: SweeperParts): () => Promise<void> {
  let stopped = false;
  const stops: (() => Promise<void>)[] = [];

  /** Runs `round` now and then every `everyMs`; at once again while it did a full round's work. */
  function every(everyMs: number, what: string, round: (now: number) => Promise<number>): void {
    let cancel: () => void = () => undefined;
    let underWay = Promise.resolve();
    const run = async () => {
      try {
        while (!stopped && (await round(clock.now())) >= ROUND);
      } catch (error) {
        publish({ type: 'node.operation_failed', at: clock.now(), operation: what, error });
      }
      if (!stopped) cancel = clock.after(everyMs, begin);
    };
    const begin = () => {
      underWay = run();
    };
    begin();
    stops.push(() => {
      cancel();
      return underWay;
    });
  }

  let rounds = 0;
  every(EXPIRE_EVERY_MS, 'expire', async (now) => {
    const ids = await store.expire(ages.cutoffFor(policy.maxAgeMs), now, ROUND, node);
    for (const id of ids) publish({ type: 'message.expired', at: clock.now(), id, ...UNKNOWN });
    const { onUncertain } = policy;
    rounds += 1;
    // A lease whose giving was committed while its answer was lost would wait for its end, held by nobody.
    const own = rounds % AUDIT_EVERY === 0 ? { ownUntil: now + LEASE_MS - KNOWN_MS } : {};
    if (ages.isSettled()) {
      const common = { now, onUncertain, by: node, everyLease: false, deadNodes: judges(), except: holding() };
      const back = await store.recover({ ...common, ...own });
      if (back > 0) publish({ type: 'node.leases_recovered', at: clock.now(), count: back });
    }
    return ids.length;
  });
  every(HASTEN_EVERY_MS, 'resetDistantDueTimes', (now) =>
    store.resetDistantDueTimes(now + MAX_RETRY_DELAY_MS, now, ROUND),
  );
  every(ERASE_EVERY_MS, 'erase', () =>
    store.purgeBodiesAndKeys(ages.cutoffFor(policy.keepBodyMs), ages.cutoffFor(IDEMPOTENCY_KEY_TTL_MS), ROUND),
  );
  every(FEEDBACK_EVERY_MS, 'forget feedback', () =>
    store.purgeFeedback(ages.cutoffFor(FEEDBACK_MS), MOST_KEPT_FEEDBACK, ROUND),
  );
  every(TRAFFIC_EVERY_MS, 'sweep traffic', () =>
    store.purgeTraffic(ages.cutoffFor(MINUTES_MS), ages.cutoffFor(HOURS_MS), ROUND),
  );

  return async () => {
    stopped = true;
    await Promise.all(stops.map((stop) => stop()));
  };
}

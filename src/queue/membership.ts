/**
 * This node among the others: its heartbeat, and the ages that all of them count alike. Other nodes take over
 * its leases once its liveness timeout is over.
 *
 * Guarantees: nothing is begun under a lease that another node may have taken over, because a node counts its own silence
 * from before each heartbeat was sent, on a clock that no one sets, and stops earlier than others begin. A node that was cut
 * off does not call others dead before it has heard from the store for as long as a node may be silent: after an outage
 * all nodes get the time to return.
 */
import type { Clock, MonotonicClock } from '../clock.ts';
import type { NodeIdentity } from '../model/node.ts';
import { advanceRunningTime, cutoffForAge, type RunningTime, runningAge } from '../model/running-time.ts';
import type { NodeStore } from '../store/contract.ts';

/** How often a node says that it lives, and how long that is believed. */
export const HEARTBEAT_MS = 3_000;
export const LIVENESS_TIMEOUT_MS = 15_000;
/** So much earlier than others a node believes itself dead. */
const MARGIN_MS = 3_000;

export interface Membership {
  /** True where a lease taken at `takenAt`, in the time of `clock`, still counts for certain. Cheap. */
  isLeaseValid(takenAt: number): boolean;
  /** True where this node can tell which others are dead. */
  canDetectDeadNodes(): boolean;
  /** Beats no more, and tells the others. */
  leave(): Promise<void>;
}

interface MembershipParts {
  readonly node: NodeIdentity;
  readonly store: Pick<NodeStore, 'recordHeartbeat' | 'removeNode'>;
  /** The time of leases; its timers. */
  readonly clock: Clock;
  /** Milliseconds from any origin, that go on while the process is stopped and that nobody sets. */
  readonly monotonic: () => number;
  /** Told the store's time at each beat, with the monotonic times before and after it was asked. */
  readonly onStoreTime: (storeNow: number, askedAt: number, answeredAt: number) => void;
  readonly onError: (what: string, error: unknown) => void;
}

/** Resolves after the first beat; rejects where the store refuses it. */
export async function joinCluster(parts: MembershipParts): Promise<Membership> {
  const { node, store, clock, monotonic, onStoreTime: told, onError: failed } = parts;
  /** When the last answered beat was sent, by the monotonic clock. */
  let beatAt = Number.NEGATIVE_INFINITY;
  /** Since when the beats have followed one another without a gap: monotonic, and in the time of `clock`. */
  let since = 0;
  let sinceTime = 0;
  let stopped = false;
  let cancel: () => void = () => undefined;
  let underWay: Promise<void> = Promise.resolve();

  const sure = (at: number) => at - beatAt < LIVENESS_TIMEOUT_MS - MARGIN_MS;

  async function beat(): Promise<void> {
    const askedAt = monotonic();
    const storeNow = await store.recordHeartbeat(node, LIVENESS_TIMEOUT_MS, clock.now());
    const answeredAt = monotonic();
    told(storeNow, askedAt, answeredAt);
    // Judged when the answer is here: a process stopped while it waited has a gap too.
    if (!sure(askedAt) || answeredAt - askedAt >= LIVENESS_TIMEOUT_MS - MARGIN_MS) {
      since = answeredAt;
      sinceTime = clock.now();
    }
    beatAt = askedAt;
  }

  function again(): void {
    cancel = clock.after(HEARTBEAT_MS, () => {
      underWay = beat()
        .catch((error: unknown) => failed('beat', error))
        .then(() => {
          if (!stopped) again();
        });
    });
  }

  await beat();
  again();
  return {
    isLeaseValid: (takenAt) => sure(monotonic()) && takenAt >= sinceTime,
    canDetectDeadNodes() {
      const now = monotonic();
      return sure(now) && now - since >= LIVENESS_TIMEOUT_MS;
    },
    async leave() {
      stopped = true;
      cancel();
      await underWay;
      await store.removeNode(node.name);
    },
  };
}

/** Of the only node on a store that no other can have: nobody else takes anything over. */
export const SINGLE_NODE: Membership = {
  isLeaseValid: () => true,
  canDetectDeadNodes: () => false,
  leave: async () => undefined,
};

// How old things are, in running time: read from the clock and the monotonic clock whenever asked, and kept in the store,
// so that it goes on after a restart and is the same on every node.
//
// Guarantees: a step of the clock counts from no moment on, not even before it has been kept. A store that is away delays
// the keeping alone.

const KEEP_MS = 15_000;
/** So long a restart may take and still count as running. */
const RESTART_MS = 60_000;

export interface AgeClock {
  /** The greatest time such that whatever was dated up to then is at least `ageMs` old. */
  cutoffFor(ageMs: number): number;
  /** The time at which something dated `at` would have been dated, had the clock always run as it does now. */
  toCurrentClock(at: number): number;
  /**
   * False just after a step of the clock. Until then other nodes may not have said by the new time that they live, and
   * what is being committed may have a lease by the old time.
   */
  isSettled(): boolean;
}

interface AgesParts {
  readonly clock: MonotonicClock;
  readonly store: Pick<NodeStore, 'updateRunningTime'>;
  readonly onError: (what: string, error: unknown) => void;
}

/** Resolves once the running time has been read and kept; rejects where the store refuses it. `stop` ends the keeping. */
export async function startAgeClock(parts: AgesParts): Promise<{ readonly ages: AgeClock; stop(): Promise<void> }> {
  const { clock, store, onError: failed } = parts;
  let keptAt = clock.monotonic();
  let kept = await store.updateRunningTime(RESTART_MS, clock.now());
  let stopped = false;
  let cancel: () => void = () => undefined;
  let underWay: Promise<void> = Promise.resolve();

  async function keep(): Promise<void> {
    const askedAt = clock.monotonic();
    kept = await store.updateRunningTime(askedAt - keptAt, clock.now());
    keptAt = askedAt;
  }

  function again(): void {
    cancel = clock.after(KEEP_MS, () => {
      underWay = keep()
        .catch((error: unknown) => failed('keep running time', error))
        .then(() => {
          if (!stopped) again();
        });
    });
  }

  const current = (): RunningTime => advanceRunningTime(kept, clock.now(), clock.monotonic() - keptAt);

  again();
  return {
    ages: {
      cutoffFor: (ageMs) => cutoffForAge(current(), ageMs),
      toCurrentClock: (at) => clock.now() - runningAge(current(), at),
      isSettled() {
        const { ranMs, stretches } = current();
        return stretches.length === 1 || ranMs - (stretches.at(-1)?.fromMs ?? 0) >= LIVENESS_TIMEOUT_MS;
      },
    },
    async stop() {
      stopped = true;
      cancel();
      await underWay;
      // A stop that takes no store with it: the next start counts from here.
      await keep().catch((error: unknown) => failed('keep running time', error));
    },
  };
}

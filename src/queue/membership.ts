/**
 * The membership of this node in the cluster: its heartbeat, and whether its leases are still its own. And the age clock, which measures
 * ages on every node alike.
 *
 * Guarantees: no attempt begins under a lease that another node may have recovered. A node measures the time since its last heartbeat
 * from before the heartbeat was sent, on the monotonic clock, and stops earlier than other nodes recover its leases. After an outage of
 * the store, a node treats no other node as dead until its own heartbeats have succeeded for the liveness timeout.
 */
import type { Clock, MonotonicClock } from '../clock.ts';
import type { NodeIdentity } from '../model/node.ts';
import { advanceRunningTime, cutoffForAge, type RunningTime, runningAge } from '../model/running-time.ts';
import type { NodeStore } from '../store/contract.ts';

export const HEARTBEAT_MS = 3_000;
export const LIVENESS_TIMEOUT_MS = 15_000;
/** A node stops using its leases this much before its liveness timeout. */
const SAFETY_MARGIN_MS = 3_000;

export interface Membership {
  /** True where a lease that began at `leasedAt`, in the time of `clock`, still belongs to this node. Cheap. */
  isLeaseValid(leasedAt: number): boolean;
  /** True where this node may decide which other nodes are dead. */
  canDetectDeadNodes(): boolean;
  /** Stops the heartbeat and removes the node from the store. */
  leave(): Promise<void>;
}

interface MembershipParts {
  readonly node: NodeIdentity;
  readonly store: Pick<NodeStore, 'recordHeartbeat' | 'removeNode'>;
  /** The time of leases; its timers. */
  readonly clock: Clock;
  /** Milliseconds from any origin. They continue while the process is stopped, and no one can set them. */
  readonly monotonic: () => number;
  /** Called with the store's time at each heartbeat, and the monotonic times before and after the query. */
  readonly onStoreTime: (storeNow: number, sentAt: number, answeredAt: number) => void;
  readonly onError: (operation: string, error: unknown) => void;
}

/** Resolves after the first heartbeat. Rejects where the store refuses it. */
export async function joinCluster(parts: MembershipParts): Promise<Membership> {
  const { node, store, clock, monotonic, onStoreTime, onError } = parts;
  /** When the last successful heartbeat was sent, on the monotonic clock. */
  let heartbeatAt = Number.NEGATIVE_INFINITY;
  /** The start of the current period of heartbeats without a gap, on the monotonic clock and in the time of `clock`. */
  let aliveSince = 0;
  let aliveSinceTime = 0;
  let stopped = false;
  let cancel: () => void = () => undefined;
  let running: Promise<void> = Promise.resolve();

  const isAlive = (at: number) => at - heartbeatAt < LIVENESS_TIMEOUT_MS - SAFETY_MARGIN_MS;

  async function sendHeartbeat(): Promise<void> {
    const sentAt = monotonic();
    const storeNow = await store.recordHeartbeat(node, LIVENESS_TIMEOUT_MS, clock.now());
    const answeredAt = monotonic();
    onStoreTime(storeNow, sentAt, answeredAt);
    // Checked after the answer, since a process that was stopped while it waited has a gap too.
    if (!isAlive(sentAt) || answeredAt - sentAt >= LIVENESS_TIMEOUT_MS - SAFETY_MARGIN_MS) {
      aliveSince = answeredAt;
      aliveSinceTime = clock.now();
    }
    heartbeatAt = sentAt;
  }

  function scheduleNext(): void {
    cancel = clock.after(HEARTBEAT_MS, () => {
      running = sendHeartbeat()
        .catch((error: unknown) => onError('heartbeat', error))
        .then(() => {
          if (!stopped) scheduleNext();
        });
    });
  }

  await sendHeartbeat();
  scheduleNext();
  return {
    isLeaseValid: (leasedAt) => isAlive(monotonic()) && leasedAt >= aliveSinceTime,
    canDetectDeadNodes() {
      const now = monotonic();
      return isAlive(now) && now - aliveSince >= LIVENESS_TIMEOUT_MS;
    },
    async leave() {
      stopped = true;
      cancel();
      await running;
      await store.removeNode(node.name);
    },
  };
}

/** The membership of the only node on its store: no other node can recover its leases. */
export const SINGLE_NODE: Membership = {
  isLeaseValid: () => true,
  canDetectDeadNodes: () => false,
  leave: async () => undefined,
};

// The age clock measures ages in running time: the time in which the service ran. It is computed from the clock and the monotonic clock,
// and kept in the store, so that it continues after a restart and is the same on every node.
//
// Guarantees: a step of the clock changes no age, from the moment of the step. While the store fails, ages stay right; only the copy in
// the store is late.

const WRITE_INTERVAL_MS = 15_000;
/** A restart that takes no longer than this counts as running time. */
const MAX_RESTART_MS = 60_000;

export interface AgeClock {
  /** The latest time that is at least `ageMs` ago in running time. */
  cutoffFor(ageMs: number): number;
  /** Converts the time of a record to the clock as it is set now. */
  toCurrentClock(at: number): number;
  /**
   * False for the liveness timeout after a step of the clock. Until then heartbeats of other nodes, and leases that are being
   * committed, may have times of the clock before the step.
   */
  isClockStable(): boolean;
}

interface AgeClockParts {
  readonly clock: MonotonicClock;
  readonly store: Pick<NodeStore, 'updateRunningTime'>;
  readonly onError: (operation: string, error: unknown) => void;
}

/** Resolves once the running time is read and written. Rejects where the store refuses it. `stop` writes it a last time. */
export async function startAgeClock(parts: AgeClockParts): Promise<{ readonly ages: AgeClock; stop(): Promise<void> }> {
  const { clock, store, onError } = parts;
  let lastWrittenAt = clock.monotonic();
  let lastWritten = await store.updateRunningTime(MAX_RESTART_MS, clock.now());
  let stopped = false;
  let cancel: () => void = () => undefined;
  let running: Promise<void> = Promise.resolve();

  async function write(): Promise<void> {
    const now = clock.monotonic();
    lastWritten = await store.updateRunningTime(now - lastWrittenAt, clock.now());
    lastWrittenAt = now;
  }

  function scheduleNext(): void {
    cancel = clock.after(WRITE_INTERVAL_MS, () => {
      running = write()
        .catch((error: unknown) => onError('write running time', error))
        .then(() => {
          if (!stopped) scheduleNext();
        });
    });
  }

  const current = (): RunningTime => advanceRunningTime(lastWritten, clock.now(), clock.monotonic() - lastWrittenAt);

  scheduleNext();
  return {
    ages: {
      cutoffFor: (ageMs) => cutoffForAge(current(), ageMs),
      toCurrentClock: (at) => clock.now() - runningAge(current(), at),
      isClockStable() {
        const { ranMs, segments: stretches } = current();
        return stretches.length === 1 || ranMs - (stretches.at(-1)?.fromMs ?? 0) >= LIVENESS_TIMEOUT_MS;
      },
    },
    async stop() {
      stopped = true;
      cancel();
      await running;
      // The next start continues from this time.
      await write().catch((error: unknown) => onError('write running time', error));
    },
  };
}

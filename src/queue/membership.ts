/**
 * Sends the heartbeats of this node and decides whether the leases of this node are still valid. This file also
 * contains the age clock, which measures ages in the same way on every node.
 *
 * Guarantees: no attempt starts under a lease that another node may have recovered. A node measures the time since its
 * last heartbeat on the monotonic clock, from the moment before the heartbeat was sent. The node starts no attempt in
 * the last 3 s of the liveness timeout. After an outage of the store, a node treats no other node as dead until its own
 * heartbeats have succeeded for the whole liveness timeout.
 */
import type { Clock, MonotonicClock } from '../clock.ts';
import type { DeliveryStatus, NodeIdentity, RefusedReports } from '../model/node.ts';
import { advanceRunningTime, computeAgeCutoff, computeRunningAgeMs, type RunningTime } from '../model/running-time.ts';
import type { NodeStore } from '../store/contract.ts';

export const HEARTBEAT_MS = 3_000;
export const LIVENESS_TIMEOUT_MS = 15_000;
/** The time before the end of the liveness timeout during which a node starts no attempt. */
const SAFETY_MARGIN_MS = 3_000;

export interface Membership {
  /**
   * Returns true if a lease that began at `leasedAt`, on `clock`, still belongs to this node. The function reads only
   * memory.
   */
  isLeaseValid(leasedAt: number): boolean;
  /** Returns true if this node may treat other nodes as dead. */
  canDetectDeadNodes(): boolean;
  /** Stores the delivery status now, without waiting for the next heartbeat. */
  sendStatus(): void;
  /** Stops the heartbeats and removes the node from the store. */
  leave(): Promise<void>;
}

interface MembershipParts {
  readonly node: NodeIdentity;
  readonly store: Pick<NodeStore, 'recordHeartbeat' | 'removeNode'>;
  /** The clock of lease times and of the timers. */
  readonly clock: Clock;
  /**
   * Returns the milliseconds since an arbitrary origin. This clock continues while the process is suspended and cannot
   * be set.
   */
  readonly monotonic: () => number;
  /** Receives, at each heartbeat, the time of the store and the monotonic times before and after the query. */
  readonly onStoreTime: (storeNow: number, sentAt: number, answeredAt: number) => void;
  readonly onError: (operation: string, error: unknown) => void;
  /**
   * Returns the numbers of reports and requests that this node has refused since its start. Each heartbeat stores these
   * numbers.
   */
  readonly readRefusedReports: () => readonly RefusedReports[];
  /** Returns the delivery status for the next heartbeat, or null. The default function returns null. */
  readonly readDelivery?: () => DeliveryStatus | null;
}

/**
 * Starts the heartbeats. Resolves after the first heartbeat. Rejects if the store cannot record the first heartbeat.
 */
export async function joinCluster(parts: MembershipParts): Promise<Membership> {
  const { node, store, clock, monotonic, onStoreTime, onError, readRefusedReports, readDelivery = () => null } = parts;
  /** The time when the last successful heartbeat was sent, on the monotonic clock. */
  let heartbeatAt = Number.NEGATIVE_INFINITY;
  /** The start of the current period of heartbeats without a gap, on the monotonic clock and on `clock`. */
  let aliveSinceMonotonicMs = 0;
  let aliveSinceTime = 0;

  const isAlive = (at: number) => at - heartbeatAt < LIVENESS_TIMEOUT_MS - SAFETY_MARGIN_MS;

  async function sendHeartbeat(): Promise<void> {
    const sentAt = monotonic();
    const storeNow = await store.recordHeartbeat(
      node,
      LIVENESS_TIMEOUT_MS,
      clock.now(),
      readRefusedReports(),
      readDelivery(),
    );
    const answeredAt = monotonic();
    onStoreTime(storeNow, sentAt, answeredAt);
    // The node checks its liveness only after the store has answered, because the process may have been suspended
    // during the query.
    if (!isAlive(sentAt) || answeredAt - sentAt >= LIVENESS_TIMEOUT_MS - SAFETY_MARGIN_MS) {
      aliveSinceMonotonicMs = answeredAt;
      aliveSinceTime = clock.now();
    }
    heartbeatAt = sentAt;
  }

  await sendHeartbeat();
  const heartbeats = repeatHeartbeats(clock, HEARTBEAT_MS, sendHeartbeat, onError);
  return {
    isLeaseValid: (leasedAt) => isAlive(monotonic()) && leasedAt >= aliveSinceTime,
    canDetectDeadNodes() {
      const now = monotonic();
      return isAlive(now) && now - aliveSinceMonotonicMs >= LIVENESS_TIMEOUT_MS;
    },
    sendStatus: heartbeats.wake,
    async leave() {
      await heartbeats.stop();
      await store.removeNode(node.name);
    },
  };
}

/** Calls `send` after each interval, and at once after `wake`. Two calls never overlap. */
export function repeatHeartbeats(
  clock: Pick<Clock, 'after'>,
  intervalMs: number,
  send: () => Promise<void>,
  onError: (operation: string, error: unknown) => void,
) {
  let isStopped = false;
  let isWoken = false;
  let inProgress: Promise<void> | null = null;
  let cancelNext: () => void = () => undefined;
  function run(): void {
    isWoken = false;
    inProgress = send()
      .catch((error: unknown) => onError('heartbeat', error))
      .then(() => {
        inProgress = null;
        if (isStopped) return;
        if (isWoken) run();
        else scheduleNext();
      });
  }
  function scheduleNext(): void {
    cancelNext = clock.after(intervalMs, run);
  }
  scheduleNext();
  return {
    wake(): void {
      if (inProgress !== null) {
        isWoken = true;
      } else if (!isStopped) {
        cancelNext();
        run();
      }
    },
    async stop(): Promise<void> {
      isStopped = true;
      cancelNext();
      await inProgress;
    },
  };
}

/**
 * The membership of a node that shares its store with no other node. No other node can recover the leases of this node.
 */
export const SINGLE_NODE: Membership = {
  isLeaseValid: () => true,
  canDetectDeadNodes: () => false,
  sendStatus: () => undefined,
  leave: async () => undefined,
};

// The age clock measures ages in running time: the time during which the service ran. It computes the running time from
// the clock and the monotonic clock. It writes the running time to the store, so the running time continues after a
// restart and is the same on every node.
//
// Guarantees: a step of the clock does not change any age. While the store fails, ages remain correct, and only the
// stored running time is out of date.

const WRITE_INTERVAL_MS = 15_000;
/** The maximum duration of a restart that counts as running time. */
const MAX_RESTART_MS = 60_000;

export interface AgeClock {
  /** Returns the latest time whose age is at least `ageMs` of running time. */
  getCutoff(ageMs: number): number;
  /** Converts the time of a record to the time that the current clock setting would have recorded. */
  toCurrentClock(at: number): number;
  /**
   * Returns false after a step of the clock, for the duration of the liveness timeout. During this time, heartbeats of
   * other nodes and leases in progress may have times from before the step.
   */
  isClockStable(): boolean;
}

interface AgeClockParts {
  readonly clock: MonotonicClock;
  readonly store: Pick<NodeStore, 'updateRunningTime'>;
  readonly onError: (operation: string, error: unknown) => void;
}

/**
 * Starts the age clock. Resolves when the running time has been read and written. Rejects if the store cannot write the
 * running time. `stop` writes the running time one last time.
 */
export async function startAgeClock(parts: AgeClockParts): Promise<{ readonly ages: AgeClock; stop(): Promise<void> }> {
  const { clock, store, onError } = parts;
  let lastWrittenAt = clock.monotonic();
  let writtenRunningTime = await store.updateRunningTime(MAX_RESTART_MS, clock.now());
  let isStopped = false;
  let cancelWrite: () => void = () => undefined;
  let writeInProgress: Promise<void> = Promise.resolve();

  async function writeRunningTime(): Promise<void> {
    const now = clock.monotonic();
    writtenRunningTime = await store.updateRunningTime(now - lastWrittenAt, clock.now());
    lastWrittenAt = now;
  }

  function scheduleNext(): void {
    cancelWrite = clock.after(WRITE_INTERVAL_MS, () => {
      writeInProgress = writeRunningTime()
        .catch((error: unknown) => onError('write running time', error))
        .then(() => {
          if (!isStopped) scheduleNext();
        });
    });
  }

  const getCurrentRunningTime = (): RunningTime =>
    advanceRunningTime(writtenRunningTime, clock.now(), clock.monotonic() - lastWrittenAt);

  scheduleNext();
  return {
    ages: {
      getCutoff: (ageMs) => computeAgeCutoff(getCurrentRunningTime(), ageMs),
      toCurrentClock: (at) => clock.now() - computeRunningAgeMs(getCurrentRunningTime(), at),
      isClockStable() {
        const { runningMs, segments } = getCurrentRunningTime();
        return segments.length === 1 || runningMs - (segments.at(-1)?.fromMs ?? 0) >= LIVENESS_TIMEOUT_MS;
      },
    },
    async stop() {
      isStopped = true;
      cancelWrite();
      await writeInProgress;
      // The next start continues from the running time that this call writes.
      await writeRunningTime().catch((error: unknown) => onError('write running time', error));
    },
  };
}

/**
 * No attempt starts under a lease that another node may have recovered. After an outage of the store, a node takes no
 * other for dead until its own heartbeats have succeeded for the liveness timeout.
 */
import type { Clock, MonotonicClock } from '../clock.ts';
import type { DeliveryStatus, NodeIdentity, RefusedReports } from '../model/node.ts';
import { advanceRunningTime, computeAgeCutoff, computeRunningAgeMs, type RunningTime } from '../model/running-time.ts';
import type { NodeStore } from '../store/contract.ts';

export const HEARTBEAT_MS = 3_000;
export const LIVENESS_TIMEOUT_MS = 15_000;
/** Before the end of the liveness timeout, a node starts no attempt for this time. */
const SAFETY_MARGIN_MS = 3_000;

export interface Membership {
  isLeaseValid(leasedAt: number): boolean;
  canDetectDeadNodes(): boolean;
  sendStatus(): void;
  leave(): Promise<void>;
}

interface MembershipParts {
  readonly node: NodeIdentity;
  readonly store: Pick<NodeStore, 'recordHeartbeat' | 'removeNode'>;
  readonly clock: Clock;
  readonly monotonic: () => number;
  readonly onStoreTime: (storeNow: number, sentAt: number, answeredAt: number) => void;
  readonly onError: (operation: string, error: unknown) => void;
  readonly readRefusedReports: () => readonly RefusedReports[];
  readonly readDelivery?: () => DeliveryStatus | null;
}

export async function joinCluster(parts: MembershipParts): Promise<Membership> {
  const { node, store, clock, monotonic, onStoreTime, onError, readRefusedReports, readDelivery = () => null } = parts;
  /** When the last successful heartbeat was sent, on the monotonic clock. */
  let heartbeatAt = Number.NEGATIVE_INFINITY;
  /** The start of the heartbeats without a gap, on the monotonic clock and on `clock`. */
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
    // Checked after the answer, because the process may have been suspended during the query.
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

export const SINGLE_NODE: Membership = {
  isLeaseValid: () => true,
  canDetectDeadNodes: () => false,
  sendStatus: () => undefined,
  leave: async () => undefined,
};

// In running time, which the store keeps: alike on all nodes, and unchanged by a step of the clock or a restart.

const WRITE_INTERVAL_MS = 15_000;
/** A longer restart does not count as running time. */
const MAX_RESTART_MS = 60_000;

export interface AgeClock {
  getCutoff(ageMs: number): number;
  /** The time that the current clock setting would have recorded. */
  toCurrentClock(at: number): number;
  /** False for a liveness timeout after a step: stored times may be from before it. */
  isClockStable(): boolean;
}

interface AgeClockParts {
  readonly clock: MonotonicClock;
  readonly store: Pick<NodeStore, 'updateRunningTime'>;
  readonly onError: (operation: string, error: unknown) => void;
}

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
      await writeRunningTime().catch((error: unknown) => onError('write running time', error));
    },
  };
}

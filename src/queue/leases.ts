import type { Clock } from '../clock.ts';
import type { LeasedMessage } from '../model/message.ts';
import type { ClaimLimits } from '../store/contract.ts';

// Low, so that few messages wait for recovery, and those of a slow next hop can be cancelled.

export const MIN_LEASE_LIMIT = 1_024;
const MAX_LEASE_LIMIT = 8_192;
const LEASE_BUFFER_SECONDS = 4;
export const MAX_LEASED_BYTES = 32 * 1024 * 1024;
/** Claimed messages are in memory twice while the thread of the store transfers them. */
const MAX_CLAIM_BYTES = 16 * 1024 * 1024;

export function getMemoryBytes({ message }: { readonly message: string }): number {
  return 2 * message.length;
}

export function createLeaseBudget() {
  let leaseCount = 0;
  let reservedBytes = 0;
  let leaseLimit = MIN_LEASE_LIMIT;

  return {
    get leaseCount() {
      return leaseCount;
    },
    get leaseLimit() {
      return leaseLimit;
    },
    hasRoomFor: (bytes: number) =>
      leaseCount < leaseLimit && (leaseCount === 0 || reservedBytes + bytes <= MAX_LEASED_BYTES),
    reserve(bytes: number): void {
      leaseCount += 1;
      reservedBytes += bytes;
    },
    release(bytes: number): void {
      leaseCount -= 1;
      reservedBytes -= bytes;
    },
    setAttemptRate(perSecond: number): void {
      leaseLimit = Math.min(MAX_LEASE_LIMIT, Math.max(MIN_LEASE_LIMIT, perSecond * LEASE_BUFFER_SECONDS));
    },
    getClaimLimits(waitingCount: number): ClaimLimits | null {
      if (leaseCount >= leaseLimit || (leaseCount > 0 && reservedBytes >= MAX_LEASED_BYTES)) return null;
      // Without this rule, the end of each lease would cause a claim.
      if (waitingCount > leaseLimit / 4 || (waitingCount > 0 && reservedBytes > (MAX_LEASED_BYTES * 3) / 4))
        return null;
      // The store counts UTF-8 bytes, at least one for each code unit, which needs two bytes of memory.
      const bytes = Math.max(0, Math.floor((MAX_LEASED_BYTES - reservedBytes) / 2));
      return { maxMessages: leaseLimit - leaseCount, maxBytes: Math.min(MAX_CLAIM_BYTES, bytes) };
    },
  };
}

// Accounts are served round-robin, so that a backlog of one account does not delay another one.

interface AccountQueue {
  messages: LeasedMessage[];
  headIndex: number;
}

const MIN_COMPACTED_MESSAGES = 256;

export function createReadyQueue() {
  const queues = new Map<number, AccountQueue>();
  let size = 0;

  function dequeue(): LeasedMessage | undefined {
    const firstEntry = queues.entries().next();
    if (firstEntry.done) return undefined;
    const [accountId, queue] = firstEntry.value;
    const message = queue.messages[queue.headIndex];
    queue.headIndex += 1;
    size -= 1;
    if (queue.headIndex >= queue.messages.length) {
      queues.delete(accountId);
      return message;
    }
    if (queue.headIndex >= MIN_COMPACTED_MESSAGES) {
      queue.messages = queue.messages.slice(queue.headIndex);
      queue.headIndex = 0;
    }
    if (queues.size > 1) {
      queues.delete(accountId);
      queues.set(accountId, queue);
    }
    return message;
  }

  return {
    get size() {
      return size;
    },
    enqueue(message: LeasedMessage): void {
      const queue = queues.get(message.accountId);
      if (queue === undefined) queues.set(message.accountId, { messages: [message], headIndex: 0 });
      else queue.messages.push(message);
      size += 1;
    },
    dequeue,
    dequeueAll(): LeasedMessage[] {
      const messages: LeasedMessage[] = [];
      for (let message = dequeue(); message !== undefined; message = dequeue()) messages.push(message);
      return messages;
    },
  };
}

// Repeats a failed write until it succeeds or the node stops. Then another node or the next start recovers the lease.

const RECORD_RETRY_DELAYS_MS = [100, 500, 2_000, 5_000] as const;
const MAX_RECORD_RETRY_DELAY_MS = 5_000;

interface RecorderParts {
  readonly clock: Pick<Clock, 'after'>;
  readonly isStopped: () => boolean;
  readonly onError: (operation: string, error: unknown) => void;
}

export function createRecorder({ clock, isStopped, onError }: RecorderParts) {
  let pendingCount = 0;
  let failingCount = 0;

  return {
    get pendingCount() {
      return pendingCount;
    },
    get isFailing() {
      return failingCount > 0;
    },
    /** Never rejects. Null if the node has stopped. */
    async record<T>(ids: readonly string[], write: () => Promise<T>): Promise<T | null> {
      pendingCount += ids.length;
      try {
        for (let failureCount = 0; ; failureCount += 1) {
          try {
            const result = await write();
            if (failureCount > 0) failingCount -= ids.length;
            return result;
          } catch (error) {
            onError('settle', error);
            if (failureCount === 0) failingCount += ids.length;
            if (isStopped()) {
              failingCount -= ids.length;
              return null;
            }
            await new Promise<void>((resolve) =>
              clock.after(RECORD_RETRY_DELAYS_MS[failureCount] ?? MAX_RECORD_RETRY_DELAY_MS, resolve),
            );
          }
        }
      } finally {
        pendingCount -= ids.length;
      }
    },
  };
}

/**
 * The mode of a dispatcher and its transitions.
 *
 * | mode | leases for new messages | claims | attempts start | leased messages in memory | ends of leases are written |
 * |---|---|---|---|---|---|
 * | `starting` | no | no | no | none | |
 * | `running` | yes | yes | yes | wait for their attempt | until the write succeeds |
 * | `draining` | no | no | no | are released | until the write succeeds |
 * | `stopped` | no | no | no | are released | at most once more |
 */
export type DispatcherMode = 'starting' | 'running' | 'draining' | 'stopped';

export const MODE_TRANSITIONS: Readonly<Record<DispatcherMode, readonly DispatcherMode[]>> = {
  starting: ['running', 'draining'],
  running: ['draining'],
  draining: ['stopped'],
  stopped: [],
};

export function createModeHolder() {
  let currentMode: DispatcherMode = 'starting';
  return {
    get currentMode(): DispatcherMode {
      return currentMode;
    },
    enter(next: DispatcherMode): void {
      if (!MODE_TRANSITIONS[currentMode].includes(next))
        throw new Error(`no transition from ${currentMode} to ${next}`);
      currentMode = next;
    },
  };
}

/**
 * Manages the leases of one node: the limits on their number and size, the queue of leased messages that wait for an
 * attempt, the recorder of settlements, and the mode of the dispatcher.
 */
import type { Clock } from '../clock.ts';
import type { LeasedMessage } from '../model/message.ts';
import type { ClaimLimits } from '../store/contract.ts';

// The lease budget limits the number and the size of the leased messages in memory. Because the number is low, few
// messages wait for recovery after a node stops. Most messages that wait for a slow next hop are not leased, so an
// operator can cancel them. The size limit bounds the memory for large messages.
//
// Guarantees: a message that is larger than the size limit is leased only while no other message is leased.

/**
 * The limit on leases is the number of attempts that the node makes in `LEASE_BUFFER_SECONDS` at the current rate. The
 * limit is at least `MIN_LEASE_LIMIT` and at most `MAX_LEASE_LIMIT`.
 */
export const MIN_LEASE_LIMIT = 1_024;
const MAX_LEASE_LIMIT = 8_192;
const LEASE_BUFFER_SECONDS = 4;
/** The maximum memory for the text of all leased messages. */
export const MAX_LEASED_BYTES = 32 * 1024 * 1024;
/**
 * The maximum total size of the messages of one claim. The messages are in memory twice while the thread of the store
 * transfers them to the main thread.
 */
const MAX_CLAIM_BYTES = 16 * 1024 * 1024;

/** Returns the maximum memory for the text of a message, in bytes: two bytes for each UTF-16 code unit. */
export function getMemoryBytes({ message }: { readonly message: string }): number {
  return 2 * message.length;
}

interface LeaseBudget {
  readonly leaseCount: number;
  /** Returns true if one more message may be leased. The message needs `bytes` of memory. */
  hasRoomFor(bytes: number): boolean;
  reserve(bytes: number): void;
  release(bytes: number): void;
  /** Sets the limit on leases from the number of attempts that ended in the last second. */
  setAttemptRate(perSecond: number): void;
  /**
   * Returns the limits of the next claim, or null if the budget is too low for a claim. `waitingCount` is the number of
   * leased messages that wait for an attempt.
   */
  getClaimLimits(waitingCount: number): ClaimLimits | null;
}

/** Creates the lease budget of one node. */
export function createLeaseBudget(): LeaseBudget {
  let leaseCount = 0;
  let reservedBytes = 0;
  let leaseLimit = MIN_LEASE_LIMIT;

  return {
    get leaseCount() {
      return leaseCount;
    },
    hasRoomFor: (bytes) => leaseCount < leaseLimit && (leaseCount === 0 || reservedBytes + bytes <= MAX_LEASED_BYTES),
    reserve(bytes) {
      leaseCount += 1;
      reservedBytes += bytes;
    },
    release(bytes) {
      leaseCount -= 1;
      reservedBytes -= bytes;
    },
    setAttemptRate(perSecond) {
      leaseLimit = Math.min(MAX_LEASE_LIMIT, Math.max(MIN_LEASE_LIMIT, perSecond * LEASE_BUFFER_SECONDS));
    },
    getClaimLimits(waitingCount) {
      if (leaseCount >= leaseLimit || (leaseCount > 0 && reservedBytes >= MAX_LEASED_BYTES)) return null;
      // No claim starts while more messages wait than a quarter of the lease limit, or while messages wait and more
      // than three quarters of the memory is reserved. Without this rule, the end of each lease would cause a claim.
      if (waitingCount > leaseLimit / 4 || (waitingCount > 0 && reservedBytes > (MAX_LEASED_BYTES * 3) / 4))
        return null;
      // The store counts UTF-8 bytes, at least one byte for each UTF-16 code unit, and a code unit needs two bytes of
      // memory. A claim is therefore limited to half of the remaining memory.
      const bytes = Math.max(0, Math.floor((MAX_LEASED_BYTES - reservedBytes) / 2));
      return { maxMessages: leaseLimit - leaseCount, maxBytes: Math.min(MAX_CLAIM_BYTES, bytes) };
    },
  };
}

// The queue of leased messages that wait for an attempt. Accounts are served round-robin, so that a backlog of one
// account does not delay another account.

interface ReadyQueue {
  readonly size: number;
  enqueue(message: LeasedMessage): void;
  /** Removes and returns the next message, or returns undefined if the queue is empty. */
  dequeue(): LeasedMessage | undefined;
  /** Removes and returns all messages. */
  dequeueAll(): LeasedMessage[];
}

/** The queue of one account: an array with a head index, so that the first message is removed in constant time. */
interface AccountQueue {
  messages: LeasedMessage[];
  headIndex: number;
}

const MIN_COMPACTED_MESSAGES = 256;

/** Creates an empty queue. */
export function createReadyQueue(): ReadyQueue {
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
      // A Map iterates in insertion order. An entry that is deleted and inserted again moves to the end.
      queues.delete(accountId);
      queues.set(accountId, queue);
    }
    return message;
  }

  return {
    get size() {
      return size;
    },
    enqueue(message) {
      const queue = queues.get(message.accountId);
      if (queue === undefined) queues.set(message.accountId, { messages: [message], headIndex: 0 });
      else queue.messages.push(message);
      size += 1;
    },
    dequeue,
    dequeueAll() {
      const messages: LeasedMessage[] = [];
      for (let message = dequeue(); message !== undefined; message = dequeue()) messages.push(message);
      return messages;
    },
  };
}

// The recorder writes the ends of leases to the store: outcomes, and leases that were released without an attempt.
//
// Guarantees: `record` never rejects. It repeats a failed write until the write succeeds or the node stops. After a
// stop, another node or the next start of this node recovers the lease.

/** The delays before the first repetitions of a failed write. Each further delay is `MAX_RECORD_RETRY_DELAY_MS`. */
const RECORD_RETRY_DELAYS_MS = [100, 500, 2_000, 5_000] as const;
const MAX_RECORD_RETRY_DELAY_MS = 5_000;

interface RecorderParts {
  readonly clock: Pick<Clock, 'after'>;
  /** Returns true if failed writes must no longer be repeated. */
  readonly isStopped: () => boolean;
  readonly onError: (operation: string, error: unknown) => void;
}

interface Recorder {
  /** The number of leases whose end is not written yet. */
  readonly pendingCount: number;
  /** True while the write for at least one pending lease has failed and has not succeeded yet. */
  readonly isFailing: boolean;
  /**
   * Repeats `write`, which ends the leases of the messages `ids`, until it succeeds. Resolves to the result of `write`,
   * or to null if the node has stopped.
   */
  record<T>(ids: readonly string[], write: () => Promise<T>): Promise<T | null>;
}

/** Creates the recorder of one node. */
export function createRecorder({ clock, isStopped, onError }: RecorderParts): Recorder {
  let pendingCount = 0;
  /** The number of pending leases whose write has failed at least once. */
  let failingCount = 0;

  return {
    get pendingCount() {
      return pendingCount;
    },
    get isFailing() {
      return failingCount > 0;
    },
    async record(ids, write) {
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
 *
 * `enter` throws an error for a transition that is not in `MODE_TRANSITIONS`, because such a transition is a bug.
 */
export type DispatcherMode = 'starting' | 'running' | 'draining' | 'stopped';

/** The modes that may follow each mode. */
export const MODE_TRANSITIONS: Readonly<Record<DispatcherMode, readonly DispatcherMode[]>> = {
  starting: ['running', 'draining'],
  running: ['draining'],
  draining: ['stopped'],
  stopped: [],
};

interface ModeHolder {
  readonly currentMode: DispatcherMode;
  /** Changes the mode. If `MODE_TRANSITIONS` does not allow the transition, throws and does not change the mode. */
  enter(next: DispatcherMode): void;
}

/** Creates the mode of one dispatcher. The first mode is `starting`. */
export function createModeHolder(): ModeHolder {
  let currentMode: DispatcherMode = 'starting';
  return {
    get currentMode() {
      return currentMode;
    },
    enter(next) {
      if (!MODE_TRANSITIONS[currentMode].includes(next))
        throw new Error(`no transition from ${currentMode} to ${next}`);
      currentMode = next;
    },
  };
}

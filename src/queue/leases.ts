/**
 * The leases of one node: the limits on their number and size, the queue of leased messages that wait for an attempt, the recorder of
 * their ends, and the mode of the dispatcher.
 */
import type { Clock } from '../clock.ts';
import type { LeasedMessage } from '../model/message.ts';
import type { ClaimLimits } from '../store/contract.ts';

// The lease budget limits the number and the size of the leases in memory. A low number keeps the work of a dead node small, and
// lets an operator cancel messages that wait for a slow next hop. The size limit keeps memory constant for large messages.
//
// Guarantees: a message that is larger than the size limit is leased alone.

/** The limit on leases is the number of attempts in `LEASE_SECONDS` at the current rate, between these two limits. */
export const MIN_LEASE_LIMIT = 1_024;
const MAX_LEASE_LIMIT = 8_192;
const LEASE_BUFFER_SECONDS = 4;
/** Text of all leased messages, in bytes of memory. */
export const MAX_LEASED_BYTES = 32 * 1024 * 1024;
/** Text of the messages of one claim. It is in memory twice while the store's thread passes it on. */
const MAX_CLAIM_BYTES = 16 * 1024 * 1024;

/** The memory that the text of a message needs at most, in bytes: two for each UTF-16 code unit. */
export function memoryBytesOf({ message }: { readonly message: string }): number {
  return 2 * message.length;
}

interface LeaseBudget {
  readonly leaseCount: number;
  /** True where one more message of `bytes` may be leased. */
  fits(bytes: number): boolean;
  reserve(bytes: number): void;
  release(bytes: number): void;
  /** Sets the limit on leases from the number of attempts that ended in the last second. */
  setAttemptRate(perSecond: number): void;
  /** What the next claim may lease, or null where that is too little for a claim. `waiting` leased messages wait for an attempt. */
  claimLimits(waitingCount: number): ClaimLimits | null;
}

export function createLeaseBudget(): LeaseBudget {
  let count = 0;
  let reservedBytes = 0;
  let limit = MIN_LEASE_LIMIT;

  return {
    get leaseCount() {
      return count;
    },
    fits: (bytes) => count < limit && (count === 0 || reservedBytes + bytes <= MAX_LEASED_BYTES),
    reserve(bytes) {
      count += 1;
      reservedBytes += bytes;
    },
    release(bytes) {
      count -= 1;
      reservedBytes -= bytes;
    },
    setAttemptRate(perSecond) {
      limit = Math.min(MAX_LEASE_LIMIT, Math.max(MIN_LEASE_LIMIT, perSecond * LEASE_BUFFER_SECONDS));
    },
    claimLimits(waitingCount) {
      if (count >= limit || (count > 0 && reservedBytes >= MAX_LEASED_BYTES)) return null;
      // Without these thresholds each message that ends would cause a claim.
      if (waitingCount > limit / 4 || (waitingCount > 0 && reservedBytes > (MAX_LEASED_BYTES * 3) / 4)) return null;
      // The store counts bytes of UTF-8: at least one for each code unit, which needs two bytes of memory.
      const bytes = Math.max(0, Math.floor((MAX_LEASED_BYTES - reservedBytes) / 2));
      return { messages: limit - count, bytes: Math.min(MAX_CLAIM_BYTES, bytes) };
    },
  };
}

// The leased messages that wait for an attempt. Accounts take turns, so that a backlog of one account does not delay another account.

interface ReadyQueue {
  readonly size: number;
  enqueue(message: LeasedMessage): void;
  /** Removes and returns the next message; undefined where the queue is empty. */
  dequeue(): LeasedMessage | undefined;
  /** Removes and returns all messages. */
  dequeueAll(): LeasedMessage[];
}

/** The queue of one account: an array with a moving head, so that removing the first message is O(1). */
interface AccountQueue {
  messages: LeasedMessage[];
  head: number;
}

const MIN_COMPACTED_MESSAGES = 256;

export function createReadyQueue(): ReadyQueue {
  const queues = new Map<number, AccountQueue>();
  let size = 0;

  function dequeue(): LeasedMessage | undefined {
    const first = queues.entries().next();
    if (first.done) return undefined;
    const [accountId, queue] = first.value;
    const message = queue.messages[queue.head];
    queue.head += 1;
    size -= 1;
    if (queue.head >= queue.messages.length) {
      queues.delete(accountId);
      return message;
    }
    if (queue.head >= MIN_COMPACTED_MESSAGES) {
      queue.messages = queue.messages.slice(queue.head);
      queue.head = 0;
    }
    if (queues.size > 1) {
      // A Map iterates in insertion order: inserting the account again makes it the last.
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
      if (queue === undefined) queues.set(message.accountId, { messages: [message], head: 0 });
      else queue.messages.push(message);
      size += 1;
    },
    dequeue,
    dequeueAll() {
      const all: LeasedMessage[] = [];
      for (let message = dequeue(); message !== undefined; message = dequeue()) all.push(message);
      return all;
    },
  };
}

// Writes the ends of leases (outcomes, and leases released without an attempt) into the store.
//
// Guarantees: never rejects; repeats a failed write until it succeeds or the node has stopped. After a stop the next start, or another
// node, recovers the lease.

/** Pauses between the tries of one write while the store fails. */
const RECORD_RETRY_DELAYS_MS = [100, 500, 2_000, 5_000] as const;
const MAX_RECORD_RETRY_DELAY_MS = 5_000;

interface RecorderParts {
  readonly clock: Pick<Clock, 'after'>;
  /** True once a failed write is no longer repeated. */
  readonly isStopped: () => boolean;
  readonly onError: (operation: string, error: unknown) => void;
}

interface Recorder {
  /** Number of leases whose end is not written yet. */
  readonly pending: number;
  /** True while the last write of any pending lease has failed. */
  readonly failing: boolean;
  /** Runs `write`, which ends the leases `ids`, until it succeeds. Resolves to its result, or to null where the node has stopped. */
  record<T>(ids: readonly string[], write: () => Promise<T>): Promise<T | null>;
}

export function createRecorder({ clock, isStopped, onError }: RecorderParts): Recorder {
  let pending = 0;
  /** Pending leases whose write has failed at least once. */
  let failing = 0;

  return {
    get pending() {
      return pending;
    },
    get failing() {
      return failing > 0;
    },
    async record(ids, write) {
      pending += ids.length;
      try {
        for (let failures = 0; ; failures += 1) {
          try {
            const result = await write();
            if (failures > 0) failing -= ids.length;
            return result;
          } catch (error) {
            onError('settle', error);
            if (failures === 0) failing += ids.length;
            if (isStopped()) {
              failing -= ids.length;
              return null;
            }
            await new Promise<void>((resolve) =>
              clock.after(RECORD_RETRY_DELAYS_MS[failures] ?? MAX_RECORD_RETRY_DELAY_MS, resolve),
            );
          }
        }
      } finally {
        pending -= ids.length;
      }
    },
  };
}

/**
 * The mode of a dispatcher and its transitions.
 *
 * | mode | leases for new messages | claims | attempts begin | leased messages in memory | ends of leases are written |
 * |---|---|---|---|---|---|
 * | `starting` | no | no | no | none | |
 * | `running` | yes | yes | yes | wait for their attempt | until the write succeeds |
 * | `draining` | no | no | no | are released | until the write succeeds |
 * | `stopped` | no | no | no | are released | once more at most |
 *
 * A transition that the table does not have throws: it is a bug.
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
  readonly current: DispatcherMode;
  /** Changes the mode. Throws, and changes nothing, where the table has no such transition. */
  enter(next: DispatcherMode): void;
}

/** The mode of one dispatcher, at first `starting`. */
export function createModeHolder(): ModeHolder {
  let current: DispatcherMode = 'starting';
  return {
    get current() {
      return current;
    },
    enter(next) {
      if (!MODE_TRANSITIONS[current].includes(next)) throw new Error(`no transition from ${current} to ${next}`);
      current = next;
    },
  };
}

/**
 * The leases that one node holds: how many and how large, whose turn it is, the record of their ends, and the mode that says what
 * may be done with them.
 *
 * They are bounded by number, so that a dead node's share is soon redone and an operator can still withdraw what waits for a slow
 * next hop; by size, so that memory stays flat whatever the messages are like. One message larger than the bound is held alone.
 */
import type { Clock } from '../clock.ts';
import type { LeasedMessage } from '../model/message.ts';
import type { ClaimLimits } from '../store/contract.ts';

/** Leases held at once: what is attempted in about `HELD_SECONDS` at the rate of the last while, within these bounds. */
export const MIN_LEASE_LIMIT = 1_024;
const HELD_MAILS_MOST = 8_192;
const HELD_SECONDS = 4;
/** Message text held at once, in bytes of memory. */
export const MAX_LEASED_BYTES = 32 * 1024 * 1024;
/** Message text of one claim, which is in memory twice while it crosses from the store's thread. */
const CLAIM_BYTES = 16 * 1024 * 1024;

/** Bytes of memory a message's text takes at most: two for each UTF-16 code unit. */
export function memoryBytesOf({ message }: { readonly message: string }): number {
  return 2 * message.length;
}

interface LeaseBudget {
  readonly leaseCount: number;
  /** True where one more of `size` bytes may be held. */
  fits(size: number): boolean;
  reserve(size: number): void;
  release(size: number): void;
  /** So many attempts ended in the last second: the faster the next hop, the more may wait in memory for it. */
  setAttemptRate(perSecond: number): void;
  /** What a claim may add, or null where that is too little to be worth one. `waiting` leases wait for their attempt. */
  claimLimits(waiting: number): ClaimLimits | null;
}

export function createLeaseBudget(): LeaseBudget {
  let mails = 0;
  let bytes = 0;
  let most = MIN_LEASE_LIMIT;

  return {
    get leaseCount() {
      return mails;
    },
    fits: (size) => mails < most && (mails === 0 || bytes + size <= MAX_LEASED_BYTES),
    reserve(size) {
      mails += 1;
      bytes += size;
    },
    release(size) {
      mails -= 1;
      bytes -= size;
    },
    setAttemptRate(perSecond) {
      most = Math.min(HELD_MAILS_MOST, Math.max(MIN_LEASE_LIMIT, perSecond * HELD_SECONDS));
    },
    claimLimits(waiting) {
      if (mails >= most || (mails > 0 && bytes >= MAX_LEASED_BYTES)) return null;
      // A few large ones at a time would be a claim for each.
      if (waiting > most / 4 || (waiting > 0 && bytes > (MAX_LEASED_BYTES * 3) / 4)) return null;
      // The store counts UTF-8: at least one byte for each code unit, which takes two bytes here.
      const left = Math.max(0, Math.floor((MAX_LEASED_BYTES - bytes) / 2));
      return { mails: most - mails, bytes: Math.min(CLAIM_BYTES, left) };
    },
  };
}

// Leased mail requests that wait in memory for a free attempt. Accounts take turns, so that one account's thousand
// messages do not stand before another's one.

interface ReadyQueue {
  readonly size: number;
  enqueue(mail: LeasedMessage): void;
  /** The next one in turn. */
  dequeue(): LeasedMessage | undefined;
  /** All of them; afterwards there are none. */
  dequeueAll(): LeasedMessage[];
}

/** An array with a moving head: taking is O(1) without shifting what is behind. */
interface Line {
  mails: LeasedMessage[];
  head: number;
}

const COMPACT_AT = 256;

export function createReadyQueue(): ReadyQueue {
  const lines = new Map<number, Line>();
  let size = 0;

  function take(): LeasedMessage | undefined {
    const first = lines.entries().next();
    if (first.done) return undefined;
    const [account, line] = first.value;
    const mail = line.mails[line.head];
    line.head += 1;
    size -= 1;
    if (line.head >= line.mails.length) {
      lines.delete(account);
      return mail;
    }
    if (line.head >= COMPACT_AT) {
      line.mails = line.mails.slice(line.head);
      line.head = 0;
    }
    if (lines.size > 1) {
      // A Map iterates in order of insertion: put back, the account stands last.
      lines.delete(account);
      lines.set(account, line);
    }
    return mail;
  }

  return {
    get size() {
      return size;
    },
    enqueue(mail) {
      const line = lines.get(mail.accountId);
      if (line === undefined) lines.set(mail.accountId, { mails: [mail], head: 0 });
      else line.mails.push(mail);
      size += 1;
    },
    dequeue: take,
    dequeueAll() {
      const all: LeasedMessage[] = [];
      for (let mail = take(); mail !== undefined; mail = take()) all.push(mail);
      return all;
    },
  };
}

// Writes the ends of leases (outcomes, and leases given back unused) into the store, and tries each again until the store
// takes it.
//
// Guarantees: an end is forgotten only once it is written, or once the node has stopped; then the next start, or another
// node, takes the lease back. Never rejects.

/** Pauses between tries to write an end while the store fails. */
const RETRY_MS = [100, 500, 2_000, 5_000] as const;
const LONGEST_RETRY_MS = 5_000;

interface RecorderParts {
  readonly clock: Pick<Clock, 'after'>;
  /** True once ends that the store refuses are no longer tried. */
  readonly isStopped: () => boolean;
  readonly onError: (what: string, error: unknown) => void;
}

interface Recorder {
  /** Leases whose end is not written yet. */
  readonly pending: number;
  /** True while the store refuses the end of any of them. */
  readonly failing: boolean;
  /** Runs `write`, which ends the leases `ids`, until it resolves. Resolves to its answer, or to null where it was given up. */
  record<T>(ids: readonly string[], write: () => Promise<T>): Promise<T | null>;
}

export function createRecorder({ clock, isStopped: stopped, onError: failed }: RecorderParts): Recorder {
  let pending = 0;
  /** Of those pending, those that the store has refused so far. */
  let refused = 0;

  return {
    get pending() {
      return pending;
    },
    get failing() {
      return refused > 0;
    },
    async record(ids, write) {
      pending += ids.length;
      try {
        for (let round = 0; ; round += 1) {
          try {
            const answer = await write();
            if (round > 0) refused -= ids.length;
            return answer;
          } catch (error) {
            failed('settle', error);
            if (round === 0) refused += ids.length;
            if (stopped()) {
              refused -= ids.length;
              return null;
            }
            await new Promise<void>((resolve) => clock.after(RETRY_MS[round] ?? LONGEST_RETRY_MS, resolve));
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
 * | mode | leases for new messages | claims | attempts begin | leases held in memory | ends of leases are written |
 * |---|---|---|---|---|---|
 * | `starting` | no | no | no | none | |
 * | `running` | yes | yes | yes | wait for their attempt | until the store takes them |
 * | `draining` | no | no | no | are released | until the store takes them |
 * | `stopped` | no | no | no | are released | once more at most |
 *
 * A transition that the table does not have throws: it is a bug.
 */
export type Mode = 'starting' | 'running' | 'draining' | 'stopped';

/** The modes that may follow each. */
export const MODE_TRANSITIONS: Readonly<Record<Mode, readonly Mode[]>> = {
  starting: ['running', 'draining'],
  running: ['draining'],
  draining: ['stopped'],
  stopped: [],
};

interface ModeHolder {
  readonly current: Mode;
  /** Changes the mode; throws where the table has no such transition, and changes nothing. */
  enter(next: Mode): void;
}

/** The mode of one dispatcher, `starting`. */
export function createMode(): ModeHolder {
  let current: Mode = 'starting';
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

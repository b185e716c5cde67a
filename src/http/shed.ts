/**
 * Load shedding: how many requests are in flight, how long they take, what their bodies hold, and whether one more may
 * come in. A request is first reading, while its body arrives, and in flight once that is whole, until it is answered.
 *
 * Promises: never more than `maxInFlight` in flight; a client that sends slowly fills its own account's places and no
 * others; bodies together never hold more than `maxBufferedBytes`, and those of one account never more than half of it.
 * The advised wait is the mean time of a request, which by Little's law is how long those in flight take to drain.
 */
import type { ListenerLimits, LoadSignal } from './ports.ts';

/** Weight of the newest request in the running mean. */
const NEWEST = 0.05;

/** What the requests of one account hold. */
interface Share {
  reading: number;
  bytes: number;
}

/** The place of one request, from before its body to its answer. */
export interface Place {
  readonly share: Share;
  bytes: number;
  /** When the body was whole, in milliseconds; null while it arrives. */
  since: number | null;
}

/** Why no more is taken: all requests together hold too much, or those of the account do. */
export type Shed = 'overloaded' | 'too-many-bodies';

type Limits = Pick<ListenerLimits, 'maxInFlight' | 'maxReading' | 'maxBufferedBytes'>;

export class InFlight {
  readonly #limits: Limits;
  readonly #load: LoadSignal;
  /** By account; one entry for each that ever sent something. */
  readonly #shares = new Map<number, Share>();
  /** Requests that wait for their key or for a token of their throttle. */
  #before = 0;
  #reading = 0;
  #inFlight = 0;
  #bytes = 0;
  #meanMs = 0;
  #onIdle: (() => void) | null = null;

  constructor(limits: Limits, load: LoadSignal) {
    this.#limits = limits;
    this.#load = load;
  }

  /** Milliseconds after which a shed client may try again, or null where the request may come in. */
  shedMs(): number | null {
    if (this.#isFull() || this.#bytes >= this.#limits.maxBufferedBytes) return this.waitMs();
    const decision = this.#load();
    return decision.shed ? decision.retryAfterMs : null;
  }

  /** How long a shed client should wait, in milliseconds. */
  waitMs(): number {
    return Math.max(1, this.#meanMs);
  }

  /** Waits for a step before the body, and goes on with `next`; a drain waits for both. Rejects with the fault of either. */
  async through<T>(step: Promise<T>, next: (result: T) => void): Promise<void> {
    this.#before += 1;
    try {
      next(await step);
    } finally {
      this.#before -= 1;
      this.#tellIdle();
    }
  }

  /** A place for a request whose body is to be read, or null where its account has all of its own taken. */
  enter(accountId: number): Place | null {
    let share = this.#shares.get(accountId);
    if (share === undefined) {
      share = { reading: 0, bytes: 0 };
      this.#shares.set(accountId, share);
    }
    if (share.reading >= this.#limits.maxReading) return null;
    share.reading += 1;
    this.#reading += 1;
    return { share, bytes: 0, since: null };
  }

  /** Counts bytes of the body that arrived, until the request leaves; or says why they must not be kept. */
  hold(place: Place, bytes: number): Shed | null {
    const { maxBufferedBytes } = this.#limits;
    if (this.#bytes + bytes > maxBufferedBytes) return 'overloaded';
    if (place.share.bytes + bytes > maxBufferedBytes / 2) return 'too-many-bodies';
    place.bytes += bytes;
    place.share.bytes += bytes;
    this.#bytes += bytes;
    return null;
  }

  /** The body is whole at `now`: the request is in flight, or has to be shed where this is false. */
  begin(place: Place, now: number): boolean {
    if (this.#isFull()) return false;
    place.since = now;
    place.share.reading -= 1;
    this.#reading -= 1;
    this.#inFlight += 1;
    return true;
  }

  /** The request was answered, or its client went away, at `now`. */
  leave({ share, bytes, since }: Place, now: number): void {
    share.bytes -= bytes;
    this.#bytes -= bytes;
    if (since === null) {
      share.reading -= 1;
      this.#reading -= 1;
    } else {
      this.#inFlight -= 1;
      this.#meanMs += (now - since - this.#meanMs) * NEWEST;
    }
    this.#tellIdle();
  }

  /** Calls `run` once nothing is reading or in flight; at once where that is so now. */
  whenIdle(run: () => void): void {
    if (this.#isIdle()) run();
    else this.#onIdle = run;
  }

  #tellIdle(): void {
    if (this.#onIdle === null || !this.#isIdle()) return;
    const run = this.#onIdle;
    this.#onIdle = null;
    run();
  }

  #isFull(): boolean {
    return this.#inFlight >= this.#limits.maxInFlight;
  }

  #isIdle(): boolean {
    return this.#before === 0 && this.#reading === 0 && this.#inFlight === 0;
  }
}

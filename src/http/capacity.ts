/**
 * What a listener takes at once: connections, requests in flight, bodies, and its part of the process's file descriptors.
 *
 * Guarantees of the connections (`ConnectionTable`): at most `maxConnections` at once; the keyless ones, which have presented no
 * valid key or session, go first, the oldest before the others, wherever they come from; one that has presented a key is never
 * closed to make room; every operation takes constant time. Once more than half of the places are taken, a peer (an IPv4 address,
 * or an IPv6 network of 64 bits) keeps at most its share of keyless connections.
 */
import { readFileSync } from 'node:fs';
import type { DropReason } from '../model/events.ts';

/** A connection, as the table sees it. */
export interface TableConnection {
  /** Closes the connection; must not throw. */
  close(reason: DropReason): void;
  /** Written by the table alone. */
  tableEntry: Seat | null;
}

/** A place in the table. */
interface Seat {
  readonly member: TableConnection;
  readonly peer: Peer | null;
  readonly amongAll: Link;
  readonly amongPeer: Link | null;
  keyless: boolean;
}

/** The keyless connections of one peer. */
interface Peer {
  readonly name: string;
  readonly keyless: Line;
}

/** What one peer may hold of a listener that is more than half full, as a part of all places. */
const PEER_SHARE = 1 / 20;

export class ConnectionTable {
  readonly #maxConnections: number;
  readonly #maxOfPeer: number;
  readonly #keyless = new Line();
  readonly #peers = new Map<string, Peer>();
  #open = 0;

  constructor(maxConnections: number) {
    this.#maxConnections = maxConnections;
    this.#maxOfPeer = Math.max(1, Math.floor(maxConnections * PEER_SHARE));
  }

  /** How many connections are open. */
  get open(): number {
    return this.#open;
  }

  /**
   * Takes a new connection in, and closes the oldest keyless one where the listener is full. Where there is none to close,
   * the new one is closed, and this is false. `peerName` is null for peers without a share of their own.
   */
  add(member: TableConnection, peerName: string | null): boolean {
    if (this.#open >= this.#maxConnections) {
      const oldest = this.#keyless.first();
      if (oldest === null) {
        member.close('full');
        return false;
      }
      this.#close(oldest, 'full');
    }
    this.#open += 1;
    const peer = peerName === null ? null : this.#peerOf(peerName);
    const [amongAll, amongPeer] = [new Link(member), peer === null ? null : new Link(member)];
    this.#keyless.append(amongAll);
    if (peer !== null && amongPeer !== null) peer.keyless.append(amongPeer);
    member.tableEntry = { member, peer, amongAll, amongPeer, keyless: true };
    if (peer !== null) this.#trim(peer);
    return true;
  }

  /** The connection has presented a valid key or session. */
  markAuthenticated({ tableEntry: seat }: TableConnection): void {
    if (seat?.keyless === true) this.#unlink(seat);
  }

  /** The connection is closed. */
  remove(member: TableConnection): void {
    const { tableEntry: seat } = member;
    if (seat === null) return;
    member.tableEntry = null;
    this.#open -= 1;
    if (seat.keyless) this.#unlink(seat);
  }

  #close(member: TableConnection, reason: DropReason): void {
    this.remove(member);
    member.close(reason);
  }

  /** Two for each that comes: a peer that was over its share when the listener became half full gets down to it. */
  #trim({ keyless }: Peer): void {
    for (let closed = 0; closed < 2; closed += 1) {
      const oldest = keyless.first();
      if (oldest === null || keyless.length <= this.#maxOfPeer || this.#open * 2 <= this.#maxConnections) return;
      this.#close(oldest, 'address-share');
    }
  }

  #unlink(seat: Seat): void {
    seat.keyless = false;
    this.#keyless.remove(seat.amongAll);
    if (seat.peer === null || seat.amongPeer === null) return;
    seat.peer.keyless.remove(seat.amongPeer);
    if (seat.peer.keyless.length === 0) this.#peers.delete(seat.peer.name);
  }

  #peerOf(name: string): Peer {
    let peer = this.#peers.get(name);
    if (peer === undefined) {
      peer = { name, keyless: new Line() };
      this.#peers.set(name, peer);
    }
    return peer;
  }
}

class Link {
  readonly member: TableConnection;
  before: Link | null = null;
  after: Link | null = null;

  constructor(member: TableConnection) {
    this.member = member;
  }
}

/** A doubly linked list: a Set that is emptied from its front walks over every hole that it has left there. */
class Line {
  #first: Link | null = null;
  #last: Link | null = null;
  length = 0;

  first(): TableConnection | null {
    return this.#first === null ? null : this.#first.member;
  }

  append(link: Link): void {
    link.before = this.#last;
    if (this.#last === null) this.#first = link;
    else this.#last.after = link;
    this.#last = link;
    this.length += 1;
  }

  /** Removes a link that is in this line. */
  remove(link: Link): void {
    if (link.before === null) this.#first = link.after;
    else link.before.after = link.after;
    if (link.after === null) this.#last = link.before;
    else link.after.before = link.before;
    link.before = null;
    link.after = null;
    this.length -= 1;
  }
}

// Load shedding: how many requests are in flight, how long they take, what their bodies hold, and whether one more may
// come in. A request is first reading, while its body arrives, and in flight once that is whole, until it is answered.
//
// Promises: never more than `maxInFlight` in flight; a client that sends slowly fills its own account's places and no
// others; bodies together never hold more than `maxBufferedBytes`, and those of one account never more than half of it.
// The advised wait is the mean time of a request, which by Little's law is how long those in flight take to drain.

/** Weight of the newest request in the running mean. */
const NEWEST = 0.05;

/** What the requests of one account hold. */
interface Share {
  reading: number;
  bytes: number;
}

/** The place of one request, from before its body to its answer. */
export interface AdmittedRequest {
  readonly share: Share;
  bytes: number;
  /** When the body was whole, in milliseconds; null while it arrives. */
  bodyReadAt: number | null;
}

/** Why no more is taken: all requests together hold too much, or those of the account do. */
export type BodyRefusal = 'overloaded' | 'too-many-bodies';

export interface RequestLimits {
  /** Requests between the end of their body and their answer; more are shed. */
  readonly maxInFlight: number;
  /** Requests of one account whose body is still arriving; more of that account are refused. */
  readonly maxReadingPerAccount: number;
  /** What the bodies of all requests not yet answered hold, half of it those of one account; beyond it requests are shed. */
  readonly maxBufferedBytes: number;
}

export class RequestLimiter {
  readonly #limits: RequestLimits;
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

  constructor(limits: RequestLimits, load: LoadSignal) {
    this.#limits = limits;
    this.#load = load;
  }

  /** Milliseconds after which a shed client may try again, or null where the request may come in. */
  sheddingDelayMs(): number | null {
    if (this.#isFull() || this.#bytes >= this.#limits.maxBufferedBytes) return this.advisedWaitMs();
    const decision = this.#load();
    return decision.shed ? decision.retryAfterMs : null;
  }

  /** How long a shed client should wait, in milliseconds. */
  advisedWaitMs(): number {
    return Math.max(1, this.#meanMs);
  }

  /** Waits for a step before the body, and goes on with `next`; a drain waits for both. Rejects with the fault of either. */
  async trackStep<T>(step: Promise<T>, next: (result: T) => void): Promise<void> {
    this.#before += 1;
    try {
      next(await step);
    } finally {
      this.#before -= 1;
      this.#tellIdle();
    }
  }

  /** A place for a request whose body is to be read, or null where its account has all of its own taken. */
  startReading(accountId: number): AdmittedRequest | null {
    let share = this.#shares.get(accountId);
    if (share === undefined) {
      share = { reading: 0, bytes: 0 };
      this.#shares.set(accountId, share);
    }
    if (share.reading >= this.#limits.maxReadingPerAccount) return null;
    share.reading += 1;
    this.#reading += 1;
    return { share, bytes: 0, bodyReadAt: null };
  }

  /** Counts bytes of the body that arrived, until the request leaves; or says why they must not be kept. */
  reserveBytes(place: AdmittedRequest, bytes: number): BodyRefusal | null {
    const { maxBufferedBytes } = this.#limits;
    if (this.#bytes + bytes > maxBufferedBytes) return 'overloaded';
    if (place.share.bytes + bytes > maxBufferedBytes / 2) return 'too-many-bodies';
    place.bytes += bytes;
    place.share.bytes += bytes;
    this.#bytes += bytes;
    return null;
  }

  /** The body is whole at `now`: the request is in flight, or has to be shed where this is false. */
  startProcessing(place: AdmittedRequest, now: number): boolean {
    if (this.#isFull()) return false;
    place.bodyReadAt = now;
    place.share.reading -= 1;
    this.#reading -= 1;
    this.#inFlight += 1;
    return true;
  }

  /** The request was answered, or its client went away, at `now`. */
  finish({ share, bytes, bodyReadAt: since }: AdmittedRequest, now: number): void {
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

/** Whether the server is too busy for one more request; asked for each, so it must be cheap. */
export type LoadSignal = () => ShedDecision;
type ShedDecision = { readonly shed: false } | { readonly shed: true; readonly retryAfterMs: number };

/** Sheds load while `waitMs` returns more than `maxWaitMs`, and advises that wait. */
export function shedAbove(maxWaitMs: number, waitMs: () => number): LoadSignal {
  return () => {
    const retryAfterMs = waitMs();
    return retryAfterMs > maxWaitMs ? { shed: true, retryAfterMs } : { shed: false };
  };
}

// How many connections each listener may have, by the process's limit of open files. What the store, delivery and the SMTP
// intake need is set aside first.

/** What the listeners are given where the limit allows it. */
export const MAX_CONNECTIONS = { public: 10_000, operator: 1_000, events: 512 } as const;
/** Files of the store, its connections, threads, pipes, resolvers, and what an operator's command opens. */
const RESERVED = 128;
/** No listener gets fewer, however low the limit is. */
const MIN_CONNECTIONS = 8;

export type ConnectionLimitByListener = Readonly<Record<keyof typeof MAX_CONNECTIONS, number>>;

/**
 * Shares out what `limit` leaves after the reserve and `others`, descriptors of delivery and of the SMTP intake. Each
 * listener gets its maximum, or all get the same part of it.
 */
export function divideDescriptors(limit: number, others: number): ConnectionLimitByListener {
  const wanted = MAX_CONNECTIONS.public + MAX_CONNECTIONS.operator + MAX_CONNECTIONS.events;
  // Half of a low limit stays with the store and delivery, whatever they need at most.
  const left = Math.max(limit - RESERVED - others, limit / 2 - MIN_CONNECTIONS);
  const part = Math.min(1, left / wanted);
  const share = (most: number): number => Math.max(MIN_CONNECTIONS, Math.floor(most * part));
  return {
    public: share(MAX_CONNECTIONS.public),
    operator: share(MAX_CONNECTIONS.operator),
    events: share(MAX_CONNECTIONS.events),
  };
}

/** The process's limit of open file descriptors. Infinity if there is no limit or it cannot be read. */
export function readDescriptorLimit(): number {
  try {
    const line = readFileSync('/proc/self/limits', 'latin1')
      .split('\n')
      .find((one) => one.startsWith('Max open files'));
    if (line !== undefined) return limitOf(line.slice('Max open files'.length).trim().split(' ')[0]);
  } catch {
    // No Linux: Node's report knows it on every POSIX system.
  }
  // Else it looks up the name of each peer.
  Reflect.set(process.report, 'excludeNetwork', true);
  const report: unknown = process.report.getReport();
  return limitOf(String(member(member(member(report, 'userLimits'), 'open_files'), 'soft')));
}

function limitOf(text: string | undefined): number {
  const limit = Number(text);
  return Number.isSafeInteger(limit) && limit > 0 ? limit : Number.POSITIVE_INFINITY;
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}

/**
 * The capacity of a listener: connections, requests in flight, bytes of bodies, and its share of the process's file descriptors.
 *
 * Guarantees of `ConnectionTable`: at most `maxConnections` connections. A full listener closes the oldest unauthenticated connection,
 * which has presented no valid key or session; an authenticated connection is never closed to make room. If more than half of the
 * capacity is used, a peer (an IPv4 address or an IPv6 /64 network) keeps at most its share of unauthenticated connections. Every
 * operation takes constant time.
 */
import { readFileSync } from 'node:fs';
import type { DropReason } from '../model/events.ts';

/** A connection in the table. */
export interface TableConnection {
  /** Closes the connection; must not throw. */
  close(reason: DropReason): void;
  /** Only the table writes it. */
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

/** The unauthenticated connections of one peer. */
interface Peer {
  readonly name: string;
  readonly keyless: Line;
}

/** The fraction of a listener's connections that one peer can have once more than half are in use. */
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
   * Adds a connection. If the listener is full, closes the oldest unauthenticated connection; if there is none, closes the new one and
   * returns false. `peerName` is null for peers that are exempt from the share.
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
  markAuthenticated({ tableEntry }: TableConnection): void {
    if (tableEntry?.keyless === true) this.#unlink(tableEntry);
  }

  /** The connection is closed. */
  remove(member: TableConnection): void {
    const { tableEntry } = member;
    if (tableEntry === null) return;
    member.tableEntry = null;
    this.#open -= 1;
    if (tableEntry.keyless) this.#unlink(tableEntry);
  }

  #close(member: TableConnection, reason: DropReason): void {
    this.remove(member);
    member.close(reason);
  }

  /** Closes up to two connections of the peer per new one, so a peer that is over its share is reduced to it. */
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

/** A doubly linked list. A Set is not used: removing from its front skips all deleted entries each time. */
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

  /** Removes a link of this list. */
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

// Load shedding: counts requests in flight, their duration and the bytes of their bodies, and decides whether one more request is
// admitted. A request is in state reading while its body arrives, then in flight until its response.
//
// Guarantees: at most `maxInFlight` requests in flight. A client that sends slowly only uses the reading limit of its own account. All
// bodies have at most `maxBufferedBytes`, and those of one account at most half of it. The advised wait is the mean duration of a
// request, which by Little's law is the time in which the requests in flight complete.

/** Weight of the newest request in the running mean. */
const NEWEST = 0.05;

/** The use of capacity by one account. */
interface Share {
  reading: number;
  bytes: number;
}

/** The use of capacity by one request, from the start of its body to its response. */
export interface AdmittedRequest {
  readonly share: Share;
  bytes: number;
  /** When the body was complete, in milliseconds; null while it arrives. */
  bodyReadAt: number | null;
}

/** Why a body is refused: all requests together, or those of the account, have reached the limit. */
export type BodyRefusal = 'overloaded' | 'too-many-bodies';

export interface RequestLimits {
  /** Requests between the end of their body and their response. More are shed. */
  readonly maxInFlight: number;
  /** Requests of one account whose body is still arriving. More of that account are refused. */
  readonly maxReadingPerAccount: number;
  /** Bytes of the bodies of all unanswered requests; one account can use half of it. Requests above it are shed. */
  readonly maxBufferedBytes: number;
}

export class RequestLimiter {
  readonly #limits: RequestLimits;
  readonly #load: LoadSignal;
  /** By account; one entry for each account that ever sent a request. */
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

  /** Null if the request is admitted; else milliseconds after which the client should retry. */
  sheddingDelayMs(): number | null {
    if (this.#isFull() || this.#bytes >= this.#limits.maxBufferedBytes) return this.advisedWaitMs();
    const decision = this.#load();
    return decision.shed ? decision.retryAfterMs : null;
  }

  /** How long a shed client should wait, in milliseconds. */
  advisedWaitMs(): number {
    return Math.max(1, this.#meanMs);
  }

  /** Waits for a step before the body, then calls `next`. A drain waits for both. Rejects with the error of either. */
  async trackStep<T>(step: Promise<T>, next: (result: T) => void): Promise<void> {
    this.#before += 1;
    try {
      next(await step);
    } finally {
      this.#before -= 1;
      this.#tellIdle();
    }
  }

  /** Admits a request whose body will be read; null if its account has reached `maxReadingPerAccount`. */
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

  /** Counts received bytes of the body until the request finishes. Returns the reason if they exceed a limit; they are then not counted. */
  reserveBytes(place: AdmittedRequest, bytes: number): BodyRefusal | null {
    const { maxBufferedBytes } = this.#limits;
    if (this.#bytes + bytes > maxBufferedBytes) return 'overloaded';
    if (place.share.bytes + bytes > maxBufferedBytes / 2) return 'too-many-bodies';
    place.bytes += bytes;
    place.share.bytes += bytes;
    this.#bytes += bytes;
    return null;
  }

  /** The body is complete at `now`. Returns true if the request is in flight, false if it must be shed. */
  startProcessing(place: AdmittedRequest, now: number): boolean {
    if (this.#isFull()) return false;
    place.bodyReadAt = now;
    place.share.reading -= 1;
    this.#reading -= 1;
    this.#inFlight += 1;
    return true;
  }

  /** The request was answered, or its client disconnected, at `now`. */
  finish({ share, bytes, bodyReadAt }: AdmittedRequest, now: number): void {
    share.bytes -= bytes;
    this.#bytes -= bytes;
    if (bodyReadAt === null) {
      share.reading -= 1;
      this.#reading -= 1;
    } else {
      this.#inFlight -= 1;
      this.#meanMs += (now - bodyReadAt - this.#meanMs) * NEWEST;
    }
    this.#tellIdle();
  }

  /** Calls `run` as soon as no request is reading or in flight. */
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

/** Decides whether the server sheds a request. It is called for each request and must be cheap. */
export type LoadSignal = () => ShedDecision;
type ShedDecision = { readonly shed: false } | { readonly shed: true; readonly retryAfterMs: number };

/** Sheds load while `waitMs` returns more than `maxWaitMs`, and advises that wait. */
export function createLoadSignal(maxWaitMs: number, waitMs: () => number): LoadSignal {
  return () => {
    const retryAfterMs = waitMs();
    return retryAfterMs > maxWaitMs ? { shed: true, retryAfterMs } : { shed: false };
  };
}

// The maximum number of connections of each listener, from the process's limit of open files. The descriptors of the store, of delivery
// and of the SMTP intake are subtracted first.

/** The maximum connections of each listener if the limit of open files allows them. */
export const MAX_CONNECTIONS = { public: 10_000, operator: 1_000, events: 512 } as const;
/** Descriptors for files of the store, its connections, threads, pipes, resolvers, and operators' commands. */
const RESERVED = 128;
/** The minimum for each listener, however low the limit is. */
const MIN_CONNECTIONS = 8;

export type ConnectionLimitByListener = Readonly<Record<keyof typeof MAX_CONNECTIONS, number>>;

/**
 * Divides the descriptors that remain of `limit` after the reserve and `others`, those of delivery and of the SMTP intake. Each listener
 * gets its maximum, or all get the same fraction of it.
 */
export function divideDescriptors(limit: number, others: number): ConnectionLimitByListener {
  const wanted = MAX_CONNECTIONS.public + MAX_CONNECTIONS.operator + MAX_CONNECTIONS.events;
  // The store and delivery keep half of a low limit, whatever their maximum is.
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
    // Not Linux: Node's report has the limit on every POSIX system.
  }
  // Without this the report looks up the name of each peer.
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

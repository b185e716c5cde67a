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
  tableEntry: TableEntry | null;
}

/** A place in the table. */
interface TableEntry {
  readonly connection: TableConnection;
  readonly peer: Peer | null;
  readonly nodeInAll: ListNode;
  readonly nodeInPeer: ListNode | null;
  isUnauthenticated: boolean;
}

/** The unauthenticated connections of one peer. */
interface Peer {
  readonly name: string;
  readonly unauthenticated: LinkedList;
}

/** The fraction of a listener's connections that one peer can have once more than half are in use. */
const PEER_SHARE = 1 / 20;

export class ConnectionTable {
  readonly #maxConnections: number;
  readonly #maxPerPeer: number;
  readonly #unauthenticated = new LinkedList();
  readonly #peers = new Map<string, Peer>();
  #open = 0;

  constructor(maxConnections: number) {
    this.#maxConnections = maxConnections;
    this.#maxPerPeer = Math.max(1, Math.floor(maxConnections * PEER_SHARE));
  }

  /** How many connections are open. */
  get open(): number {
    return this.#open;
  }

  /**
   * Adds a connection. If the listener is full, closes the oldest unauthenticated connection; if there is none, closes the new one and
   * returns false. `peerName` is null for peers that are exempt from the share.
   */
  add(connection: TableConnection, peerName: string | null): boolean {
    if (this.#open >= this.#maxConnections) {
      const oldest = this.#unauthenticated.first();
      if (oldest === null) {
        connection.close('full');
        return false;
      }
      this.#close(oldest, 'full');
    }
    this.#open += 1;
    const peer = peerName === null ? null : this.#getOrCreatePeer(peerName);
    const [nodeInAll, nodeInPeer] = [new ListNode(connection), peer === null ? null : new ListNode(connection)];
    this.#unauthenticated.append(nodeInAll);
    if (peer !== null && nodeInPeer !== null) peer.unauthenticated.append(nodeInPeer);
    connection.tableEntry = { connection, peer, nodeInAll, nodeInPeer, isUnauthenticated: true };
    if (peer !== null) this.#enforcePeerShare(peer);
    return true;
  }

  /** The connection has presented a valid key or session. */
  markAuthenticated({ tableEntry }: TableConnection): void {
    if (tableEntry?.isUnauthenticated === true) this.#unlink(tableEntry);
  }

  /** The connection is closed. */
  remove(connection: TableConnection): void {
    const { tableEntry } = connection;
    if (tableEntry === null) return;
    connection.tableEntry = null;
    this.#open -= 1;
    if (tableEntry.isUnauthenticated) this.#unlink(tableEntry);
  }

  #close(connection: TableConnection, reason: DropReason): void {
    this.remove(connection);
    connection.close(reason);
  }

  /** Closes up to two connections of the peer per new one, so a peer that is over its share is reduced to it. */
  #enforcePeerShare({ unauthenticated }: Peer): void {
    for (let closed = 0; closed < 2; closed += 1) {
      const oldest = unauthenticated.first();
      if (oldest === null || unauthenticated.length <= this.#maxPerPeer || this.#open * 2 <= this.#maxConnections)
        return;
      this.#close(oldest, 'address-share');
    }
  }

  #unlink(entry: TableEntry): void {
    entry.isUnauthenticated = false;
    this.#unauthenticated.remove(entry.nodeInAll);
    if (entry.peer === null || entry.nodeInPeer === null) return;
    entry.peer.unauthenticated.remove(entry.nodeInPeer);
    if (entry.peer.unauthenticated.length === 0) this.#peers.delete(entry.peer.name);
  }

  #getOrCreatePeer(name: string): Peer {
    let peer = this.#peers.get(name);
    if (peer === undefined) {
      peer = { name, unauthenticated: new LinkedList() };
      this.#peers.set(name, peer);
    }
    return peer;
  }
}

class ListNode {
  readonly connection: TableConnection;
  previous: ListNode | null = null;
  next: ListNode | null = null;

  constructor(connection: TableConnection) {
    this.connection = connection;
  }
}

/** A doubly linked list. A Set is not used: removing from its front skips all deleted entries each time. */
class LinkedList {
  #first: ListNode | null = null;
  #last: ListNode | null = null;
  length = 0;

  first(): TableConnection | null {
    return this.#first === null ? null : this.#first.connection;
  }

  append(node: ListNode): void {
    node.previous = this.#last;
    if (this.#last === null) this.#first = node;
    else this.#last.next = node;
    this.#last = node;
    this.length += 1;
  }

  /** Removes a link of this list. */
  remove(node: ListNode): void {
    if (node.previous === null) this.#first = node.next;
    else node.previous.next = node.next;
    if (node.next === null) this.#last = node.previous;
    else node.next.previous = node.previous;
    node.previous = null;
    node.next = null;
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
const NEWEST_WEIGHT = 0.05;

/** The use of capacity by one account. */
interface AccountUsage {
  reading: number;
  bytes: number;
}

/** The use of capacity by one request, from the start of its body to its response. */
export interface AdmittedRequest {
  readonly usage: AccountUsage;
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
  readonly #loadSignal: LoadSignal;
  /** By account; one entry for each account that ever sent a request. */
  readonly #usageByAccount = new Map<number, AccountUsage>();
  /** Requests that wait for their key or for a token of their throttle. */
  #pendingSteps = 0;
  #reading = 0;
  #inFlight = 0;
  #bytes = 0;
  #meanMs = 0;
  #onIdle: (() => void) | null = null;

  constructor(limits: RequestLimits, loadSignal: LoadSignal) {
    this.#limits = limits;
    this.#loadSignal = loadSignal;
  }

  /** Null if the request is admitted; else milliseconds after which the client should retry. */
  sheddingDelayMs(): number | null {
    if (this.#isFull() || this.#bytes >= this.#limits.maxBufferedBytes) return this.advisedWaitMs();
    const decision = this.#loadSignal();
    return decision.isOverloaded ? decision.retryAfterMs : null;
  }

  /** How long a shed client should wait, in milliseconds. */
  advisedWaitMs(): number {
    return Math.max(1, this.#meanMs);
  }

  /** Waits for a step before the body, then calls `next`. A drain waits for both. Rejects with the error of either. */
  async trackStep<T>(step: Promise<T>, next: (result: T) => void): Promise<void> {
    this.#pendingSteps += 1;
    try {
      next(await step);
    } finally {
      this.#pendingSteps -= 1;
      this.#notifyIfIdle();
    }
  }

  /** Admits a request whose body will be read; null if its account has reached `maxReadingPerAccount`. */
  startReading(accountId: number): AdmittedRequest | null {
    let usage = this.#usageByAccount.get(accountId);
    if (usage === undefined) {
      usage = { reading: 0, bytes: 0 };
      this.#usageByAccount.set(accountId, usage);
    }
    if (usage.reading >= this.#limits.maxReadingPerAccount) return null;
    usage.reading += 1;
    this.#reading += 1;
    return { usage, bytes: 0, bodyReadAt: null };
  }

  /** Counts received bytes of the body until the request finishes. Returns the reason if they exceed a limit; they are then not counted. */
  reserveBytes(request: AdmittedRequest, bytes: number): BodyRefusal | null {
    const { maxBufferedBytes } = this.#limits;
    if (this.#bytes + bytes > maxBufferedBytes) return 'overloaded';
    if (request.usage.bytes + bytes > maxBufferedBytes / 2) return 'too-many-bodies';
    request.bytes += bytes;
    request.usage.bytes += bytes;
    this.#bytes += bytes;
    return null;
  }

  /** The body is complete at `now`. Returns true if the request is in flight, false if it must be shed. */
  startProcessing(request: AdmittedRequest, now: number): boolean {
    if (this.#isFull()) return false;
    request.bodyReadAt = now;
    request.usage.reading -= 1;
    this.#reading -= 1;
    this.#inFlight += 1;
    return true;
  }

  /** The request was answered, or its client disconnected, at `now`. */
  finish({ usage, bytes, bodyReadAt }: AdmittedRequest, now: number): void {
    usage.bytes -= bytes;
    this.#bytes -= bytes;
    if (bodyReadAt === null) {
      usage.reading -= 1;
      this.#reading -= 1;
    } else {
      this.#inFlight -= 1;
      this.#meanMs += (now - bodyReadAt - this.#meanMs) * NEWEST_WEIGHT;
    }
    this.#notifyIfIdle();
  }

  /** Calls `run` as soon as no request is reading or in flight. */
  whenIdle(run: () => void): void {
    if (this.#isIdle()) run();
    else this.#onIdle = run;
  }

  #notifyIfIdle(): void {
    if (this.#onIdle === null || !this.#isIdle()) return;
    const run = this.#onIdle;
    this.#onIdle = null;
    run();
  }

  #isFull(): boolean {
    return this.#inFlight >= this.#limits.maxInFlight;
  }

  #isIdle(): boolean {
    return this.#pendingSteps === 0 && this.#reading === 0 && this.#inFlight === 0;
  }
}

/** Decides whether the server sheds a request. It is called for each request and must be cheap. */
export type LoadSignal = () => ShedDecision;
type ShedDecision = { readonly isOverloaded: false } | { readonly isOverloaded: true; readonly retryAfterMs: number };

/** Sheds load while `waitMs` returns more than `maxWaitMs`, and advises that wait. */
export function createLoadSignal(maxWaitMs: number, waitMs: () => number): LoadSignal {
  return () => {
    const retryAfterMs = waitMs();
    return retryAfterMs > maxWaitMs ? { isOverloaded: true, retryAfterMs } : { isOverloaded: false };
  };
}

// The maximum number of connections of each listener, from the process's limit of open files. The descriptors of the store, of delivery
// and of the SMTP intake are subtracted first.

/** The maximum connections of each listener if the limit of open files allows them. */
export const MAX_CONNECTIONS = { public: 10_000, operator: 1_000, events: 512 } as const;
/** Descriptors for files of the store, its connections, threads, pipes, resolvers, and operators' commands. */
const RESERVED_DESCRIPTORS = 128;
/** The minimum for each listener, however low the limit is. */
const MIN_CONNECTIONS = 8;

export type ConnectionLimitByListener = Readonly<Record<keyof typeof MAX_CONNECTIONS, number>>;

/**
 * Divides the descriptors that remain of `limit` after the reserve and `others`, those of delivery and of the SMTP intake. Each listener
 * gets its maximum, or all get the same fraction of it.
 */
export function divideDescriptors(limit: number, otherDescriptors: number): ConnectionLimitByListener {
  const maxTotal = MAX_CONNECTIONS.public + MAX_CONNECTIONS.operator + MAX_CONNECTIONS.events;
  // The store and delivery keep half of a low limit, whatever their maximum is.
  const available = Math.max(limit - RESERVED_DESCRIPTORS - otherDescriptors, limit / 2 - MIN_CONNECTIONS);
  const fraction = Math.min(1, available / maxTotal);
  const scale = (max: number): number => Math.max(MIN_CONNECTIONS, Math.floor(max * fraction));
  return {
    public: scale(MAX_CONNECTIONS.public),
    operator: scale(MAX_CONNECTIONS.operator),
    events: scale(MAX_CONNECTIONS.events),
  };
}

/** The process's limit of open file descriptors. Infinity if there is no limit or it cannot be read. */
export function readDescriptorLimit(): number {
  try {
    const line = readFileSync('/proc/self/limits', 'latin1')
      .split('\n')
      .find((candidate) => candidate.startsWith('Max open files'));
    if (line !== undefined) return parseLimit(line.slice('Max open files'.length).trim().split(' ')[0]);
  } catch {
    // Not Linux: Node's report has the limit on every POSIX system.
  }
  // Without this the report looks up the name of each peer.
  Reflect.set(process.report, 'excludeNetwork', true);
  const report: unknown = process.report.getReport();
  return parseLimit(String(member(member(member(report, 'userLimits'), 'open_files'), 'soft')));
}

function parseLimit(text: string | undefined): number {
  const limit = Number(text);
  return Number.isSafeInteger(limit) && limit > 0 ? limit : Number.POSITIVE_INFINITY;
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}

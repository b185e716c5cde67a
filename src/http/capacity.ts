/**
 * Manages the capacity of a listener: connections, requests in flight, bytes of request bodies, and file descriptors.
 *
 * Guarantees of `ConnectionTable`: there are at most `maxConnections` connections. A full listener closes its oldest
 * unauthenticated connection when a new one arrives. An unauthenticated connection has not presented a valid key or session. An
 * authenticated connection is never closed for a new one. If more than half of the capacity is used, the unauthenticated
 * connections of a peer (an IPv4 address or an IPv6 /64 network) are limited to its share. Every operation takes constant time.
 */
import { readFileSync } from 'node:fs';
import type { DropReason } from '../model/events.ts';

/** A connection in the table. */
export interface TableConnection {
  /** Closes the connection. Must not throw. */
  close(reason: DropReason): void;
  /** The entry of this connection in the table. Null if the connection is not in the table. Only the table sets this member. */
  tableEntry: TableEntry | null;
}

/** The entry of a connection in the table. */
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

/** The fraction of a listener's connections that one peer can use if more than half of them are in use. */
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

  /** The number of open connections. */
  get open(): number {
    return this.#open;
  }

  /**
   * Adds a connection. If the listener is full, closes the oldest unauthenticated connection. If all connections are authenticated,
   * closes the new connection and returns false. `peerName` is null for a peer that is exempt from the share.
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

  /** Marks a connection that has presented a valid key or session. */
  markAuthenticated({ tableEntry }: TableConnection): void {
    if (tableEntry?.isUnauthenticated === true) this.#unlink(tableEntry);
  }

  /** Removes a closed connection. Does nothing if the connection is not in the table. */
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

  /**
   * Closes at most two connections of a peer that exceeds its share. This method runs for each new connection of the peer, so
   * the number of the peer's connections decreases to its share.
   */
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

/** A doubly linked list. A `Set` would be slow: each access to its first element visits all deleted elements before it. */
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

  /** Removes a node of this list. */
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

// Sheds load: counts requests in flight, their duration and the bytes of their bodies, and decides whether to admit a new
// request. A request is in the state `reading` while its body arrives. The request is in flight from the end of its body to its
// response.
//
// Guarantees: at most `maxInFlight` requests are in flight. A slow client uses only the reading limit of its own account. The
// bodies of all requests together have at most `maxBufferedBytes` bytes, and the bodies of one account at most half of that. The
// advised wait is the mean duration of a request. By Little's law, the requests in flight complete within that time.

/** The weight of the newest request in the moving average of the duration. */
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
  /** The time at which the body was complete, in milliseconds since the epoch; null while the body arrives. */
  bodyReadAt: number | null;
}

/** The limit that a body reaches: the limit of all requests, or the limit of the account. */
export type BodyRefusal = 'overloaded' | 'too-many-bodies';

export interface RequestLimits {
  /** The maximum number of requests in flight. Requests above this limit are shed. */
  readonly maxInFlight: number;
  /**
   * The maximum number of requests of one account whose body is still arriving. Requests of the account above this limit are
   * refused.
   */
  readonly maxReadingPerAccount: number;
  /**
   * The maximum number of bytes in the bodies of all unanswered requests. Requests above this limit are shed. The limit of one
   * account is half of it.
   */
  readonly maxBufferedBytes: number;
}

export class RequestLimiter {
  readonly #limits: RequestLimits;
  readonly #loadSignal: LoadSignal;
  /** Usage by account id, with an entry for each account that has sent a request. */
  readonly #usageByAccount = new Map<number, AccountUsage>();
  /** The number of requests that wait for the lookup of their key or for a token of their throttle. */
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

  /** Returns null if the request is admitted. Otherwise returns the time after which the client should retry, in milliseconds. */
  sheddingDelayMs(): number | null {
    if (this.#isFull() || this.#bytes >= this.#limits.maxBufferedBytes) return this.advisedWaitMs();
    const decision = this.#loadSignal();
    return decision.isOverloaded ? decision.retryAfterMs : null;
  }

  /** Returns the time after which a client should retry a shed request, in milliseconds. */
  advisedWaitMs(): number {
    return Math.max(1, this.#meanMs);
  }

  /**
   * Waits for a step that precedes the body, then calls `next`. A drain waits for the step and for `next`. Rejects with the
   * error of the step or of `next`.
   */
  async trackStep<T>(step: Promise<T>, next: (result: T) => void): Promise<void> {
    this.#pendingSteps += 1;
    try {
      next(await step);
    } finally {
      this.#pendingSteps -= 1;
      this.#notifyIfIdle();
    }
  }

  /** Admits a request, whose body is then read. Returns null if its account has reached `maxReadingPerAccount`. */
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

  /**
   * Counts received bytes of the body until the request finishes. If the bytes exceed a limit, does not count them and returns
   * the limit.
   */
  reserveBytes(request: AdmittedRequest, bytes: number): BodyRefusal | null {
    const { maxBufferedBytes } = this.#limits;
    if (this.#bytes + bytes > maxBufferedBytes) return 'overloaded';
    if (request.usage.bytes + bytes > maxBufferedBytes / 2) return 'too-many-bodies';
    request.bytes += bytes;
    request.usage.bytes += bytes;
    this.#bytes += bytes;
    return null;
  }

  /** Records that the body is complete. Returns true if the request is now in flight, and false if it must be shed. */
  startProcessing(request: AdmittedRequest, now: number): boolean {
    if (this.#isFull()) return false;
    request.bodyReadAt = now;
    request.usage.reading -= 1;
    this.#reading -= 1;
    this.#inFlight += 1;
    return true;
  }

  /** Removes a request that was answered or whose client disconnected. */
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

  /** Calls `run` once no request waits, is being read or is in flight. */
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

/** Decides whether the server sheds a request. The function is called for each request, so it must be fast. */
export type LoadSignal = () => ShedDecision;
type ShedDecision = { readonly isOverloaded: false } | { readonly isOverloaded: true; readonly retryAfterMs: number };

/** Sheds load while `waitMs` returns more than `maxWaitMs`. Advises clients to retry after the time that `waitMs` returns. */
export function createLoadSignal(maxWaitMs: number, waitMs: () => number): LoadSignal {
  return () => {
    const retryAfterMs = waitMs();
    return retryAfterMs > maxWaitMs ? { isOverloaded: true, retryAfterMs } : { isOverloaded: false };
  };
}

// Computes the maximum number of connections of each listener from the process's limit of open files. The descriptors that the
// store, delivery and the SMTP listener need are subtracted first.

/** The maximum number of connections of each listener if the limit of open files is sufficient. */
export const MAX_CONNECTIONS = { public: 10_000, operator: 1_000, events: 512 } as const;
/** Descriptors for files and connections of the store, threads, pipes, resolvers, and commands of operators. */
const RESERVED_DESCRIPTORS = 128;
/** The minimum number of connections of each listener, for any limit of open files. */
const MIN_CONNECTIONS = 8;

export type ConnectionLimitByListener = Readonly<Record<keyof typeof MAX_CONNECTIONS, number>>;

/**
 * Divides the file descriptors among the listeners. `limit` is the limit of the process, and `otherDescriptors` is the number that
 * delivery and the SMTP listener use. Each listener gets its maximum, or each gets the same fraction of its maximum.
 */
export function divideDescriptors(limit: number, otherDescriptors: number): ConnectionLimitByListener {
  const maxTotal = MAX_CONNECTIONS.public + MAX_CONNECTIONS.operator + MAX_CONNECTIONS.events;
  // If the limit is low, half of it remains for the store and delivery.
  const available = Math.max(limit - RESERVED_DESCRIPTORS - otherDescriptors, limit / 2 - MIN_CONNECTIONS);
  const fraction = Math.min(1, available / maxTotal);
  const scale = (max: number): number => Math.max(MIN_CONNECTIONS, Math.floor(max * fraction));
  return {
    public: scale(MAX_CONNECTIONS.public),
    operator: scale(MAX_CONNECTIONS.operator),
    events: scale(MAX_CONNECTIONS.events),
  };
}

/** Returns the process's limit of open file descriptors. Returns Infinity if there is no limit or the limit cannot be read. */
export function readDescriptorLimit(): number {
  try {
    const line = readFileSync('/proc/self/limits', 'latin1')
      .split('\n')
      .find((candidate) => candidate.startsWith('Max open files'));
    if (line !== undefined) return parseLimit(line.slice('Max open files'.length).trim().split(' ')[0]);
  } catch {
    // The system is not Linux. Node's report has the limit on every POSIX system.
  }
  // Without this option the report resolves the host name of each peer.
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

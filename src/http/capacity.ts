/**
 * Manages the capacity of a listener: connections, requests in flight, bytes of request bodies, and file descriptors.
 *
 * Guarantees of `ConnectionTable`: there are at most `maxConnections` connections. A full listener closes its oldest
 * unauthenticated connection when a new connection arrives. An unauthenticated connection has not presented a valid
 * key, session or signature. An authenticated connection is never closed for a new connection. If more than half of the
 * capacity is used, the unauthenticated connections of a peer (an IPv4 address or an IPv6 /64 network) are limited to
 * its share. Every operation takes constant time.
 */
import { readFileSync } from 'node:fs';
import type { DropReason } from '../model/events.ts';

/** A connection in the table. */
export interface TableConnection {
  /** Closes the connection. The method must not throw. */
  close(reason: DropReason): void;
  /**
   * The entry of this connection in the table. Null if the connection is not in the table. Only the table sets this
   * member.
   */
  tableEntry: TableEntry | null;
}

/** The entry of a connection in the table. */
interface TableEntry {
  readonly connection: TableConnection;
  readonly peer: Peer | null;
  readonly unauthenticatedNode: ListNode;
  readonly peerNode: ListNode | null;
  isUnauthenticated: boolean;
}

/** The unauthenticated connections of one peer. */
interface Peer {
  readonly name: string;
  readonly unauthenticated: LinkedList;
}

/**
 * The maximum fraction of a listener's connections that one peer can use while more than half of the connections are in
 * use.
 */
const MAX_PEER_SHARE = 1 / 20;

export class ConnectionTable {
  readonly #maxConnections: number;
  readonly #maxPerPeer: number;
  readonly #unauthenticated = new LinkedList();
  readonly #peers = new Map<string, Peer>();
  #open = 0;

  constructor(maxConnections: number) {
    this.#maxConnections = maxConnections;
    this.#maxPerPeer = Math.max(1, Math.floor(maxConnections * MAX_PEER_SHARE));
  }

  /** The number of open connections. */
  get openCount(): number {
    return this.#open;
  }

  /**
   * Adds a connection. If the listener is full, closes the oldest unauthenticated connection. If all connections are
   * authenticated, closes the new connection and returns false. `peerName` is null for a peer that is exempt from
   * `MAX_PEER_SHARE`.
   */
  add(connection: TableConnection, peerName: string | null): boolean {
    if (this.#open >= this.#maxConnections) {
      const oldestConnection = this.#unauthenticated.getFirst();
      if (oldestConnection === null) {
        connection.close('full');
        return false;
      }
      this.#close(oldestConnection, 'full');
    }
    this.#open += 1;
    const peer = peerName === null ? null : this.#getOrCreatePeer(peerName);
    const [unauthenticatedNode, peerNode] = [new ListNode(connection), peer === null ? null : new ListNode(connection)];
    this.#unauthenticated.append(unauthenticatedNode);
    if (peer !== null && peerNode !== null) peer.unauthenticated.append(peerNode);
    connection.tableEntry = { connection, peer, unauthenticatedNode, peerNode, isUnauthenticated: true };
    if (peer !== null) this.#enforcePeerShare(peer);
    return true;
  }

  /** Marks a connection as authenticated, because it has presented a valid key, session or signature. */
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
   * Closes at most two connections of a peer that exceeds its share. This method runs for each new connection of the
   * peer, so the number of the peer's connections decreases to its share.
   */
  #enforcePeerShare({ unauthenticated }: Peer): void {
    for (let closedCount = 0; closedCount < 2; closedCount += 1) {
      const oldestConnection = unauthenticated.getFirst();
      if (
        oldestConnection === null ||
        unauthenticated.length <= this.#maxPerPeer ||
        this.#open * 2 <= this.#maxConnections
      )
        return;
      this.#close(oldestConnection, 'address-share');
    }
  }

  #unlink(entry: TableEntry): void {
    entry.isUnauthenticated = false;
    this.#unauthenticated.remove(entry.unauthenticatedNode);
    if (entry.peer === null || entry.peerNode === null) return;
    entry.peer.unauthenticated.remove(entry.peerNode);
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
  previousNode: ListNode | null = null;
  nextNode: ListNode | null = null;

  constructor(connection: TableConnection) {
    this.connection = connection;
  }
}

/**
 * A doubly linked list. A `Set` would not be sufficient: an access to its first element takes time for each deleted
 * element before this element.
 */
class LinkedList {
  #firstNode: ListNode | null = null;
  #lastNode: ListNode | null = null;
  length = 0;

  getFirst(): TableConnection | null {
    return this.#firstNode === null ? null : this.#firstNode.connection;
  }

  append(node: ListNode): void {
    node.previousNode = this.#lastNode;
    if (this.#lastNode === null) this.#firstNode = node;
    else this.#lastNode.nextNode = node;
    this.#lastNode = node;
    this.length += 1;
  }

  /** Removes a node of this list. */
  remove(node: ListNode): void {
    if (node.previousNode === null) this.#firstNode = node.nextNode;
    else node.previousNode.nextNode = node.nextNode;
    if (node.nextNode === null) this.#lastNode = node.previousNode;
    else node.nextNode.previousNode = node.previousNode;
    node.previousNode = null;
    node.nextNode = null;
    this.length -= 1;
  }
}

// Sheds load: counts requests in flight, measures their duration and the bytes of their bodies, and decides whether to
// admit a new request. A request is being read while its body arrives. A request is in flight from the end of its body
// to its response.
//
// Guarantees: at most `maxInFlight` requests are in flight. A client that sends its bodies slowly can use up only the
// limit of incomplete requests of its own account. The bodies of all requests together have at most `maxBufferedBytes`
// bytes, and the bodies of one account have at most half of this number. Clients are advised to retry a shed request
// after the mean duration of a request. By Little's law, the average number of requests that complete within this time
// is the number of requests in flight.

/** The weight of the newest request in the moving average of the duration. */
const NEWEST_WEIGHT = 0.05;

/** The use of capacity by one account. */
interface AccountUsage {
  readingCount: number;
  bytes: number;
}

/** The use of capacity by one request, from the start of its body to its response. */
export interface AdmittedRequest {
  readonly usage: AccountUsage;
  bytes: number;
  /** The time at which the body was complete, in milliseconds since the epoch; null while the body arrives. */
  bodyReadAt: number | null;
}

/** The limit that a body exceeds: the limit of all requests, or the limit of the account. */
export type BodyRefusal = 'overloaded' | 'too-many-bodies';

export interface RequestLimits {
  /** The maximum number of requests in flight. Requests above this limit are shed. */
  readonly maxInFlight: number;
  /**
   * The maximum number of requests of one account whose body is still arriving. Requests of the account above this
   * limit are refused.
   */
  readonly maxConcurrentReadsPerAccount: number;
  /**
   * The maximum number of bytes in the bodies of all unanswered requests. Requests above this limit are shed. The limit
   * of one account is half of this number.
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

  /**
   * Returns null if the request is admitted. Otherwise returns the time after which the client should retry, in
   * milliseconds.
   */
  getRetryAfterMs(): number | null {
    if (this.#isFull() || this.#bytes >= this.#limits.maxBufferedBytes) return this.computeAdvisedWaitMs();
    const shedDecision = this.#loadSignal();
    return shedDecision.isOverloaded ? shedDecision.retryAfterMs : null;
  }

  /** Returns the time after which a client should retry a shed request, in milliseconds. */
  computeAdvisedWaitMs(): number {
    return Math.max(1, this.#meanMs);
  }

  /**
   * Waits for a step that precedes the reading of the body, then calls `next` with the result of the step. A drain
   * waits for the step and for `next`. Rejects with the error of the step or of `next`.
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

  /** Admits a request, whose body is then read. Returns null if its account has reached `maxConcurrentReadsPerAccount`. */
  startReading(accountId: number): AdmittedRequest | null {
    let usage = this.#usageByAccount.get(accountId);
    if (usage === undefined) {
      usage = { readingCount: 0, bytes: 0 };
      this.#usageByAccount.set(accountId, usage);
    }
    if (usage.readingCount >= this.#limits.maxConcurrentReadsPerAccount) return null;
    usage.readingCount += 1;
    this.#reading += 1;
    return { usage, bytes: 0, bodyReadAt: null };
  }

  /**
   * Reserves capacity for received bytes of the body until the request finishes. If the bytes exceed a limit, reserves
   * nothing and returns the limit.
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
    request.usage.readingCount -= 1;
    this.#reading -= 1;
    this.#inFlight += 1;
    return true;
  }

  /** Removes a request that was answered or whose client disconnected. */
  finishRequest({ usage, bytes, bodyReadAt }: AdmittedRequest, now: number): void {
    usage.bytes -= bytes;
    this.#bytes -= bytes;
    if (bodyReadAt === null) {
      usage.readingCount -= 1;
      this.#reading -= 1;
    } else {
      this.#inFlight -= 1;
      this.#meanMs += (now - bodyReadAt - this.#meanMs) * NEWEST_WEIGHT;
    }
    this.#notifyIfIdle();
  }

  /** Calls `run` as soon as no request waits, is being read or is in flight. */
  runWhenIdle(run: () => void): void {
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

/**
 * Decides whether the server sheds a request. `getRetryAfterMs` calls the function for each request, so the function
 * must be fast.
 */
export type LoadSignal = () => ShedDecision;
type ShedDecision = { readonly isOverloaded: false } | { readonly isOverloaded: true; readonly retryAfterMs: number };

/**
 * Creates a signal that sheds load while `waitMs` returns more than `maxWaitMs`. The signal advises clients to retry
 * after the time that `waitMs` returns.
 */
export function createLoadSignal(maxWaitMs: number, waitMs: () => number): LoadSignal {
  return () => {
    const retryAfterMs = waitMs();
    return retryAfterMs > maxWaitMs ? { isOverloaded: true, retryAfterMs } : { isOverloaded: false };
  };
}

// The maximum number of connections of each listener depends on the process's limit of open files. The descriptors that
// the store, delivery and the SMTP listener need are subtracted first.

/** The maximum number of connections of each listener if the limit of open files is sufficient. */
export const MAX_CONNECTIONS = { public: 10_000, operator: 1_000, events: 512 } as const;
/** Descriptors for files and connections of the store, threads, pipes, resolvers, and commands of operators. */
const RESERVED_DESCRIPTORS = 128;
/** The minimum number of connections of each listener, for any limit of open files. */
const MIN_CONNECTIONS = 8;

export type ConnectionLimitByListener = Readonly<Record<keyof typeof MAX_CONNECTIONS, number>>;

/**
 * Divides the file descriptors among the listeners. `limit` is the limit of the process, and `otherDescriptorCount` is
 * the number that delivery and the SMTP listener use. Each listener gets its maximum. If the descriptors are not
 * sufficient, each listener gets the same fraction of its maximum, but at least `MIN_CONNECTIONS`.
 */
export function divideDescriptors(limit: number, otherDescriptorCount: number): ConnectionLimitByListener {
  const maxTotal = MAX_CONNECTIONS.public + MAX_CONNECTIONS.operator + MAX_CONNECTIONS.events;
  // If the limit is low, half of the descriptors remain for the store and delivery.
  const availableDescriptors = Math.max(
    limit - RESERVED_DESCRIPTORS - otherDescriptorCount,
    limit / 2 - MIN_CONNECTIONS,
  );
  const fraction = Math.min(1, availableDescriptors / maxTotal);
  const scaleToFraction = (maxConnections: number): number =>
    Math.max(MIN_CONNECTIONS, Math.floor(maxConnections * fraction));
  return {
    public: scaleToFraction(MAX_CONNECTIONS.public),
    operator: scaleToFraction(MAX_CONNECTIONS.operator),
    events: scaleToFraction(MAX_CONNECTIONS.events),
  };
}

/**
 * Returns the process's limit of open file descriptors. Returns Infinity if there is no limit or the limit cannot be
 * read.
 */
export function readDescriptorLimit(): number {
  try {
    const line = readFileSync('/proc/self/limits', 'latin1')
      .split('\n')
      .find((candidate) => candidate.startsWith('Max open files'));
    if (line !== undefined) return parseLimit(line.slice('Max open files'.length).trim().split(' ')[0]);
  } catch {
    // Only Linux has this file. On every POSIX system, the report of Node.js contains the limit.
  }
  // Without this option, the report would resolve the host name of each peer.
  Reflect.set(process.report, 'excludeNetwork', true);
  const report: unknown = process.report.getReport();
  return parseLimit(String(readMember(readMember(readMember(report, 'userLimits'), 'open_files'), 'soft')));
}

function parseLimit(text: string | undefined): number {
  const limit = Number(text);
  return Number.isSafeInteger(limit) && limit > 0 ? limit : Number.POSITIVE_INFINITY;
}

function readMember(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}

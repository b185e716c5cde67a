/** Nobody is refused for the bodies of others while one of them can be evicted. Constant time for each connection. */
import type { Clock } from '../clock.ts';
import type { DropReason } from '../model/events.ts';

/** In order of eviction. `busy` is never closed: its message is being recorded. `authenticated` has no share. */
export type Standing = 'unknown' | 'weak' | 'sending' | 'busy' | 'authenticated';

export type ConnectionRefusal = Extract<DropReason, 'full' | 'address-share'>;

export interface CapacityConnection {
  isInUse(): boolean;
  /** Must not throw. */
  close(reason: DropReason): void;
  entry: ConnectionEntry | null;
}

interface ConnectionEntry {
  readonly connection: CapacityConnection;
  readonly peer: Peer | null;
  readonly node: ListNode;
  readonly peerNode: ListNode;
  standing: Standing;
  activeAt: number;
}

interface Peer {
  readonly name: string;
  readonly entries: LinkedList;
}

interface Group {
  readonly key: string | number;
  readonly maxBytes: number;
  readingCount: number;
  bytes: number;
  bodyCount: number;
}

export type BodyRefusal = 'share' | 'full';
export type Eviction = BodyRefusal | 'slow' | 'late';

export interface NewBody {
  /** Null for a peer without a share, such as a proxy. */
  readonly peer: string | null;
  /** The account or provider of an authenticated body, whose share it uses. Null: not authenticated. */
  readonly owner: string | number | null;
  readonly announcedBytes: number | null;
  readonly connection?: CapacityConnection;
}

export interface Body {
  readonly group: Group | null;
  readonly isAuthenticated: boolean;
  readonly announcedBytes: number;
  readonly connection: CapacityConnection | null;
  /** Must not throw, and need not release the body. */
  onEvicted: (reason: Eviction) => void;
  state: 'reading' | 'paused' | 'complete' | 'released';
  heldBytes: number;
  receivedBytes: number;
  /** True if the listener did not read the body all the time since the last check. */
  wasPaused: boolean;
  checkCount: number;
  previousBytes: number;
  earlierBytes: number;
  timedFrom: number;
  completedAt: number;
}

export interface CapacityLimits {
  readonly maxConnections: number;
  readonly peerConnectionShare: number;
  readonly maxBytes: number;
  readonly maxBodiesPerOwner: number;
  readonly bodyTimeoutMs: number;
  readonly maxInFlight: number;
}

export const CHECK_INTERVAL_MS = 1_000;
export const SMALL_BODY_BYTES = 65_536;
/** Left to authenticated and small bodies, and to small bodies alone. */
const RESERVE = 1 / 4;
const SMALL_RESERVE = 1 / 8;
const PEER_SHARE = 1 / 4;
const OWNER_SHARE = 1 / 2;
/** Bytes per second, measured over two intervals between checks. */
const LEAST_RATE = 8_192;
const LEAST_SMALL_RATE = 1_024;
/** After this check, a body is known to have been read for 2 s. */
const GRACE_CHECKS = 3;
const MIN_SENDING_IDLE_MS = 10_000;
const MAX_EXAMINED = 100;
const NEWEST_WEIGHT = 0.05;

export class Capacity {
  readonly #limits: CapacityLimits;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #maxConnectionsPerPeer: number;
  readonly #entries = new LinkedList();
  readonly #authenticated = new LinkedList();
  readonly #peers = new Map<string, Peer>();
  readonly #groups = new Map<string | number, Group>();
  readonly #reading = new Set<Body>();
  #openCount = 0;
  #bytes = 0;
  #inFlight = 0;
  #requestCount = 0;
  #meanMs = 0;
  #onIdle: (() => void) | null = null;

  constructor(limits: CapacityLimits, clock: Pick<Clock, 'now'>) {
    this.#limits = limits;
    this.#clock = clock;
    this.#maxConnectionsPerPeer = Math.max(1, Math.floor(limits.maxConnections * limits.peerConnectionShare));
  }

  get openCount(): number {
    return this.#openCount;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** May close others. Else returns why to close the new one. Null `peerName`: exempt from the share. */
  connect(connection: CapacityConnection, peerName: string | null): ConnectionRefusal | null {
    const peer =
      peerName === null ? null : (this.#peers.get(peerName) ?? { name: peerName, entries: new LinkedList() });
    const refusal = this.#makeRoom(peer);
    if (refusal !== null) return refusal;
    this.#openCount += 1;
    const entry: ConnectionEntry = {
      connection,
      peer,
      node: new ListNode(connection),
      peerNode: new ListNode(connection),
      standing: 'unknown',
      activeAt: this.#clock.now(),
    };
    this.#entries.append(entry.node);
    if (peer !== null) {
      this.#peers.set(peer.name, peer);
      peer.entries.append(entry.peerNode);
    }
    connection.entry = entry;
    return null;
  }

  setStanding({ entry }: CapacityConnection, standing: Standing): void {
    if (entry === null) return;
    if (entry.standing === 'authenticated') {
      this.#authenticated.remove(entry.node);
      this.#authenticated.append(entry.node);
      return;
    }
    if (entry.standing === standing) return;
    entry.standing = standing;
    if (standing !== 'authenticated') return;
    this.#unlink(entry);
    this.#authenticated.append(entry.node);
  }

  touch({ entry }: CapacityConnection): void {
    if (entry === null || entry.standing === 'authenticated') return;
    entry.activeAt = this.#clock.now();
    this.#entries.remove(entry.node);
    this.#entries.append(entry.node);
    if (entry.peer === null) return;
    entry.peer.entries.remove(entry.peerNode);
    entry.peer.entries.append(entry.peerNode);
  }

  disconnect(connection: CapacityConnection): void {
    const { entry } = connection;
    if (entry === null) return;
    connection.entry = null;
    this.#openCount -= 1;
    if (entry.standing === 'authenticated') this.#authenticated.remove(entry.node);
    else this.#unlink(entry);
  }

  #makeRoom(peer: Peer | null): ConnectionRefusal | null {
    const { maxConnections } = this.#limits;
    // Two connections are closed for each new one, so that a peer above its share falls to it.
    for (let closedCount = 0; closedCount < 2 && peer !== null; closedCount += 1) {
      if (peer.entries.length < this.#maxConnectionsPerPeer || this.#openCount * 2 < maxConnections) break;
      const closable = this.#findClosable(peer.entries);
      if (closable !== null) this.#close(closable, 'address-share');
      else if (closedCount === 0) return 'address-share';
    }
    if (this.#openCount < maxConnections) return null;
    const connection =
      this.#findClosable(this.#entries) ??
      this.#findSlowest((body) => body.connection !== null)?.connection ??
      this.#findIdleAuthenticated();
    if (connection === null) return 'full';
    this.#close(connection, 'full');
    return null;
  }

  #findClosable(entries: LinkedList): CapacityConnection | null {
    const idleSince = this.#clock.now() - MIN_SENDING_IDLE_MS;
    let weak: CapacityConnection | null = null;
    let idle: CapacityConnection | null = null;
    for (let node = entries.first; node !== null; node = node.next) {
      const { connection } = node;
      const { entry } = connection;
      if (entry === null || entry.standing === 'unknown') return connection;
      if (entry.standing === 'weak') weak ??= connection;
      if (entry.standing === 'sending' && entry.activeAt <= idleSince) idle ??= connection;
    }
    return weak ?? idle;
  }

  #findIdleAuthenticated(): CapacityConnection | null {
    let node = this.#authenticated.first;
    for (let count = 0; count < MAX_EXAMINED && node !== null; count += 1) {
      if (!node.connection.isInUse()) return node.connection;
      node = node.next;
    }
    return null;
  }

  #close(connection: CapacityConnection, reason: ConnectionRefusal): void {
    this.disconnect(connection);
    connection.close(reason);
  }

  #unlink({ node, peer, peerNode }: ConnectionEntry): void {
    this.#entries.remove(node);
    if (peer === null) return;
    peer.entries.remove(peerNode);
    if (peer.entries.length === 0) this.#peers.delete(peer.name);
  }

  open(newBody: NewBody & { readonly owner: null }): Body;
  open(newBody: NewBody): Body | null;
  open({ peer, owner, announcedBytes, connection }: NewBody): Body | null {
    const group = this.#getGroup(peer, owner);
    if (owner !== null && group !== null && group.readingCount >= this.#limits.maxBodiesPerOwner) {
      const slowest = this.#findSlowest((body) => body.group === group);
      if (slowest === null) return null;
      this.#evict(slowest, 'share');
    }
    const body: Body = {
      group,
      isAuthenticated: owner !== null,
      announcedBytes: announcedBytes ?? 0,
      connection: connection ?? null,
      onEvicted: ignoreEviction,
      state: 'reading',
      heldBytes: 0,
      receivedBytes: 0,
      wasPaused: false,
      checkCount: 0,
      previousBytes: 0,
      earlierBytes: 0,
      timedFrom: this.#clock.now(),
      completedAt: 0,
    };
    if (group !== null) {
      group.readingCount += 1;
      if (group.bodyCount === 0) this.#groups.set(group.key, group);
      group.bodyCount += 1;
    }
    this.#reading.add(body);
    return body;
  }

  take(body: Body, bytes: number): BodyRefusal | null {
    // The SMTP listener can still read bytes of a body that was evicted. They would never be released.
    if (body.state === 'released') return 'full';
    body.receivedBytes += bytes;
    const { group } = body;
    if (group !== null)
      while (group.bytes + bytes > group.maxBytes) {
        const slowest = this.#findSlowest((other) => other.group === group && other.heldBytes > 0);
        if (slowest === null || slowest === body) return 'share';
        this.#evict(slowest, 'share');
      }
    const maxBytes = this.#limits.maxBytes * getUsablePart(body);
    while (this.#bytes + bytes > maxBytes) {
      const victim = this.#findVictim(body);
      if (victim === null || victim === body) return 'full';
      this.#evict(victim, 'full');
    }
    body.heldBytes += bytes;
    this.#bytes += bytes;
    if (group !== null) group.bytes += bytes;
    return null;
  }

  discard(body: Body, bytes: number): void {
    body.receivedBytes += bytes;
  }

  setPaused(body: Body, isPaused: boolean): void {
    if (body.state !== 'reading' && body.state !== 'paused') return;
    body.state = isPaused ? 'paused' : 'reading';
    body.wasPaused = true;
    if (!isPaused) body.timedFrom = this.#clock.now();
  }

  /** False if the body was released, or too many requests are processed. */
  complete(body: Body): boolean {
    if (body.state === 'released' || this.isFull()) return false;
    this.#stopReading(body);
    body.state = 'complete';
    body.completedAt = this.#clock.now();
    this.#inFlight += 1;
    return true;
  }

  release(body: Body): void {
    const { state, group, heldBytes } = body;
    if (state === 'released') return;
    if (state === 'complete') {
      this.#inFlight -= 1;
      this.#meanMs += (this.#clock.now() - body.completedAt - this.#meanMs) * NEWEST_WEIGHT;
    } else this.#stopReading(body);
    body.state = 'released';
    body.onEvicted = ignoreEviction;
    this.#bytes -= heldBytes;
    if (group !== null) {
      group.bytes -= heldBytes;
      group.bodyCount -= 1;
      if (group.bodyCount === 0) this.#groups.delete(group.key);
    }
    this.#notifyIfIdle();
  }

  /** Evicts bodies that are late and, above half of the bytes or connections, bodies below the least rate. */
  check(): void {
    const now = this.#clock.now();
    const { maxBytes, maxConnections, bodyTimeoutMs } = this.#limits;
    for (const body of [...this.#reading]) {
      if (body.state !== 'reading') continue;
      if (now - body.timedFrom >= bodyTimeoutMs) {
        this.#evict(body, 'late');
        continue;
      }
      if (body.wasPaused) {
        body.wasPaused = false;
        continue;
      }
      body.checkCount += 1;
      const isSlow = isBelowLeastRate(body);
      body.earlierBytes = body.previousBytes;
      body.previousBytes = body.receivedBytes;
      const isInTheWay =
        (body.heldBytes > 0 && this.#bytes * 2 > maxBytes) ||
        (body.connection !== null && this.#openCount * 2 > maxConnections);
      if (isSlow && isInTheWay) this.#evict(body, 'slow');
    }
  }

  #getGroup(peer: string | null, owner: string | number | null): Group | null {
    const key = owner ?? peer;
    if (key === null) return null;
    const part = owner === null ? PEER_SHARE : OWNER_SHARE;
    return (
      this.#groups.get(key) ?? { key, maxBytes: this.#limits.maxBytes * part, readingCount: 0, bytes: 0, bodyCount: 0 }
    );
  }

  #findVictim(body: Body): Body | null {
    const slowest = this.#findSlowest((other) => !other.isAuthenticated && other.heldBytes > 0);
    if (slowest !== null || !body.isAuthenticated) return slowest;
    for (const other of this.#reading) if (!other.isAuthenticated && other.heldBytes > 0) return other;
    return this.#findSlowest((other) => other.heldBytes > 0);
  }

  #findSlowest(matches: (body: Body) => boolean): Body | null {
    let slowest: Body | null = null;
    for (const body of this.#reading)
      if (
        body.state === 'reading' &&
        body.checkCount >= GRACE_CHECKS &&
        matches(body) &&
        (slowest === null || countRecentBytes(body) < countRecentBytes(slowest))
      )
        slowest = body;
    return slowest;
  }

  #evict(body: Body, reason: Eviction): void {
    const { onEvicted } = body;
    this.release(body);
    onEvicted(reason);
  }

  #stopReading(body: Body): void {
    if (this.#reading.delete(body) && body.group !== null) body.group.readingCount -= 1;
  }

  isFull(): boolean {
    return this.#inFlight >= this.#limits.maxInFlight;
  }

  /** When a refused client should retry: by Little’s law, as many requests complete by then as are in flight. */
  get advisedWaitMs(): number {
    return Math.max(1, this.#meanMs);
  }

  beginRequest(): void {
    this.#requestCount += 1;
  }

  endRequest(): void {
    this.#requestCount -= 1;
    this.#notifyIfIdle();
  }

  runWhenIdle(run: () => void): void {
    this.#onIdle = run;
    this.#notifyIfIdle();
  }

  #notifyIfIdle(): void {
    if (this.#onIdle === null || this.#requestCount > 0 || this.#reading.size > 0 || this.#inFlight > 0) return;
    const run = this.#onIdle;
    this.#onIdle = null;
    run();
  }
}

class ListNode {
  readonly connection: CapacityConnection;
  previous: ListNode | null = null;
  next: ListNode | null = null;

  constructor(connection: CapacityConnection) {
    this.connection = connection;
  }
}

/** A doubly linked list. The first element of a `Set` takes time for each element that was deleted before it. */
class LinkedList {
  first: ListNode | null = null;
  #last: ListNode | null = null;
  length = 0;

  append(node: ListNode): void {
    node.previous = this.#last;
    if (this.#last === null) this.first = node;
    else this.#last.next = node;
    this.#last = node;
    this.length += 1;
  }

  remove(node: ListNode): void {
    if (node.previous === null) this.first = node.next;
    else node.previous.next = node.next;
    if (node.next === null) this.#last = node.previous;
    else node.next.previous = node.previous;
    node.previous = null;
    node.next = null;
    this.length -= 1;
  }
}

const ignoreEviction = (): void => undefined;

function isSmall({ announcedBytes, receivedBytes }: Body): boolean {
  return announcedBytes <= SMALL_BODY_BYTES && receivedBytes <= SMALL_BODY_BYTES;
}

function getUsablePart(body: Body): number {
  if (isSmall(body)) return 1;
  return 1 - (body.isAuthenticated ? SMALL_RESERVE : RESERVE);
}

function countRecentBytes({ receivedBytes, earlierBytes }: Body): number {
  return receivedBytes - earlierBytes;
}

function isBelowLeastRate(body: Body): boolean {
  const leastBytes = ((isSmall(body) ? LEAST_SMALL_RATE : LEAST_RATE) * 2 * CHECK_INTERVAL_MS) / 1_000;
  return body.checkCount >= GRACE_CHECKS && countRecentBytes(body) < leastBytes;
}

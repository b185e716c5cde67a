/**
 * The connections of one HTTP listener: how many there are, how far each may read ahead of its answers, how long an answer may
 * go unread, and answers below HTTP. Every HTTP listener of the service has one.
 *
 * Guarantees: every socket has an error listener from its first moment to its last, so that no reset ends the process; at
 * most `maxConnections`, by the rules of `ConnectionTable`; a connection with more than `maxUnanswered` requests without
 * an answer is not read further until half of them are answered; keyless ones among these are then read on one at a time,
 * every `unauthenticatedReadIntervalMs`, so that requests without a key cannot take the whole processor; a connection whose client reads no
 * answer for `unreadResponseTimeoutMs` is closed; an answer below HTTP follows the answers that are still owed and never comes
 * between them.
 *
 * Node parses each piece that it reads to its end, 64 KiB or some 3,600 requests of the shortest kind, before a pause has any
 * effect. Pieces are therefore cut up on connections that are keyless or pipeline, and the stream's own buffer holds back
 * what a paused connection has sent.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Server as TlsServer } from 'node:https';
import { BlockList, isIP, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock } from '../clock.ts';
import { peerNetworkOf } from '../model/address.ts';
import type { DropReason } from '../model/events.ts';
import { ConnectionTable, type TableConnection } from './capacity.ts';

export interface ConnectionLimits {
  /** Connections at once. */
  readonly maxConnections: number;
  /** How long a connection may idle between two requests. */
  readonly keepAliveTimeoutMs: number;
  /** The same for a connection that has presented no valid key or session. */
  readonly unauthenticatedKeepAliveTimeoutMs: number;
  /** How long after an answer the next request's headers may take to be whole on such a connection, whatever is sent meanwhile. */
  readonly unauthenticatedHeadersTimeoutMs: number;
  /** Requests of one connection without an answer; with more it is not read further. */
  readonly maxUnanswered: number;
  /** Connections at once that are not read further; one more is closed. */
  readonly maxPaused: number;
  /** One keyless connection that pipelines is read on in each such time: this bounds what all of them cost together. */
  readonly unauthenticatedReadIntervalMs: number;
  /** How long a client may read nothing of an answer that waits for it. */
  readonly unreadResponseTimeoutMs: number;
  /** How often unread answers are looked for. */
  readonly timeoutCheckMs: number;
}

export const CONNECTION_LIMITS: ConnectionLimits = {
  maxConnections: 10_000,
  keepAliveTimeoutMs: 65_000,
  unauthenticatedKeepAliveTimeoutMs: 5_000,
  // The time between two requests and that for a request's headers.
  unauthenticatedHeadersTimeoutMs: 16_000,
  maxUnanswered: 8,
  maxPaused: 256,
  unauthenticatedReadIntervalMs: 4,
  unreadResponseTimeoutMs: 10_000,
  timeoutCheckMs: 1_000,
};

/** What a listener is handed of it. */
export interface HttpConnections {
  /** Puts the server's connections under the limits; after its request listeners are added and before it listens. */
  attach(server: Server): void;
  /** A valid key or session was presented on this socket, or a message whose signature holds. */
  markAuthenticated(socket: Duplex): void;
  /** Writes a whole HTTP answer, once the answers that are owed are sent, and ends the connection. */
  endWithResponse(socket: Duplex, answer: string | Buffer): void;
  /** For `clientError`: what was read is no HTTP. `answer` is called where there is somebody to be answered. */
  handleClientError(error: NodeJS.ErrnoException, socket: Duplex, answer: () => string | Buffer): void;
}

export interface ConnectionParts {
  readonly limits: ConnectionLimits;
  readonly clock: Clock;
  /** True for an address whose peers have no share of their own. */
  readonly isExemptFromPeerShare: (address: string) => boolean;
  /** A connection was closed from our side; must not throw. */
  readonly onDrop: (reason: DropReason) => void;
}

/** True for loopback addresses and for those in `trusted`, addresses and CIDR networks as the settings hold them. */
export function peerShareExemption(trusted: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const network of trusted) {
    const [address = '', prefix] = network.split('/');
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    if (prefix === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(prefix), family);
  }
  return (address) => {
    const peer = peerNetworkOf(address);
    // RFC 1122 section 3.2.1.3; an IPv4 address is a peer by itself.
    if (address === '::1' || peer.startsWith('127.')) return true;
    return trusted.length > 0 && (isIP(peer) === 4 ? list.check(peer, 'ipv4') : list.check(address, 'ipv6'));
  };
}

/** A piece of a keyless connection, large enough for most requests, and of one that pipelines. */
const SLICE_BYTES = 1_024;
const PIPELINED_SLICE_BYTES = 256;
/** Node ends an idle connection so much later than the answer's Keep-Alive header says. */
const KEEP_ALIVE_SLACK_MS = 1_000;
/** How long an answer below HTTP may take to leave. */
const FLUSH_MS = 2_000;

interface Connection extends TableConnection {
  /** What the peer is connected to; under TLS there is a second socket above it. */
  readonly bottom: Socket;
  /** What HTTP reads and writes. */
  top: Socket;
  identified: boolean;
  /** More than one request at once has been without an answer. */
  pipelines: boolean;
  unanswered: number;
  newest: ServerResponse | null;
  /** When reading stopped for want of answers (ms since the epoch), or null. */
  heldAt: number | null;
  /** Bytes that the system has taken of what was written, and at how many looks on end an answer waited and these were the same. */
  sentBytes: number;
  stuckLooks: number;
  /** At how many looks on end it was keyless and had no request, since its last answer. */
  gapLooks: number;
  /** What ends the connection once no more than `answers` answers are owed. */
  last: { readonly answers: 0 | 1; readonly run: () => void } | null;
}

const ignore = (): void => undefined;

/** The connections of one listener. */
export class Connections implements HttpConnections {
  readonly #limits: ConnectionLimits;
  readonly #clock: Clock;
  readonly #sharesNothing: (address: string) => boolean;
  readonly #dropped: (reason: DropReason) => void;
  readonly #table: ConnectionTable;
  readonly #all = new Set<Connection>();
  readonly #bySocket = new WeakMap<Duplex, Connection>();
  /** Connections whose TLS handshake is under way, by both ends. */
  readonly #handshakes = new Map<string, Connection>();
  /** Connections that are not read, the one that has waited for longest first. */
  readonly #held = new Set<Connection>();
  /** Of these, the keyless ones whose answers are sent: they take turns. */
  readonly #waiting = new Set<Connection>();
  #turnIsSet = false;

  constructor({ limits, clock, isExemptFromPeerShare: sharesNothing, onDrop: dropped }: ConnectionParts) {
    this.#limits = limits;
    this.#clock = clock;
    this.#sharesNothing = sharesNothing;
    this.#dropped = dropped;
    this.#table = new ConnectionTable(limits.maxConnections);
  }

  attach(server: Server): void {
    const { keepAliveTimeoutMs, timeoutCheckMs } = this.#limits;
    server.keepAliveTimeout = keepAliveTimeoutMs;
    if (server instanceof TlsServer) {
      server.on('connection', (socket: Socket) => {
        const connection = this.#enter(socket);
        if (connection !== null) this.#handshakes.set(endsOf(socket), connection);
      });
      server.on('secureConnection', (socket) => {
        const ends = endsOf(socket);
        const connection = this.#handshakes.get(ends);
        this.#handshakes.delete(ends);
        socket.on('error', ignore);
        if (connection === undefined) socket.destroy();
        else this.#read(connection, socket);
      });
    } else {
      server.on('connection', (socket: Socket) => {
        const connection = this.#enter(socket);
        if (connection !== null) this.#read(connection, socket);
      });
    }
    server.on('timeout', (socket: Socket) => this.#onTimeout(socket));
    const begin = (request: IncomingMessage, response: ServerResponse) => this.#begin(request, response);
    server.prependListener('request', begin);
    // node:http answers these events itself if they have no listener.
    for (const event of ['checkContinue', 'checkExpectation'] as const)
      if (server.listenerCount(event) > 0) server.prependListener(event, begin);
    let cancel = ignore;
    const look = (): void => {
      cancel = this.#clock.after(timeoutCheckMs, () => {
        this.#look();
        look();
      });
    };
    server.on('listening', look);
    server.on('close', () => cancel());
  }

  markAuthenticated(socket: Duplex): void {
    const connection = this.#bySocket.get(socket);
    if (connection === undefined || connection.identified) return;
    connection.identified = true;
    this.#table.markAuthenticated(connection);
    if (connection.newest !== null) announceKeepAlive(connection.newest, this.#limits.keepAliveTimeoutMs);
  }

  endWithResponse(socket: Duplex, answer: string | Buffer): void {
    const connection = this.#bySocket.get(socket);
    const run = () => this.#write(socket, answer);
    if (connection === undefined || connection.unanswered === 0) run();
    else connection.last = { answers: 0, run };
  }

  handleClientError(error: NodeJS.ErrnoException, socket: Duplex, answer: () => string | Buffer): void {
    if (!socket.writable || error.code === 'ECONNRESET' || error.code === 'EPIPE') {
      socket.destroy();
      return;
    }
    const connection = this.#bySocket.get(socket);
    const newest = connection?.newest ?? null;
    if (connection === undefined || newest === null || connection.unanswered === 0) {
      this.#write(socket, answer());
      return;
    }
    if (connection.last !== null) return;
    if (!newest.req.complete) {
      if (connection.unanswered > 1)
        connection.last = {
          answers: 1,
          run: newest.headersSent ? () => socket.destroy() : () => this.#write(socket, answer()),
        };
      else if (newest.headersSent) socket.destroy();
      else this.#write(socket, answer());
      return;
    }
    // Garbage behind a whole request, which may be on its way into the store: its own answer comes first, and last.
    newest.shouldKeepAlive = false;
    connection.last = { answers: 0, run: () => connection.top.destroySoon() };
    stopReading(connection.top);
  }

  /** A new connection; null where it was refused. */
  #enter(socket: Socket): Connection | null {
    socket.on('error', ignore);
    const { remoteAddress } = socket;
    if (remoteAddress === undefined) {
      socket.destroy();
      return null;
    }
    const connection: Connection = {
      tableEntry: null,
      bottom: socket,
      top: socket,
      identified: false,
      pipelines: false,
      unanswered: 0,
      newest: null,
      heldAt: null,
      sentBytes: 0,
      stuckLooks: 0,
      gapLooks: 0,
      last: null,
      close: (reason) => {
        if (socket.destroyed) return;
        this.#dropped(reason);
        socket.destroy();
      },
    };
    const peer = this.#sharesNothing(remoteAddress) ? null : peerNetworkOf(remoteAddress);
    if (!this.#table.add(connection, peer)) return null;
    this.#all.add(connection);
    this.#bySocket.set(socket, connection);
    const ends = endsOf(socket);
    socket.once('close', () => {
      this.#table.remove(connection);
      this.#all.delete(connection);
      if (this.#handshakes.get(ends) === connection) this.#handshakes.delete(ends);
      this.#letGo(connection);
    });
    return connection;
  }

  /** HTTP reads this socket, in pieces that the connection's state allows. */
  #read(connection: Connection, socket: Socket): void {
    connection.top = socket;
    this.#bySocket.set(socket, connection);
    // With a listener of ours Node hands what it reads to the stream, and not to its parser behind the stream's back.
    socket.on('data', ignore);
    socket.off('data', ignore);
    const push = socket.push.bind(socket);
    socket.push = (piece: unknown, encoding?: BufferEncoding): boolean => {
      if (!(piece instanceof Uint8Array) || (connection.identified && !connection.pipelines))
        return push(piece, encoding);
      let [at, more] = [0, true];
      while (at < piece.length && !socket.destroyed) {
        const end = at + (connection.pipelines ? PIPELINED_SLICE_BYTES : SLICE_BYTES);
        more = push(at === 0 && end >= piece.length ? piece : piece.subarray(at, end));
        at = end;
      }
      return more;
    };
  }

  #begin(request: IncomingMessage, response: ServerResponse): void {
    const connection = this.#bySocket.get(request.socket);
    if (connection === undefined) return;
    connection.newest = response;
    connection.unanswered += 1;
    connection.gapLooks = 0;
    response.once('close', () => this.#answered(connection));
    if (!connection.identified) announceKeepAlive(response, this.#limits.unauthenticatedKeepAliveTimeoutMs);
    if (connection.unanswered === 1) return;
    connection.pipelines = true;
    if (connection.unanswered > this.#limits.maxUnanswered && connection.heldAt === null) this.#hold(connection);
  }

  #answered(connection: Connection): void {
    connection.unanswered -= 1;
    const { top, last, unanswered, identified } = connection;
    if (last !== null) {
      if (unanswered <= last.answers) last.run();
      return;
    }
    if (unanswered === 0 && !identified && !top.destroyed)
      top.setTimeout(this.#limits.unauthenticatedKeepAliveTimeoutMs + KEEP_ALIVE_SLACK_MS);
    // Half of them, so that a client that keeps up is not stopped at each request.
    if (connection.heldAt === null || unanswered !== this.#limits.maxUnanswered >> 1) return;
    // In a later turn of the event loop: other connections are served between two pieces of this one.
    if (identified) setImmediate(() => this.#readOn(connection));
    else {
      this.#waiting.add(connection);
      this.#setTurn();
    }
  }

  /** Lets the next keyless connection be read on after `unauthenticatedReadIntervalMs`, and so forth while any waits. */
  #setTurn(): void {
    if (this.#turnIsSet) return;
    this.#turnIsSet = true;
    this.#clock.after(this.#limits.unauthenticatedReadIntervalMs, () => {
      this.#turnIsSet = false;
      const [next] = this.#waiting;
      if (next === undefined) return;
      this.#waiting.delete(next);
      this.#readOn(next);
      if (this.#waiting.size > 0) this.#setTurn();
    });
  }

  #readOn(connection: Connection): void {
    const { top, last } = connection;
    if (top.destroyed || last !== null) return;
    this.#letGo(connection);
    startReading(top);
  }

  #hold(connection: Connection): void {
    if (this.#held.size >= this.#limits.maxPaused) {
      // A keyless connection makes room; where there is none the new one has to go.
      const keyless = [...this.#held].find(({ identified }) => !identified) ?? connection;
      keyless.close('pipelining');
      if (keyless === connection) return;
      this.#letGo(keyless);
    }
    this.#held.add(connection);
    connection.heldAt = this.#clock.now();
    stopReading(connection.top);
  }

  #letGo(connection: Connection): void {
    if (connection.heldAt === null) return;
    connection.heldAt = null;
    this.#held.delete(connection);
    this.#waiting.delete(connection);
  }

  /**
   * Closes connections whose client does not read, and keyless ones that send bytes and no request: empty lines between two
   * requests are skipped (RFC 9112 section 2.2). The socket's timeout does not tell: each byte that the client sends begins it
   * anew, and node:http leaves it alone after a CONNECT.
   */
  #look(): void {
    const {
      unauthenticatedHeadersTimeoutMs: keylessGapMs,
      unreadResponseTimeoutMs: unreadTimeoutMs,
      timeoutCheckMs,
    } = this.#limits;
    const now = this.#clock.now();
    for (const connection of this.#all) {
      const { bottom, top, heldAt, unanswered, identified, newest } = connection;
      if (unanswered === 0 && !identified && newest !== null) {
        connection.gapLooks += 1;
        if (connection.gapLooks * timeoutCheckMs >= keylessGapMs) top.destroy();
      }
      if (unanswered === 0 || top.writableLength === 0) {
        connection.stuckLooks = 0;
        continue;
      }
      const sentBytes = sentBytesOf(bottom);
      connection.stuckLooks = sentBytes === connection.sentBytes ? connection.stuckLooks + 1 : 0;
      connection.sentBytes = sentBytes;
      // Answers to pipelined requests are small: a client that reads has read them by then, however slowly.
      const isLate = heldAt !== null && now - heldAt >= unreadTimeoutMs;
      if (isLate || connection.stuckLooks * timeoutCheckMs >= unreadTimeoutMs) connection.close('unread-answers');
    }
  }

  /** Nothing was read or written for as long as the socket's timeout says. */
  #onTimeout(socket: Socket): void {
    const connection = this.#bySocket.get(socket);
    if (connection === undefined || connection.unanswered === 0) socket.destroy();
    // Its client is `#look`'s matter; else it is we who are slow.
    else socket.setTimeout(0);
  }

  #write(socket: Duplex, answer: string | Buffer): void {
    if (socket.destroyed) return;
    // node:http removes its error listener after CONNECT and after a failed TLS handshake.
    socket.on('error', ignore);
    socket.end(answer, () => socket.destroy());
    socket.once(
      'close',
      this.#clock.after(FLUSH_MS, () => socket.destroy()),
    );
  }
}

/** Both ends of a connection: one text for each that is open. */
function endsOf({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`;
}

/** How much of what was written to it the system has taken from the process; NaN, which equals nothing, once it is closed. */
function sentBytesOf(socket: Socket): number {
  const handle: unknown = Reflect.get(socket, '_handle');
  if (typeof handle !== 'object' || handle === null) return Number.NaN;
  return Number(Reflect.get(handle, 'bytesWritten')) - Number(Reflect.get(handle, 'writeQueueSize'));
}

/** What the answer's Keep-Alive header will say; node:http keeps it under this name and takes it from the server alone. */
function announceKeepAlive(response: ServerResponse, timeoutMs: number): void {
  if ('_keepAliveTimeout' in response) response._keepAliveTimeout = timeoutMs;
}

/** Reads no more until `startReading`, whatever node:http does meanwhile: it resumes a socket for reasons of its own. */
function stopReading(socket: Socket): void {
  socket.pause();
  socket.resume = () => socket;
}

function startReading(socket: Socket): void {
  Reflect.deleteProperty(socket, 'resume');
  // Node has paused it too, for answers that wait: it resumes it itself, and asserts that nobody else did.
  if ('_paused' in socket && socket._paused === true) return;
  socket.resume();
}

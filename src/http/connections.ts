/**
 * The connections of one HTTP listener: their number, pipelined requests, unread responses, and responses to bytes that are not HTTP.
 * Every HTTP listener of the service has one.
 *
 * Guarantees: every socket always has an error listener, so a reset never ends the process. There are at most `maxConnections`, by
 * the rules of `ConnectionTable`. A connection with more than `maxUnanswered` unanswered requests is paused until half of them are
 * answered. Paused unauthenticated connections are resumed one at a time, every `unauthenticatedReadIntervalMs`, so requests without a
 * key cannot use the whole processor. A connection whose client reads no response for `unreadResponseTimeoutMs` is closed. A response
 * to bytes that are not HTTP is sent after all pending responses.
 *
 * Node parses each chunk that it reads completely, 64 KiB or about 3,600 minimal requests, before a pause has any effect. Chunks are
 * therefore split on connections that are unauthenticated or pipeline, and the stream's buffer keeps what a paused connection sent.
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
  /** The maximum idle time between two requests. */
  readonly keepAliveTimeoutMs: number;
  /** The maximum idle time of an unauthenticated connection, which has presented no valid key or session. */
  readonly unauthenticatedKeepAliveTimeoutMs: number;
  /** The maximum time from a response to the complete headers of the next request on an unauthenticated connection. */
  readonly unauthenticatedHeadersTimeoutMs: number;
  /** The maximum of unanswered requests of one connection. With more it is paused. */
  readonly maxUnanswered: number;
  /** The maximum of paused connections. One more is closed. */
  readonly maxPaused: number;
  /** One paused unauthenticated connection is resumed per interval, which bounds the processor time of all of them. */
  readonly unauthenticatedReadIntervalMs: number;
  /** The maximum time in which a client reads nothing of a pending response. */
  readonly unreadResponseTimeoutMs: number;
  /** The interval of the check for unread responses. */
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

/** The interface for listeners. */
export interface HttpConnections {
  /** Applies the limits to the server's connections. To be called after its request listeners are added and before it listens. */
  attach(server: Server): void;
  /** A valid key or session was presented on this socket, or a message whose signature holds. */
  markAuthenticated(socket: Duplex): void;
  /** Writes a complete HTTP response after all pending responses, and ends the connection. */
  endWithResponse(socket: Duplex, answer: string | Buffer): void;
  /** For `clientError`: the received bytes are not HTTP. `answer` is called if a response can be sent. */
  handleClientError(error: NodeJS.ErrnoException, socket: Duplex, answer: () => string | Buffer): void;
}

export interface ConnectionParts {
  readonly limits: ConnectionLimits;
  readonly clock: Clock;
  /** True for an address that is exempt from the share of a peer. */
  readonly isExemptFromPeerShare: (address: string) => boolean;
  /** Called when the listener closes a connection; must not throw. */
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

/** The chunk size of an unauthenticated connection, which is enough for most requests, and of one that pipelines. */
const SLICE_BYTES = 1_024;
const PIPELINED_SLICE_BYTES = 256;
/** How much later than announced in the Keep-Alive header Node closes an idle connection. */
const KEEP_ALIVE_SLACK_MS = 1_000;
/** The maximum time to send a response to bytes that are not HTTP. */
const FLUSH_MS = 2_000;

interface Connection extends TableConnection {
  /** The TCP socket; with TLS there is a second socket above it. */
  readonly bottom: Socket;
  /** The socket that HTTP reads and writes. */
  top: Socket;
  identified: boolean;
  /** True once more than one request was unanswered at the same time. */
  pipelines: boolean;
  unanswered: number;
  newest: ServerResponse | null;
  /** When it was paused because of unanswered requests (ms since the epoch), or null. */
  heldAt: number | null;
  /** Bytes that the system has accepted, and the number of consecutive checks in which a response was pending and they did not change. */
  sentBytes: number;
  stuckLooks: number;
  /** The number of consecutive checks since its last response in which it was unauthenticated and had no request. */
  gapLooks: number;
  /** Ends the connection once at most `answers` responses are pending. */
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
  /** Paused connections, longest first. */
  readonly #held = new Set<Connection>();
  /** Paused unauthenticated connections that can be resumed, in turn. */
  readonly #waiting = new Set<Connection>();
  #turnIsSet = false;

  constructor({ limits, clock, isExemptFromPeerShare, onDrop }: ConnectionParts) {
    this.#limits = limits;
    this.#clock = clock;
    this.#sharesNothing = isExemptFromPeerShare;
    this.#dropped = onDrop;
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
    // Invalid bytes after a complete request, which may be about to be stored: only its own response is sent.
    newest.shouldKeepAlive = false;
    connection.last = { answers: 0, run: () => connection.top.destroySoon() };
    stopReading(connection.top);
  }

  /** Adds a connection; null if it was refused. */
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

  /** Lets HTTP read this socket, in chunks of the size for the connection's state. */
  #read(connection: Connection, socket: Socket): void {
    connection.top = socket;
    this.#bySocket.set(socket, connection);
    // A `data` listener makes Node pass chunks through the stream instead of directly to its parser.
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
    // At half, so a client is not paused at each request.
    if (connection.heldAt === null || unanswered !== this.#limits.maxUnanswered >> 1) return;
    // In a later turn of the event loop, so other connections are served between two chunks of this one.
    if (identified) setImmediate(() => this.#readOn(connection));
    else {
      this.#waiting.add(connection);
      this.#setTurn();
    }
  }

  /** Resumes one waiting unauthenticated connection per `unauthenticatedReadIntervalMs` while any waits. */
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
      // An unauthenticated connection is closed to make room; if there is none, the new one is closed.
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
   * Closes connections whose client does not read, and unauthenticated connections that send bytes without a request: empty lines
   * between two requests are skipped (RFC 9112 section 2.2). The socket's timeout is not sufficient: each received byte restarts it,
   * and node:http ignores it after a CONNECT.
   */
  #look(): void {
    const { unauthenticatedHeadersTimeoutMs, unreadResponseTimeoutMs, timeoutCheckMs } = this.#limits;
    const now = this.#clock.now();
    for (const connection of this.#all) {
      const { bottom, top, heldAt, unanswered, identified, newest } = connection;
      if (unanswered === 0 && !identified && newest !== null) {
        connection.gapLooks += 1;
        if (connection.gapLooks * timeoutCheckMs >= unauthenticatedHeadersTimeoutMs) top.destroy();
      }
      if (unanswered === 0 || top.writableLength === 0) {
        connection.stuckLooks = 0;
        continue;
      }
      const sentBytes = sentBytesOf(bottom);
      connection.stuckLooks = sentBytes === connection.sentBytes ? connection.stuckLooks + 1 : 0;
      connection.sentBytes = sentBytes;
      // Responses to pipelined requests are small, so even a slow client has read them by then.
      const isLate = heldAt !== null && now - heldAt >= unreadResponseTimeoutMs;
      if (isLate || connection.stuckLooks * timeoutCheckMs >= unreadResponseTimeoutMs)
        connection.close('unread-answers');
    }
  }

  /** Nothing was read or written during the socket's timeout. */
  #onTimeout(socket: Socket): void {
    const connection = this.#bySocket.get(socket);
    if (connection === undefined || connection.unanswered === 0) socket.destroy();
    // `#look` handles a client that does not read. Otherwise the service itself is slow.
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

/** Both ends of a connection as a text that is unique among open connections. */
function endsOf({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`;
}

/** The number of written bytes that the system has accepted; NaN once the socket is closed. */
function sentBytesOf(socket: Socket): number {
  const handle: unknown = Reflect.get(socket, '_handle');
  if (typeof handle !== 'object' || handle === null) return Number.NaN;
  return Number(Reflect.get(handle, 'bytesWritten')) - Number(Reflect.get(handle, 'writeQueueSize'));
}

/** Sets the timeout in the response's Keep-Alive header, which node:http otherwise reads from the server. */
function announceKeepAlive(response: ServerResponse, timeoutMs: number): void {
  if ('_keepAliveTimeout' in response) response._keepAliveTimeout = timeoutMs;
}

/** Pauses the socket until `startReading`. node:http resumes sockets by itself, so `resume` is disabled. */
function stopReading(socket: Socket): void {
  socket.pause();
  socket.resume = () => socket;
}

function startReading(socket: Socket): void {
  Reflect.deleteProperty(socket, 'resume');
  // Node has also paused it because of pending responses. Node resumes it by itself and asserts that it was not resumed before.
  if ('_paused' in socket && socket._paused === true) return;
  socket.resume();
}

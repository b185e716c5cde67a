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
  endWithResponse(socket: Duplex, response: string | Buffer): void;
  /** For `clientError`: the received bytes are not HTTP. `answer` is called if a response can be sent. */
  handleClientError(error: NodeJS.ErrnoException, socket: Duplex, createResponse: () => string | Buffer): void;
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
const MAX_FLUSH_MS = 2_000;

interface Connection extends TableConnection {
  /** The TCP socket; with TLS there is a second socket above it. */
  readonly tcpSocket: Socket;
  /** The socket that HTTP reads and writes. */
  httpSocket: Socket;
  isAuthenticated: boolean;
  /** True once more than one request was unanswered at the same time. */
  isPipelining: boolean;
  unansweredCount: number;
  newestResponse: ServerResponse | null;
  /** When it was paused because of unanswered requests (ms since the epoch), or null. */
  pausedAt: number | null;
  /** Bytes that the system has accepted, and the number of consecutive checks in which a response was pending and they did not change. */
  sentBytes: number;
  checksWithoutProgress: number;
  /** The number of consecutive checks since its last response in which it was unauthenticated and had no request. */
  checksWithoutRequest: number;
  /** Ends the connection once at most `answers` responses are pending. */
  finalAction: { readonly maxPending: 0 | 1; readonly run: () => void } | null;
}

const ignore = (): void => undefined;

/** The connections of one listener. */
export class Connections implements HttpConnections {
  readonly #limits: ConnectionLimits;
  readonly #clock: Clock;
  readonly #isExemptFromPeerShare: (address: string) => boolean;
  readonly #onDrop: (reason: DropReason) => void;
  readonly #table: ConnectionTable;
  readonly #connections = new Set<Connection>();
  readonly #bySocket = new WeakMap<Duplex, Connection>();
  /** Connections whose TLS handshake is under way, by both ends. */
  readonly #handshakes = new Map<string, Connection>();
  /** Paused connections, longest first. */
  readonly #paused = new Set<Connection>();
  /** Paused unauthenticated connections that can be resumed, in turn. */
  readonly #resumable = new Set<Connection>();
  #isResumeScheduled = false;

  constructor({ limits, clock, isExemptFromPeerShare, onDrop }: ConnectionParts) {
    this.#limits = limits;
    this.#clock = clock;
    this.#isExemptFromPeerShare = isExemptFromPeerShare;
    this.#onDrop = onDrop;
    this.#table = new ConnectionTable(limits.maxConnections);
  }

  attach(server: Server): void {
    const { keepAliveTimeoutMs, timeoutCheckMs } = this.#limits;
    server.keepAliveTimeout = keepAliveTimeoutMs;
    if (server instanceof TlsServer) {
      server.on('connection', (socket: Socket) => {
        const connection = this.#addConnection(socket);
        if (connection !== null) this.#handshakes.set(connectionIdOf(socket), connection);
      });
      server.on('secureConnection', (socket) => {
        const connectionId = connectionIdOf(socket);
        const connection = this.#handshakes.get(connectionId);
        this.#handshakes.delete(connectionId);
        socket.on('error', ignore);
        if (connection === undefined) socket.destroy();
        else this.#attachSocket(connection, socket);
      });
    } else {
      server.on('connection', (socket: Socket) => {
        const connection = this.#addConnection(socket);
        if (connection !== null) this.#attachSocket(connection, socket);
      });
    }
    server.on('timeout', (socket: Socket) => this.#onTimeout(socket));
    const onRequest = (request: IncomingMessage, response: ServerResponse) => this.#onRequest(request, response);
    server.prependListener('request', onRequest);
    // node:http answers these events itself if they have no listener.
    for (const event of ['checkContinue', 'checkExpectation'] as const)
      if (server.listenerCount(event) > 0) server.prependListener(event, onRequest);
    let cancel = ignore;
    const scheduleCheck = (): void => {
      cancel = this.#clock.after(timeoutCheckMs, () => {
        this.#closeStalledConnections();
        scheduleCheck();
      });
    };
    server.on('listening', scheduleCheck);
    server.on('close', () => cancel());
  }

  markAuthenticated(socket: Duplex): void {
    const connection = this.#bySocket.get(socket);
    if (connection === undefined || connection.isAuthenticated) return;
    connection.isAuthenticated = true;
    this.#table.markAuthenticated(connection);
    if (connection.newestResponse !== null)
      announceKeepAlive(connection.newestResponse, this.#limits.keepAliveTimeoutMs);
  }

  endWithResponse(socket: Duplex, response: string | Buffer): void {
    const connection = this.#bySocket.get(socket);
    const run = () => this.#sendAndClose(socket, response);
    if (connection === undefined || connection.unansweredCount === 0) run();
    else connection.finalAction = { maxPending: 0, run };
  }

  handleClientError(error: NodeJS.ErrnoException, socket: Duplex, createResponse: () => string | Buffer): void {
    if (!socket.writable || error.code === 'ECONNRESET' || error.code === 'EPIPE') {
      socket.destroy();
      return;
    }
    const connection = this.#bySocket.get(socket);
    const newestResponse = connection?.newestResponse ?? null;
    if (connection === undefined || newestResponse === null || connection.unansweredCount === 0) {
      this.#sendAndClose(socket, createResponse());
      return;
    }
    if (connection.finalAction !== null) return;
    if (!newestResponse.req.complete) {
      if (connection.unansweredCount > 1)
        connection.finalAction = {
          maxPending: 1,
          run: newestResponse.headersSent ? () => socket.destroy() : () => this.#sendAndClose(socket, createResponse()),
        };
      else if (newestResponse.headersSent) socket.destroy();
      else this.#sendAndClose(socket, createResponse());
      return;
    }
    // Invalid bytes after a complete request, which may be about to be stored: only its own response is sent.
    newestResponse.shouldKeepAlive = false;
    connection.finalAction = { maxPending: 0, run: () => connection.httpSocket.destroySoon() };
    stopReading(connection.httpSocket);
  }

  /** Adds a connection; null if it was refused. */
  #addConnection(socket: Socket): Connection | null {
    socket.on('error', ignore);
    const { remoteAddress } = socket;
    if (remoteAddress === undefined) {
      socket.destroy();
      return null;
    }
    const connection: Connection = {
      tableEntry: null,
      tcpSocket: socket,
      httpSocket: socket,
      isAuthenticated: false,
      isPipelining: false,
      unansweredCount: 0,
      newestResponse: null,
      pausedAt: null,
      sentBytes: 0,
      checksWithoutProgress: 0,
      checksWithoutRequest: 0,
      finalAction: null,
      close: (reason) => {
        if (socket.destroyed) return;
        this.#onDrop(reason);
        socket.destroy();
      },
    };
    const peer = this.#isExemptFromPeerShare(remoteAddress) ? null : peerNetworkOf(remoteAddress);
    if (!this.#table.add(connection, peer)) return null;
    this.#connections.add(connection);
    this.#bySocket.set(socket, connection);
    const connectionId = connectionIdOf(socket);
    socket.once('close', () => {
      this.#table.remove(connection);
      this.#connections.delete(connection);
      if (this.#handshakes.get(connectionId) === connection) this.#handshakes.delete(connectionId);
      this.#removeFromPaused(connection);
    });
    return connection;
  }

  /** Lets HTTP read this socket, in chunks of the size for the connection's state. */
  #attachSocket(connection: Connection, socket: Socket): void {
    connection.httpSocket = socket;
    this.#bySocket.set(socket, connection);
    // A `data` listener makes Node pass chunks through the stream instead of directly to its parser.
    socket.on('data', ignore);
    socket.off('data', ignore);
    const push = socket.push.bind(socket);
    socket.push = (chunk: unknown, encoding?: BufferEncoding): boolean => {
      if (!(chunk instanceof Uint8Array) || (connection.isAuthenticated && !connection.isPipelining))
        return push(chunk, encoding);
      let [offset, canPushMore] = [0, true];
      while (offset < chunk.length && !socket.destroyed) {
        const end = offset + (connection.isPipelining ? PIPELINED_SLICE_BYTES : SLICE_BYTES);
        canPushMore = push(offset === 0 && end >= chunk.length ? chunk : chunk.subarray(offset, end));
        offset = end;
      }
      return canPushMore;
    };
  }

  #onRequest(request: IncomingMessage, response: ServerResponse): void {
    const connection = this.#bySocket.get(request.socket);
    if (connection === undefined) return;
    connection.newestResponse = response;
    connection.unansweredCount += 1;
    connection.checksWithoutRequest = 0;
    response.once('close', () => this.#onResponseClosed(connection));
    if (!connection.isAuthenticated) announceKeepAlive(response, this.#limits.unauthenticatedKeepAliveTimeoutMs);
    if (connection.unansweredCount === 1) return;
    connection.isPipelining = true;
    if (connection.unansweredCount > this.#limits.maxUnanswered && connection.pausedAt === null)
      this.#pause(connection);
  }

  #onResponseClosed(connection: Connection): void {
    connection.unansweredCount -= 1;
    const { httpSocket, finalAction, unansweredCount, isAuthenticated } = connection;
    if (finalAction !== null) {
      if (unansweredCount <= finalAction.maxPending) finalAction.run();
      return;
    }
    if (unansweredCount === 0 && !isAuthenticated && !httpSocket.destroyed)
      httpSocket.setTimeout(this.#limits.unauthenticatedKeepAliveTimeoutMs + KEEP_ALIVE_SLACK_MS);
    // At half, so a client is not paused at each request.
    if (connection.pausedAt === null || unansweredCount !== this.#limits.maxUnanswered >> 1) return;
    // In a later turn of the event loop, so other connections are served between two chunks of this one.
    if (isAuthenticated) setImmediate(() => this.#resume(connection));
    else {
      this.#resumable.add(connection);
      this.#scheduleResume();
    }
  }

  /** Resumes one waiting unauthenticated connection per `unauthenticatedReadIntervalMs` while any waits. */
  #scheduleResume(): void {
    if (this.#isResumeScheduled) return;
    this.#isResumeScheduled = true;
    this.#clock.after(this.#limits.unauthenticatedReadIntervalMs, () => {
      this.#isResumeScheduled = false;
      const [next] = this.#resumable;
      if (next === undefined) return;
      this.#resumable.delete(next);
      this.#resume(next);
      if (this.#resumable.size > 0) this.#scheduleResume();
    });
  }

  #resume(connection: Connection): void {
    const { httpSocket, finalAction } = connection;
    if (httpSocket.destroyed || finalAction !== null) return;
    this.#removeFromPaused(connection);
    startReading(httpSocket);
  }

  #pause(connection: Connection): void {
    if (this.#paused.size >= this.#limits.maxPaused) {
      // An unauthenticated connection is closed to make room; if there is none, the new one is closed.
      const dropped = [...this.#paused].find(({ isAuthenticated }) => !isAuthenticated) ?? connection;
      dropped.close('pipelining');
      if (dropped === connection) return;
      this.#removeFromPaused(dropped);
    }
    this.#paused.add(connection);
    connection.pausedAt = this.#clock.now();
    stopReading(connection.httpSocket);
  }

  #removeFromPaused(connection: Connection): void {
    if (connection.pausedAt === null) return;
    connection.pausedAt = null;
    this.#paused.delete(connection);
    this.#resumable.delete(connection);
  }

  /**
   * Closes connections whose client does not read, and unauthenticated connections that send bytes without a request: empty lines
   * between two requests are skipped (RFC 9112 section 2.2). The socket's timeout is not sufficient: each received byte restarts it,
   * and node:http ignores it after a CONNECT.
   */
  #closeStalledConnections(): void {
    const { unauthenticatedHeadersTimeoutMs, unreadResponseTimeoutMs, timeoutCheckMs } = this.#limits;
    const now = this.#clock.now();
    for (const connection of this.#connections) {
      const { tcpSocket, httpSocket, pausedAt, unansweredCount, isAuthenticated, newestResponse } = connection;
      if (unansweredCount === 0 && !isAuthenticated && newestResponse !== null) {
        connection.checksWithoutRequest += 1;
        if (connection.checksWithoutRequest * timeoutCheckMs >= unauthenticatedHeadersTimeoutMs) httpSocket.destroy();
      }
      if (unansweredCount === 0 || httpSocket.writableLength === 0) {
        connection.checksWithoutProgress = 0;
        continue;
      }
      const sentBytes = sentBytesOf(tcpSocket);
      connection.checksWithoutProgress = sentBytes === connection.sentBytes ? connection.checksWithoutProgress + 1 : 0;
      connection.sentBytes = sentBytes;
      // Responses to pipelined requests are small, so even a slow client has read them by then.
      const isLate = pausedAt !== null && now - pausedAt >= unreadResponseTimeoutMs;
      if (isLate || connection.checksWithoutProgress * timeoutCheckMs >= unreadResponseTimeoutMs)
        connection.close('unread-answers');
    }
  }

  /** Nothing was read or written during the socket's timeout. */
  #onTimeout(socket: Socket): void {
    const connection = this.#bySocket.get(socket);
    if (connection === undefined || connection.unansweredCount === 0) socket.destroy();
    // `#look` handles a client that does not read. Otherwise the service itself is slow.
    else socket.setTimeout(0);
  }

  #sendAndClose(socket: Duplex, response: string | Buffer): void {
    if (socket.destroyed) return;
    // node:http removes its error listener after CONNECT and after a failed TLS handshake.
    socket.on('error', ignore);
    socket.end(response, () => socket.destroy());
    socket.once(
      'close',
      this.#clock.after(MAX_FLUSH_MS, () => socket.destroy()),
    );
  }
}

/** Both ends of a connection as a text that is unique among open connections. */
function connectionIdOf({ remoteAddress, remotePort, localAddress }: Socket): string {
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

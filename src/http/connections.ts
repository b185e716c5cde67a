/**
 * Every socket always has an error listener, so a reset never ends the process. Node parses up to 64 KiB (3,600 minimal
 * requests) before a pause takes effect, so chunks are split.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock } from '../clock.ts';
import { toPeerNetwork } from '../model/address.ts';
import type { DropReason } from '../model/events.ts';
import { isTlsServer } from '../node-http.ts';
import type { Body, Capacity, CapacityConnection } from './capacity.ts';
import type { TrustedProxies } from './peers.ts';

export const CONNECTION_LIMITS = {
  maxConnections: 10_000,
  keepAliveTimeoutMs: 65_000,
  unauthenticatedKeepAliveTimeoutMs: 5_000,
  /** From a response to the complete next headers: idle time, time for headers, and 1 s of tolerance. */
  unauthenticatedHeadersTimeoutMs: 16_000,
  /** A connection with more unanswered requests is paused until half of them are answered. */
  maxUnanswered: 8,
  maxPaused: 256,
  /** One is resumed per interval, so that requests without a key cannot use all processor time. */
  unauthenticatedReadIntervalMs: 4,
  /** The maximum time in which a client reads no part of a pending response. */
  unreadResponseTimeoutMs: 10_000,
  timeoutCheckMs: 1_000,
};
export type ConnectionLimits = Readonly<typeof CONNECTION_LIMITS>;

export interface ConnectionParts {
  readonly limits: ConnectionLimits;
  readonly clock: Clock;
  readonly capacity: Capacity;
  readonly isExemptFromPeerShare: (address: string) => boolean;
  readonly onDrop: (reason: DropReason) => void;
}

/** Loopback addresses and trusted proxies have no share. `toPeerNetwork` returns an IPv4 address unchanged. */
export function createPeerShareExemption(proxies: TrustedProxies): (address: string) => boolean {
  return (address) =>
    address === '::1' || toPeerNetwork(address).startsWith('127.') || proxies.includesAddress(address);
}

/** Of connections without a key and of chunked bodies. */
const MAX_PIECE_BYTES = 1_024;
const PIPELINED_CHUNK_BYTES = 256;
/** Of one request, with the trailers. Node limits only those of each chunk, to 16 KiB, and a chunk may have one byte. */
const MAX_CHUNK_EXTENSION_BYTES = 1_024;
/** The size of a chunk, in up to 8 digits, and two line ends. */
const CHUNK_FRAMING_BYTES = 12;
/** As Node reports the extensions of one chunk above its own limit. */
const EXTENSIONS_FAULT_CODE = 'HPE_CHUNK_EXTENSIONS_OVERFLOW';
/** Node adds this time to the timeout in the Keep-Alive header before it closes an idle connection. */
const KEEP_ALIVE_SLACK_MS = 1_000;
const MAX_FLUSH_MS = 2_000;

interface Connection extends CapacityConnection {
  readonly tcpSocket: Socket;
  httpSocket: Socket;
  isAuthenticated: boolean;
  isPipelining: boolean;
  sendsChunkedBodies: boolean;
  /** With all bytes of `piece`, which the parser is reading. */
  receivedBytes: number;
  piece: Uint8Array;
  unansweredCount: number;
  body: Body | null;
  newestResponse: ServerResponse | null;
  pausedAt: number | null;
  sentBytes: number;
  /** Consecutive checks in which a response was pending and `sentBytes` did not change. */
  checksWithoutProgress: number;
  checksWithoutRequest: number;
  finalAction: { readonly maxPending: 0 | 1; readonly run: () => void } | null;
}

const ignoreEvent = (): void => undefined;
const NO_BYTES = new Uint8Array();

export class Connections {
  readonly #parts: ConnectionParts;
  readonly #connections = new Set<Connection>();
  readonly #bySocket = new WeakMap<Duplex, Connection>();
  /** Connections with an incomplete TLS handshake, by `formatConnectionId`. */
  readonly #handshakes = new Map<string, Connection>();
  readonly #paused = new Set<Connection>();
  readonly #resumable = new Set<Connection>();
  #isResumeScheduled = false;
  #isUnixListener = false;

  constructor(parts: ConnectionParts) {
    this.#parts = parts;
  }

  /** The caller first adds its request listeners, and calls this method before the server listens. */
  attach(server: Server): void {
    const { keepAliveTimeoutMs, timeoutCheckMs } = this.#parts.limits;
    server.keepAliveTimeout = keepAliveTimeoutMs;
    if (isTlsServer(server)) {
      server.on('connection', (socket: Socket) => {
        const connection = this.#addConnection(socket);
        if (connection !== null) this.#handshakes.set(formatConnectionId(socket), connection);
      });
      server.on('secureConnection', (socket) => {
        const connectionId = formatConnectionId(socket);
        const connection = this.#handshakes.get(connectionId);
        this.#handshakes.delete(connectionId);
        socket.on('error', ignoreEvent);
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
    const onRequest = (request: IncomingMessage, response: ServerResponse) => {
      this.#onRequest(request, response);
      if (request.headers['transfer-encoding'] !== undefined)
        this.#limitChunkExtensions(request, response, (error) => server.emit('clientError', error, request.socket));
    };
    server.prependListener('request', onRequest);
    for (const event of ['checkContinue', 'checkExpectation'] as const)
      if (server.listenerCount(event) > 0) server.prependListener(event, onRequest);
    let cancel = ignoreEvent;
    const scheduleCheck = (): void => {
      cancel = this.#parts.clock.after(timeoutCheckMs, () => {
        this.#closeStalledConnections();
        scheduleCheck();
      });
    };
    server.on('listening', () => {
      this.#isUnixListener = typeof server.address() === 'string';
      scheduleCheck();
    });
    server.on('close', () => cancel());
  }

  markAuthenticated(socket: Duplex): void {
    const connection = this.#bySocket.get(socket);
    if (connection === undefined || connection.isAuthenticated) return;
    connection.isAuthenticated = true;
    this.#parts.capacity.setStanding(connection, 'authenticated');
    if (connection.newestResponse !== null)
      announceKeepAlive(connection.newestResponse, this.#parts.limits.keepAliveTimeoutMs);
  }

  findNewestResponse(request: IncomingMessage): ServerResponse | null {
    const response = this.#bySocket.get(request.socket)?.newestResponse ?? null;
    return response?.req === request ? response : null;
  }

  trackBody(socket: Duplex, body: Body): void {
    const connection = this.#bySocket.get(socket);
    if (connection === undefined) return;
    connection.body = body;
    if (connection.pausedAt !== null) this.#parts.capacity.setPaused(body, true);
  }

  endWithResponse(socket: Duplex, response: string | Buffer): void {
    const connection = this.#bySocket.get(socket);
    const run = () => this.#sendAndClose(socket, response);
    if (connection === undefined || connection.unansweredCount === 0) run();
    else connection.finalAction = { maxPending: 0, run };
  }

  handleClientError(error: NodeJS.ErrnoException, socket: Duplex, createResponse: () => Buffer | null): void {
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
    if (!newestResponse.req.complete || error.code === EXTENSIONS_FAULT_CODE) {
      if (connection.unansweredCount > 1)
        connection.finalAction = {
          maxPending: 1,
          run: newestResponse.headersSent ? () => socket.destroy() : () => this.#sendAndClose(socket, createResponse()),
        };
      else if (newestResponse.headersSent) socket.destroy();
      else this.#sendAndClose(socket, createResponse());
      return;
    }
    // The complete request before the invalid bytes may be stored, so only it is answered.
    newestResponse.shouldKeepAlive = false;
    connection.finalAction = { maxPending: 0, run: () => connection.httpSocket.destroySoon() };
    stopReading(connection.httpSocket);
  }

  closeAll(): void {
    for (const { tcpSocket } of this.#connections) tcpSocket.destroy();
  }

  #addConnection(socket: Socket): Connection | null {
    socket.on('error', ignoreEvent);
    const { remoteAddress } = socket;
    if (remoteAddress === undefined && !this.#isUnixListener) {
      socket.destroy();
      return null;
    }
    const connection: Connection = {
      entry: null,
      isInUse: () => connection.unansweredCount > 0,
      tcpSocket: socket,
      httpSocket: socket,
      isAuthenticated: false,
      isPipelining: false,
      sendsChunkedBodies: false,
      receivedBytes: 0,
      piece: NO_BYTES,
      unansweredCount: 0,
      body: null,
      newestResponse: null,
      pausedAt: null,
      sentBytes: 0,
      checksWithoutProgress: 0,
      checksWithoutRequest: 0,
      finalAction: null,
      close: (reason) => {
        if (socket.destroyed) return;
        this.#parts.onDrop(reason);
        socket.destroy();
      },
    };
    // The peers of a unix socket are proxies on this machine.
    const isExempt = remoteAddress === undefined || this.#parts.isExemptFromPeerShare(remoteAddress);
    const peer = isExempt ? null : toPeerNetwork(remoteAddress);
    const refusal = this.#parts.capacity.connect(connection, peer);
    if (refusal !== null) {
      connection.close(refusal);
      return null;
    }
    this.#connections.add(connection);
    this.#bySocket.set(socket, connection);
    const connectionId = formatConnectionId(socket);
    socket.once('close', () => {
      this.#parts.capacity.disconnect(connection);
      this.#connections.delete(connection);
      if (this.#handshakes.get(connectionId) === connection) this.#handshakes.delete(connectionId);
      this.#removePausedConnection(connection);
    });
    return connection;
  }

  #attachSocket(connection: Connection, socket: Socket): void {
    connection.httpSocket = socket;
    this.#bySocket.set(socket, connection);
    // Because of the `data` listener, Node.js passes chunks through the stream instead of directly to its parser.
    socket.on('data', ignoreEvent);
    socket.off('data', ignoreEvent);
    const pushChunk = socket.push.bind(socket);
    const pushPiece = (piece: Uint8Array): boolean => {
      connection.receivedBytes += piece.length;
      connection.piece = piece;
      return pushChunk(piece);
    };
    socket.push = (chunk: unknown, encoding?: BufferEncoding): boolean => {
      if (!(chunk instanceof Uint8Array)) return pushChunk(chunk, encoding);
      const { isAuthenticated, isPipelining, sendsChunkedBodies } = connection;
      if (isAuthenticated && !isPipelining && !sendsChunkedBodies) return pushPiece(chunk);
      let [offset, canPushMore] = [0, true];
      while (offset < chunk.length && !socket.destroyed) {
        const chunkEnd = offset + (connection.isPipelining ? PIPELINED_CHUNK_BYTES : MAX_PIECE_BYTES);
        canPushMore = pushPiece(offset === 0 && chunkEnd >= chunk.length ? chunk : chunk.subarray(offset, chunkEnd));
        offset = chunkEnd;
      }
      return canPushMore;
    };
  }

  /**
   * Counts the bytes of the request that are no content. A next request may follow in the piece in which the body ends:
   * less than the limit, except in the first chunked request of an authenticated connection, whose pieces are larger.
   */
  #limitChunkExtensions(
    request: IncomingMessage,
    response: ServerResponse,
    refuse: (error: NodeJS.ErrnoException) => void,
  ): void {
    const connection = this.#bySocket.get(request.socket);
    if (connection === undefined) return;
    connection.sendsChunkedBodies = true;
    const { piece, isPipelining } = connection;
    const bodyStart = isPipelining ? -1 : Buffer.from(piece.buffer, piece.byteOffset, piece.length).indexOf('\r\n\r\n');
    let overheadBytes = (bodyStart < 0 ? 0 : piece.length - bodyStart - 4) - connection.receivedBytes;
    const pushPart = request.push.bind(request);
    request.push = (part: Uint8Array | null, encoding?: BufferEncoding): boolean => {
      const { receivedBytes, piece: lastPiece } = connection;
      const isEnd = part === null;
      const bytes = isEnd && lastPiece.length <= MAX_PIECE_BYTES ? receivedBytes : receivedBytes - lastPiece.length;
      // After its answer, a body is not passed on and is not counted.
      if (overheadBytes + bytes <= MAX_CHUNK_EXTENSION_BYTES || response.writableFinished) {
        if (!isEnd) overheadBytes -= part.length + CHUNK_FRAMING_BYTES;
        return pushPart(part, encoding);
      }
      request.push = () => false;
      refuse(Object.assign(new Error('the chunk extensions are too long'), { code: EXTENSIONS_FAULT_CODE }));
      return false;
    };
  }

  #onRequest(request: IncomingMessage, response: ServerResponse): void {
    const connection = this.#bySocket.get(request.socket);
    if (connection === undefined) return;
    connection.newestResponse = response;
    connection.body = null;
    connection.unansweredCount += 1;
    connection.checksWithoutRequest = 0;
    response.once('close', () => this.#onResponseClosed(connection));
    if (!connection.isAuthenticated) announceKeepAlive(response, this.#parts.limits.unauthenticatedKeepAliveTimeoutMs);
    if (connection.unansweredCount === 1) return;
    connection.isPipelining = true;
    if (connection.unansweredCount > this.#parts.limits.maxUnanswered && connection.pausedAt === null)
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
      httpSocket.setTimeout(this.#parts.limits.unauthenticatedKeepAliveTimeoutMs + KEEP_ALIVE_SLACK_MS);
    // Reading resumes at half of the limit, so that a client is not paused at each request.
    if (connection.pausedAt === null || unansweredCount !== this.#parts.limits.maxUnanswered >> 1) return;
    // In a later iteration of the event loop, so that other connections are served between two chunks.
    if (isAuthenticated) setImmediate(() => this.#resume(connection));
    else {
      this.#resumable.add(connection);
      this.#scheduleResume();
    }
  }

  #scheduleResume(): void {
    if (this.#isResumeScheduled) return;
    this.#isResumeScheduled = true;
    this.#parts.clock.after(this.#parts.limits.unauthenticatedReadIntervalMs, () => {
      this.#isResumeScheduled = false;
      const [nextConnection] = this.#resumable;
      if (nextConnection === undefined) return;
      this.#resumable.delete(nextConnection);
      this.#resume(nextConnection);
      if (this.#resumable.size > 0) this.#scheduleResume();
    });
  }

  #resume(connection: Connection): void {
    const { httpSocket, finalAction } = connection;
    if (httpSocket.destroyed || finalAction !== null) return;
    this.#removePausedConnection(connection);
    if (connection.body !== null) this.#parts.capacity.setPaused(connection.body, false);
    startReading(httpSocket);
  }

  #pause(connection: Connection): void {
    if (this.#paused.size >= this.#parts.limits.maxPaused) {
      // The unauthenticated connection that was paused longest is closed; without one, the new connection.
      const droppedConnection = [...this.#paused].find(({ isAuthenticated }) => !isAuthenticated) ?? connection;
      droppedConnection.close('pipelining');
      if (droppedConnection === connection) return;
      this.#removePausedConnection(droppedConnection);
    }
    this.#paused.add(connection);
    connection.pausedAt = this.#parts.clock.now();
    if (connection.body !== null) this.#parts.capacity.setPaused(connection.body, true);
    stopReading(connection.httpSocket);
  }

  #removePausedConnection(connection: Connection): void {
    if (connection.pausedAt === null) return;
    connection.pausedAt = null;
    this.#paused.delete(connection);
    this.#resumable.delete(connection);
  }

  /** Also those that send only empty lines (RFC 9112 section 2.2): each byte restarts the socket’s timeout. */
  #closeStalledConnections(): void {
    const { unauthenticatedHeadersTimeoutMs, unreadResponseTimeoutMs, timeoutCheckMs } = this.#parts.limits;
    const now = this.#parts.clock.now();
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
      const sentBytes = countSentBytes(tcpSocket);
      connection.checksWithoutProgress = sentBytes === connection.sentBytes ? connection.checksWithoutProgress + 1 : 0;
      connection.sentBytes = sentBytes;
      // Responses to pipelined requests are small, so a slow client can read them within the timeout.
      const hasPauseTimedOut = pausedAt !== null && now - pausedAt >= unreadResponseTimeoutMs;
      if (hasPauseTimedOut || connection.checksWithoutProgress * timeoutCheckMs >= unreadResponseTimeoutMs)
        connection.close('unread-answers');
    }
  }

  #onTimeout(socket: Socket): void {
    const connection = this.#bySocket.get(socket);
    if (connection === undefined || connection.unansweredCount === 0) socket.destroy();
    // If the client does not read the pending response, `#closeStalledConnections` closes the connection.
    else socket.setTimeout(0);
  }

  #sendAndClose(socket: Duplex, response: string | Buffer | null): void {
    if (socket.destroyed) return;
    if (response === null) {
      socket.destroy();
      return;
    }
    // After CONNECT, node:http has removed its error listener. After a failed TLS handshake, it has not added one.
    socket.on('error', ignoreEvent);
    socket.end(response, () => socket.destroy());
    socket.once(
      'close',
      this.#parts.clock.after(MAX_FLUSH_MS, () => socket.destroy()),
    );
  }
}

function formatConnectionId({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`;
}

function countSentBytes(socket: Socket): number {
  const handle: unknown = Reflect.get(socket, '_handle');
  if (typeof handle !== 'object' || handle === null) return Number.NaN;
  return Number(Reflect.get(handle, 'bytesWritten')) - Number(Reflect.get(handle, 'writeQueueSize'));
}

function announceKeepAlive(response: ServerResponse, timeoutMs: number): void {
  if ('_keepAliveTimeout' in response) response._keepAliveTimeout = timeoutMs;
}

/** Disables `resume`, because node:http would call it during the pause. */
function stopReading(socket: Socket): void {
  socket.pause();
  socket.resume = () => socket;
}

function startReading(socket: Socket): void {
  Reflect.deleteProperty(socket, 'resume');
  // Node has paused the socket because of pending responses, will resume it, and asserts that it is still paused.
  if ('_paused' in socket && socket._paused === true) return;
  socket.resume();
}

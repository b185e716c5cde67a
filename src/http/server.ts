/** Whoever sends something wrong or too slowly gets an answer, after those to its requests, and is closed. */
import { chmodSync, lstatSync, unlinkSync } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { connect, type Server as NetServer } from 'node:net';
import type { Duplex } from 'node:stream';
import { type MonotonicClock, runEvery } from '../clock.ts';
import { toPeerNetwork } from '../model/address.ts';
import type { EventOf, HttpListenerName } from '../model/events.ts';
import {
  formatListen,
  type HostPort,
  type HttpListen,
  isUnixSocket,
  type ListenAddress,
  toListenAddress,
  type UnixSocket,
} from '../model/listen-address.ts';
import { createServer, getHttps, isTlsServer, STATUS_CODES } from '../node-http.ts';
import { type Body, Capacity, CHECK_INTERVAL_MS, type Eviction } from './capacity.ts';
import { CONNECTION_LIMITS, Connections, createPeerShareExemption } from './connections.ts';
import { createTrustedProxies, getClientAddress, type TrustedProxies } from './peers.ts';
import { countHeader, hasFaultyFraming } from './protocol.ts';
import { type CertificatePaths, readCertificate, watchCertificate } from './tls.ts';

export const SERVER_LIMITS = {
  ...CONNECTION_LIMITS,
  peerConnectionShare: 1 / 20,
  maxBytes: 64 * 1_048_576,
  maxBodiesPerOwner: 200,
  bodyTimeoutMs: 30_000,
  maxInFlight: Number.POSITIVE_INFINITY,
  /** From the opening of the connection for the first request. */
  headersTimeoutMs: 10_000,
  /** 0: only `bodyTimeoutMs` applies. */
  requestTimeoutMs: 30_000,
  maxHeaderBytes: 16_384,
  /** How long and how far a refused body is read, so that the client receives the answer. */
  maxLingerMs: 2_000,
  maxLingerBytes: 1_048_576,
  certificatePollMs: 1_000,
};

export type ServerLimits = Readonly<typeof SERVER_LIMITS>;

export type Fault =
  | 'malformed-request'
  | 'unfinished'
  | 'headers-too-large'
  | 'body-too-large'
  | 'request-timeout'
  | 'invalid-host'
  | 'expectation-failed'
  | 'connect';

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | number>>;
  readonly body: string | Buffer;
}

export type BodyResult = Buffer | BodyFault;
export type BodyFault = Eviction | 'too-large' | 'aborted';

export interface HttpServerParts {
  readonly name: HttpListenerName;
  readonly address: HttpListen;
  readonly setting: string;
  readonly tls: CertificatePaths | null;
  readonly trustedProxies: readonly string[];
  readonly limits: Partial<ServerLimits>;
  readonly clock: MonotonicClock;
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void;
  /** True if the handler sends 100 Continue, so that it can refuse a request before its body is sent. */
  readonly sendsContinue: boolean;
  readonly answerFault: (fault: Fault) => Answer | null;
  readonly publish: (event: EventOf<'connection.dropped' | 'certificate.reloaded' | 'certificate.refused'>) => void;
  /** For example if no file descriptor is free for a new connection. */
  readonly onError: (error: unknown) => void;
}

export interface HttpServer {
  readonly nodeServer: Server;
  readonly capacity: Capacity;
  readonly proxies: TrustedProxies;
  readonly isDraining: boolean;
  start(): Promise<ListenAddress>;
  markAuthenticated(request: Pick<IncomingMessage, 'socket'>): void;
  openBody(request: IncomingMessage, owner: string | number | null): Body | null;
  read(request: IncomingMessage, body: Body, maxBytes: number): Promise<BodyResult>;
  readBody(request: IncomingMessage, maxBytes: number, owner: string | null): Promise<BodyResult>;
  send(request: IncomingMessage, response: ServerResponse, answer: Answer): void;
  abort(request: IncomingMessage, answer: Answer): void;
  drain(timeoutMs: number): Promise<void>;
}

/** RFC 8996 deprecates earlier versions. */
const MIN_TLS_VERSION = 'TLSv1.2';
/** For answers that are still being sent when no request is pending. */
const MAX_FLUSH_MS = 250;

export function createHttpServer(parts: HttpServerParts): HttpServer {
  const { name, address, clock, handle, answerFault, publish } = parts;
  const limits: ServerLimits = { ...SERVER_LIMITS, ...parts.limits };
  const tls = isUnixSocket(address) ? null : parts.tls;
  const proxies = createTrustedProxies(parts.trustedProxies, isUnixSocket(address));
  const isExempt = createPeerShareExemption(proxies);
  const capacity = new Capacity(limits, { now: clock.monotonic });
  const connections = new Connections({
    limits,
    clock,
    capacity,
    isExemptFromPeerShare: isExempt,
    onDrop: (reason) => publish({ type: 'connection.dropped', at: clock.now(), listener: name, reason }),
  });
  const options = {
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    connectionsCheckingInterval: limits.timeoutCheckMs,
    maxHeaderSize: limits.maxHeaderBytes,
    // The answer of Node to a missing Host header has no body.
    requireHostHeader: false,
    insecureHTTPParser: false,
    noDelay: true,
  };
  const server: Server =
    tls === null
      ? createServer(options, onRequest)
      : getHttps().createServer(
          {
            ...options,
            ...readCertificate(tls),
            minVersion: MIN_TLS_VERSION,
            ALPNProtocols: ['http/1.1'],
            handshakeTimeout: limits.headersTimeoutMs,
          },
          onRequest,
        );
  let isDraining = false;
  let stopChecks = (): void => undefined;

  function onRequest(request: IncomingMessage, response: ServerResponse): void {
    const hostCount = countHeader(request.rawHeaders, 'host');
    if (hostCount > 1 || (hostCount === 0 && request.httpVersionMinor >= 1))
      sendFault(request, response, 'invalid-host');
    else if (hasFaultyFraming(request)) sendFault(request, response, 'malformed-request');
    else handle(request, response);
  }

  function sendFault(request: IncomingMessage, response: ServerResponse, fault: Fault): void {
    const answer = answerFault(fault);
    if (answer === null) response.destroy();
    else send(request, response, { ...answer, headers: { ...answer.headers, Connection: 'close' } });
  }

  if (parts.sendsContinue) server.on('checkContinue', onRequest);
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) =>
    sendFault(request, response, 'expectation-failed'),
  );
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    connections.handleClientError(error, socket, () => {
      const answer = answerFault(toFault(error));
      return answer === null ? null : formatRawAnswer(answer, clock);
    });
  });
  server.on('connect', (_request: IncomingMessage, socket: Duplex) => {
    const answer = answerFault('connect');
    if (answer === null) socket.destroy();
    else connections.endWithResponse(socket, formatRawAnswer(answer, clock));
  });
  connections.attach(server);

  function send(request: IncomingMessage, response: ServerResponse, { status, headers, body }: Answer): void {
    const isUnread = !request.complete && hasBody(request);
    response.writeHead(status, {
      ...headers,
      'Content-Length': Buffer.byteLength(body),
      ...(isUnread || isDraining ? { Connection: 'close' } : {}),
    });
    // Such a client sends no body after an error (RFC 9110 section 10.1.1). Otherwise Node has sent 100 already.
    if (
      !isUnread ||
      (parts.sendsContinue && request.headers.expect !== undefined && request.readableFlowing === null)
    ) {
      response.end(body);
      return;
    }
    response.write(body);
    discardBody(request, response);
  }

  /** A connection with unread bytes is reset when it is closed, and the client can lose the answer (RFC 9112 section 9.6). */
  function discardBody(request: IncomingMessage, response: ServerResponse): void {
    let remainingBytes = limits.maxLingerBytes;
    const end = (): void => {
      cancel();
      if (!response.writableEnded) response.end();
    };
    const cancel = clock.after(limits.maxLingerMs, end);
    request.on('data', (chunk: Buffer) => {
      remainingBytes -= chunk.length;
      if (remainingBytes < 0) end();
    });
    request.on('end', end);
    request.on('error', end);
  }

  function openBody(request: IncomingMessage, owner: string | number | null): Body | null {
    const contentLength = request.headers['content-length'];
    const body = capacity.open({
      peer: owner === null ? findPeer(request) : null,
      owner,
      announcedBytes: contentLength === undefined ? null : Number(contentLength),
    });
    if (body !== null) connections.trackBody(request.socket, body);
    return body;
  }

  function findPeer(request: IncomingMessage): string | null {
    const client = getClientAddress(request, proxies);
    return client === '' || isExempt(client) ? null : toPeerNetwork(client);
  }

  function read(request: IncomingMessage, body: Body, maxBytes: number): Promise<BodyResult> {
    return new Promise((resolve) => {
      let chunks: Buffer[] = [];
      let sizeBytes = 0;
      let isDone = false;
      const end = (result: BodyResult): void => {
        if (isDone) return;
        isDone = true;
        chunks = [];
        resolve(result);
      };
      body.onEvicted = end;
      request.on('data', (chunk: Buffer) => {
        if (isDone) return;
        sizeBytes += chunk.length;
        const fault = sizeBytes > maxBytes ? 'too-large' : capacity.take(body, chunk.length);
        if (fault === null) chunks.push(chunk);
        else end(fault);
      });
      request.on('end', () => end(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks)));
      // The event `error` occurs only if the connection ends before the end of the body.
      request.on('error', () => end('aborted'));
    });
  }

  async function readBody(request: IncomingMessage, maxBytes: number, owner: string | null): Promise<BodyResult> {
    if (contentLengthExceeds(request, maxBytes)) return 'too-large';
    const body = openBody(request, owner);
    if (body === null) return 'share';
    const bytes = await read(request, body, maxBytes);
    const response = connections.findNewestResponse(request);
    if (typeof bytes !== 'string' && capacity.complete(body) && response !== null && !response.closed) {
      response.once('close', () => capacity.release(body));
      return bytes;
    }
    capacity.release(body);
    return bytes;
  }

  function startChecks(): void {
    const stopCapacityCheck = runEvery(clock, CHECK_INTERVAL_MS, () => capacity.check());
    const stopCertificateWatch =
      tls === null
        ? () => undefined
        : watchCertificate(
            tls,
            limits.certificatePollMs,
            clock,
            (pair) => {
              if (isTlsServer(server)) server.setSecureContext({ ...pair, minVersion: MIN_TLS_VERSION });
              publish({ type: 'certificate.reloaded', at: clock.now() });
            },
            (fault) => publish({ type: 'certificate.refused', at: clock.now(), fault }),
          );
    stopChecks = () => {
      stopCapacityCheck();
      stopCertificateWatch();
    };
  }

  return {
    nodeServer: server,
    capacity,
    proxies,
    get isDraining() {
      return isDraining;
    },
    async start() {
      const bound = await bind(server, address, parts.setting);
      server.on('error', parts.onError);
      startChecks();
      return toListenAddress(bound, tls === null ? 'http' : 'https');
    },
    markAuthenticated: ({ socket }) => connections.markAuthenticated(socket),
    openBody,
    read,
    readBody,
    send,
    abort: ({ socket }, answer) =>
      connections.handleClientError(new Error('aborted'), socket, () => formatRawAnswer(answer, clock)),
    async drain(timeoutMs) {
      isDraining = true;
      if (!server.listening) return;
      const serverClosed = new Promise<void>((resolve) => server.close(() => resolve()));
      let cancelTimeout = (): void => undefined;
      let cancelFlush = (): void => undefined;
      const timeout = new Promise<void>((resolve) => {
        cancelTimeout = clock.after(timeoutMs, resolve);
      });
      // Afterwards only idle connections and connections whose answer is not read remain.
      const answered = new Promise<void>((resolve) => {
        capacity.runWhenIdle(() => {
          cancelFlush = clock.after(Math.min(MAX_FLUSH_MS, timeoutMs), resolve);
        });
      });
      if (timeoutMs > 0) await Promise.race([serverClosed, timeout, answered]);
      cancelTimeout();
      cancelFlush();
      stopChecks();
      server.closeAllConnections();
      connections.closeAll();
      await serverClosed;
    },
  };
}

function toFault(error: NodeJS.ErrnoException): Fault {
  switch (error.code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return 'request-timeout';
    case 'HPE_HEADER_OVERFLOW':
      return 'headers-too-large';
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return 'body-too-large';
    case 'HPE_INVALID_EOF_STATE':
      return 'unfinished';
    default:
      return 'malformed-request';
  }
}

function formatRawAnswer({ status, headers, body }: Answer, clock: Pick<MonotonicClock, 'now'>): Buffer {
  const lines = Object.entries({
    ...headers,
    'Content-Length': Buffer.byteLength(body),
    Date: new Date(clock.now()).toUTCString(),
    Connection: 'close',
  }).map(([field, value]) => `${field}: ${value}\r\n`);
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('')}\r\n`;
  return Buffer.concat([Buffer.from(head, 'latin1'), Buffer.from(body)]);
}

/** RFC 9112 section 6.3. */
function hasBody({ headers }: IncomingMessage): boolean {
  const contentLength = headers['content-length'];
  return headers['transfer-encoding'] !== undefined || (contentLength !== undefined && contentLength !== '0');
}

export function contentLengthExceeds({ headers }: IncomingMessage, maxBytes: number): boolean {
  const contentLength = headers['content-length'];
  return contentLength !== undefined && Number(contentLength) > maxBytes;
}

// A unix socket is accessible to the user and the group of the service.

const SOCKET_MODE = 0o660;

export type BindServer = <Address extends HttpListen>(
  server: NetServer,
  listenAddress: Address,
  setting: string,
) => Promise<Address>;

export const bind: BindServer = async (server, listenAddress, setting) => {
  try {
    if (isUnixSocket(listenAddress)) {
      await listenOnSocket(server, listenAddress);
      return listenAddress;
    }
    return { ...listenAddress, port: await listen(server, { host: listenAddress.host, port: listenAddress.port }) };
  } catch (error) {
    throw new Error(
      `${setting} ${formatListen(listenAddress)}: ${describeListenError(error, isUnixSocket(listenAddress))}`,
    );
  }
};

async function listenOnSocket(server: NetServer, { socketPath }: UnixSocket): Promise<void> {
  try {
    await listen(server, { path: socketPath });
  } catch (error) {
    if (!isInUse(error)) throw error;
    // The file of a process that ended without closing its listener remains. Other files are never removed.
    if (!lstatSync(socketPath).isSocket()) throw new Error('the file exists and is not a socket; choose another path');
    if (await acceptsConnections(socketPath)) throw error;
    unlinkSync(socketPath);
    await listen(server, { path: socketPath });
  }
  chmodSync(socketPath, SOCKET_MODE);
}

function isInUse(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
}

/** Resolves to false only if the system reports that no process listens. */
function acceptsConnections(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path }, () => {
      resolve(true);
      socket.destroy();
    });
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code !== 'ECONNREFUSED'));
  });
}

function listen(server: NetServer, listenAddress: HostPort | { readonly path: string }): Promise<number> {
  return new Promise((resolve, reject) => {
    const onError = (error: NodeJS.ErrnoException) => {
      server.off('listening', onListening);
      reject(error);
    };
    const onListening = () => {
      server.off('error', onError);
      const address = server.address();
      resolve(address !== null && typeof address === 'object' ? address.port : 0);
    };
    server.once('error', onError);
    server.once('listening', onListening);
    server.listen(listenAddress);
  });
}

function describeListenError(error: unknown, isSocket: boolean): string {
  if (!(error instanceof Error)) return `cannot listen (${String(error)})`;
  const code = 'code' in error ? error.code : null;
  if (isSocket) {
    switch (code) {
      case 'EADDRINUSE':
        return 'another process listens on this socket; stop it, or choose another path';
      case 'EACCES':
      case 'EPERM':
        return 'the socket cannot be created; create its folder, and let the user of the service write there';
      case null:
        return error.message;
    }
  }
  switch (code) {
    case 'EADDRINUSE':
      return 'the port is in use; stop the process that uses it, or choose another port';
    case 'EACCES':
    case 'EPERM':
      return 'permission denied; choose a port above 1023, or grant CAP_NET_BIND_SERVICE';
    case 'EADDRNOTAVAIL':
      return 'this machine does not have this address; use 127.0.0.1, 0.0.0.0 or another address of this machine';
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return 'the host name cannot be resolved; use an IP address';
    default:
      return `cannot listen (${error.message})`;
  }
}

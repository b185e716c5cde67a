/**
 * Creates the public listener, which serves `POST /api/v1/send-mail`, `/healthz` and `/readyz`.
 *
 * Guarantees: every error response is defined in the error registry. No response names the software. A drain ends
 * within its timeout. Fails: `start` rejects with an Error whose message is one line. Later errors are published as
 * `node.operation_failed`. The request that causes an error receives status 500.
 */

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from '../clock.ts';
import { isUnixSocket, type ListenAddress, toListenAddress } from '../model/listen-address.ts';
import { createServer, getHttps, isTlsServer, STATUS_CODES } from '../node-http.ts';
import { bind } from './bind.ts';
import { RequestLimiter } from './capacity.ts';
import { Connections, createPeerShareExemption, type HttpConnections } from './connections.ts';
import { createErrorBody, type ErrorCode, getErrorEntry } from './errors.ts';
import { hasFaultyFraming } from './framing.ts';
import { LISTENER_LIMITS, type Listener, type ListenerLimits, type ListenerOptions } from './listener-options.ts';
import { countHeader, getPath, ResponseWriter, toOriginForm } from './protocol.ts';
import { createSendMail } from './send-mail.ts';
import { type CertificatePair, readCertificate, watchCertificate } from './tls.ts';
import { createTrustedProxies } from './trusted-proxies.ts';

/**
 * The maximum time, within the drain timeout, in which pending responses are sent before their connections are closed.
 */
const MAX_FLUSH_MS = 250;

/** Creates the listener. `start` binds it. */
export function createListener(options: ListenerOptions): Listener {
  const { clock, settings, publish } = options;
  const reportError = (error: unknown) =>
    publish({ type: 'node.operation_failed', at: clock.now(), operation: 'request', error });
  const limits: ListenerLimits = { ...LISTENER_LIMITS, ...options.limits };
  const limiter = new RequestLimiter(limits, options.loadSignal);
  const responseWriter = new ResponseWriter(clock, limits.maxLingerMs, settings.maxRequestBytes);
  const onRefused = (code: ErrorCode): void =>
    publish({ type: 'request.refused', at: clock.now(), code, accountId: null, keyId: null });
  const proxies = createTrustedProxies(settings.trustedProxies, isUnixSocket(settings.listen));
  const connections = new Connections({
    limits,
    clock,
    isExemptFromPeerShare: createPeerShareExemption(proxies),
    onDrop: (reason) => publish({ type: 'connection.dropped', at: clock.now(), listener: 'public', reason }),
  });
  let runningServer: {
    readonly server: Server;
    readonly stopCertificateWatch: () => void;
  } | null = null;

  async function start(): Promise<ListenAddress> {
    // A listener on a unix socket uses no TLS, because its peers are on this machine and a proxy terminates TLS.
    const tls = isUnixSocket(settings.listen) ? null : settings.tls;
    const certificate = tls === null ? null : readCertificate(tls);
    const sendMail = createSendMail(options, limiter, responseWriter, connections, proxies);
    const handle = createRouter(options, responseWriter, sendMail, onRefused);
    const server = createHttpServer({ limits, certificate, responseWriter, connections, clock, handle, onRefused });
    const listenAddress = await bind(server, settings.listen, 'POSTRIDER_LISTEN');
    // Accepting a connection fails if no file descriptor is free. Open connections are not affected.
    server.on('error', reportError);
    const stopCertificateWatch =
      tls === null
        ? () => {}
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
    runningServer = { server, stopCertificateWatch };
    return toListenAddress(listenAddress, certificate === null ? 'http' : 'https');
  }

  async function drain(timeoutMs: number): Promise<void> {
    responseWriter.startDraining();
    if (runningServer === null) return;
    const { server, stopCertificateWatch } = runningServer;
    runningServer = null;
    stopCertificateWatch();
    // `server.close` stops the acceptance of connections, and closes connections that are idle between two requests.
    const serverClosed = new Promise<void>((resolve) => server.close(() => resolve()));
    let cancelTimeout = () => {};
    let cancelFlush = () => {};
    const timeout = new Promise<void>((resolve) => {
      cancelTimeout = clock.after(timeoutMs, resolve);
    });
    // When no request is in flight, only idle connections and connections with an incomplete response remain.
    const requestsAnswered = new Promise<void>((resolve) => {
      limiter.runWhenIdle(() => {
        cancelFlush = clock.after(Math.min(MAX_FLUSH_MS, timeoutMs), resolve);
      });
    });
    await Promise.race([serverClosed, timeout, requestsAnswered]);
    cancelTimeout();
    cancelFlush();
    server.closeAllConnections();
    connections.closeAll();
    await serverClosed;
  }

  return { start, drain, close: () => drain(0) };
}

/** Creates the handler of all valid requests. The listener has three routes, so it needs no routing library. */
function createRouter(
  { publish, clock, getNotReadyReason }: ListenerOptions,
  responseWriter: ResponseWriter,
  sendMail: Handler,
  onRefused: OnRefused,
): Handler {
  const sendReadiness: Handler = (req, res) => {
    const reason = responseWriter.isDraining ? 'draining' : getNotReadyReason();
    if (reason === null) {
      responseWriter.sendOk(res, 'ready');
      return;
    }
    responseWriter.sendError(req, res, 'not-ready', reason, { 'Cache-Control': 'no-store' });
    onRefused('not-ready');
  };
  const routes: ReadonlyMap<string, { readonly methods: readonly string[]; readonly handle: Handler }> = new Map([
    ['/api/v1/send-mail', { methods: ['POST'], handle: sendMail }],
    ['/healthz', { methods: ['GET', 'HEAD'], handle: (_req, res) => responseWriter.sendOk(res, 'alive') }],
    ['/readyz', { methods: ['GET', 'HEAD'], handle: sendReadiness }],
  ]);
  return (req, res) => {
    const route = routes.get(getPath(req.url ?? ''));
    if (route === undefined) {
      responseWriter.sendError(req, res, 'not-found', null, {});
      onRefused('not-found');
      return;
    }
    if (!route.methods.includes(req.method ?? '')) {
      // RFC 9110 section 10.2.1.
      responseWriter.sendError(req, res, 'method-not-allowed', null, { Allow: route.methods.join(', ') });
      onRefused('method-not-allowed');
      return;
    }
    try {
      route.handle(req, res);
    } catch (error) {
      publish({ type: 'node.operation_failed', at: clock.now(), operation: 'request', error });
      if (res.headersSent) {
        res.destroy();
        return;
      }
      responseWriter.sendError(req, res, 'internal-error', null, {});
      onRefused('internal-error');
    }
  };
}

// Creates the HTTP server of the public listener. The code sets timeouts and the maximum header size, and replaces the
// error responses of node:http with those of the error registry.
//
// Guarantees: a client that is slow or sends malformed data receives an error response and is disconnected. If the
// malformed data follows a request whose message is being committed, the client receives the result of the commit
// instead. A request without a Host header or with several Host headers is refused.

type Handler = (req: IncomingMessage, res: ServerResponse) => void;

/** The minimum TLS version. RFC 8996 deprecates earlier versions. */
const MIN_TLS_VERSION = 'TLSv1.2';

interface ServerParts {
  readonly limits: ListenerLimits;
  /** Null for HTTP without TLS. */
  readonly certificate: CertificatePair | null;
  readonly responseWriter: ResponseWriter;
  readonly connections: HttpConnections;
  readonly clock: Clock;
  /** Handles every valid request. */
  readonly handle: Handler;
  /** Called for each request that is refused before `handle` is called. */
  readonly onRefused: OnRefused;
}

type OnRefused = (code: ErrorCode) => void;

/** Creates the server, which passes valid requests to `handle`. */
function createHttpServer(parts: ServerParts): Server {
  const { limits, certificate, responseWriter, connections, clock, handle, onRefused } = parts;
  const options = {
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    connectionsCheckingInterval: limits.timeoutCheckMs,
    maxHeaderSize: limits.maxHeaderBytes,
    // The response of Node.js to a missing Host header has no body, so `onRequest` sends the response instead.
    requireHostHeader: false,
    insecureHTTPParser: false,
    noDelay: true,
  };
  const onRequest: Handler = (req, res) => {
    // RFC 9112 section 3.2 requires status 400 if the Host header is missing or repeated.
    const hostHeaderCount = countHeader(req.rawHeaders, 'host');
    if (hostHeaderCount > 1 || (hostHeaderCount === 0 && req.httpVersionMinor >= 1)) {
      responseWriter.sendError(req, res, 'invalid-host', null, {});
      onRefused('invalid-host');
      return;
    }
    if (hasFaultyFraming(req)) {
      responseWriter.sendError(req, res, 'malformed-request', null, {});
      onRefused('malformed-request');
      return;
    }
    if (req.url !== undefined) req.url = toOriginForm(req.url);
    handle(req, res);
  };
  const server =
    certificate === null
      ? createServer(options, onRequest)
      : getHttps().createServer(
          {
            ...options,
            ...certificate,
            minVersion: MIN_TLS_VERSION,
            ALPNProtocols: ['http/1.1'],
            handshakeTimeout: limits.headersTimeoutMs,
          },
          onRequest,
        );
  // The handler sends 100 Continue after it has checked the key, so that a request with an invalid key is refused
  // before its body is sent.
  server.on('checkContinue', onRequest);
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) =>
    onClientError(error, socket, connections, clock, onRefused),
  );
  server.on('checkExpectation', (req: IncomingMessage, res: ServerResponse) => {
    responseWriter.sendError(req, res, 'expectation-failed', null, {});
    onRefused('expectation-failed');
  });
  server.on('connect', (_req: IncomingMessage, socket: Duplex) => {
    onRefused('not-found');
    connections.endWithResponse(socket, createRawErrorResponse('not-found', clock));
  });
  connections.attach(server);
  return server;
}

/** Responds to the event `clientError`, and closes the connection. */
function onClientError(
  error: NodeJS.ErrnoException,
  socket: Duplex,
  connections: HttpConnections,
  clock: Clock,
  onRefused: OnRefused,
): void {
  connections.handleClientError(error, socket, () => {
    const code = toErrorCode(error);
    onRefused(code);
    return createRawErrorResponse(code, clock);
  });
}

function toErrorCode(error: NodeJS.ErrnoException): ErrorCode {
  switch (error.code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return 'request-timeout';
    case 'HPE_HEADER_OVERFLOW':
      return 'headers-too-large';
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return 'body-too-large';
    default:
      return 'malformed-request';
  }
}

/** Returns the complete HTTP response for an error, for a socket to which node:http cannot write a response. */
function createRawErrorResponse(code: ErrorCode, clock: Clock): Buffer {
  const body = createErrorBody(code);
  const { status } = getErrorEntry(code);
  const responseHead =
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\nContent-Type: application/json\r\n` +
    `Content-Length: ${body.length}\r\nDate: ${new Date(clock.now()).toUTCString()}\r\nConnection: close\r\n\r\n`;
  return Buffer.concat([Buffer.from(responseHead, 'latin1'), body]);
}

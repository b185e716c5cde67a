/**
 * Creates the public listener, which serves `POST /api/v1/send-mail`, `/healthz` and `/readyz`.
 *
 * Guarantees: every error response is defined in the error registry. No response names the software. A drain ends
 * within its timeout. Fails: `start` rejects with an Error whose message is one line. Later errors are published as
 * `node.operation_failed`. The request that causes an error receives status 500.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import { createServer as createTlsServer, Server as TlsServer } from 'node:https';
import type { Duplex } from 'node:stream';
import Fastify, { type FastifyInstance } from 'fastify';
import type { Clock } from '../clock.ts';
import { isUnixSocket, type ListenAddress, toListenAddress } from '../model/listen-address.ts';
import { bind } from './bind.ts';
import { RequestLimiter } from './capacity.ts';
import { Connections, createPeerShareExemption, type HttpConnections } from './connections.ts';
import { createErrorBody, type ErrorCode, getErrorEntry } from './errors.ts';
import { LISTENER_LIMITS, type Listener, type ListenerLimits, type ListenerOptions } from './listener-options.ts';
import { countHeader, getPath, ResponseWriter, toOriginForm } from './protocol.ts';
import { createSendMail } from './send-mail.ts';
import { type CertificatePair, readCertificate, watchCertificate } from './tls.ts';
import { createTrustedProxies, type TrustedProxies } from './trusted-proxies.ts';

/** The value of the Allow header for each path (RFC 9110 section 10.2.1). */
const ALLOWED_METHODS: Readonly<Record<string, string>> = {
  '/api/v1/send-mail': 'POST',
  '/healthz': 'GET, HEAD',
  '/readyz': 'GET, HEAD',
};

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
    readonly app: FastifyInstance;
    readonly server: Server;
    readonly stopCertificateWatch: () => void;
  } | null = null;

  async function start(): Promise<ListenAddress> {
    // A listener on a unix socket uses no TLS, because its peers are on this machine and a proxy terminates TLS.
    const tls = isUnixSocket(settings.listen) ? null : settings.tls;
    const certificate = tls === null ? null : readCertificate(tls);
    const app = createApp(options, limits, limiter, responseWriter, connections, proxies, onRefused, (handle) =>
      createHttpServer({ limits, certificate, responseWriter, connections, clock, handle, onRefused }),
    );
    await app.ready();
    const { server } = app;
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
              if (server instanceof TlsServer) server.setSecureContext({ ...pair, minVersion: MIN_TLS_VERSION });
              publish({ type: 'certificate.reloaded', at: clock.now() });
            },
            (fault) => publish({ type: 'certificate.refused', at: clock.now(), fault }),
          );
    runningServer = { app, server, stopCertificateWatch };
    return toListenAddress(listenAddress, certificate === null ? 'http' : 'https');
  }

  async function drain(timeoutMs: number): Promise<void> {
    responseWriter.startDraining();
    if (runningServer === null) return;
    const { app, server, stopCertificateWatch } = runningServer;
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
    await app.close();
  }

  return { start, drain, close: () => drain(0) };
}

/**
 * Creates the Fastify instance, which routes requests. The handlers read bodies and write responses without Fastify, so
 * that no default response of Fastify is sent.
 */
function createApp(
  options: ListenerOptions,
  limits: ListenerLimits,
  limiter: RequestLimiter,
  responseWriter: ResponseWriter,
  connections: Connections,
  proxies: TrustedProxies,
  onRefused: (code: ErrorCode) => void,
  serverFactory: (handle: (req: IncomingMessage, res: ServerResponse) => void) => Server,
): FastifyInstance {
  const handleUnknownRoute = (req: IncomingMessage, res: ServerResponse): void => {
    const allowedMethods = ALLOWED_METHODS[getPath(req.url ?? '')];
    const code = allowedMethods === undefined ? 'not-found' : 'method-not-allowed';
    responseWriter.sendError(req, res, code, null, allowedMethods === undefined ? {} : { Allow: allowedMethods });
    onRefused(code);
  };
  const app = Fastify({
    serverFactory,
    clientErrorHandler: (error, socket) => onClientError(error, socket, connections, options.clock, onRefused),
    logger: false,
    exposeHeadRoutes: false,
    return503OnClosing: false,
    requestTimeout: limits.requestTimeoutMs,
    // The routes have no query parameters, so the query is not parsed.
    routerOptions: { querystringParser: () => ({}) },
    // A request target that cannot be decoded matches no path.
    frameworkErrors: (_error, request, reply) => {
      reply.hijack();
      handleUnknownRoute(request.raw, reply.raw);
    },
  });
  // By default, Fastify reads a body before it calls the handler, even if no route matches. Here the handler reads the
  // body after it has checked the key.
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY'])
    app.addHttpMethod(method, { hasBody: false, overrideExisting: true });
  const sendMail = createSendMail(options, limiter, responseWriter, connections, proxies);
  app.post('/api/v1/send-mail', (request, reply) => {
    reply.hijack();
    sendMail(request.raw, reply.raw);
  });
  app.route({
    method: ['GET', 'HEAD'],
    url: '/healthz',
    handler: (_request, reply) => {
      reply.hijack();
      responseWriter.sendOk(reply.raw, 'alive');
    },
  });
  app.route({
    method: ['GET', 'HEAD'],
    url: '/readyz',
    handler: (request, reply) => {
      reply.hijack();
      const reason = responseWriter.isDraining ? 'draining' : options.getNotReadyReason();
      if (reason === null) {
        responseWriter.sendOk(reply.raw, 'ready');
        return;
      }
      responseWriter.sendError(request.raw, reply.raw, 'not-ready', reason, { 'Cache-Control': 'no-store' });
      onRefused('not-ready');
    },
  });
  app.setNotFoundHandler((request, reply) => {
    reply.hijack();
    handleUnknownRoute(request.raw, reply.raw);
  });
  app.setErrorHandler((error, request, reply) => {
    options.publish({ type: 'node.operation_failed', at: options.clock.now(), operation: 'request', error });
    reply.hijack();
    if (reply.raw.headersSent) {
      reply.raw.destroy();
      return;
    }
    responseWriter.sendError(request.raw, reply.raw, 'internal-error', null, {});
    onRefused('internal-error');
  });
  return app;
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
    if (req.url !== undefined) req.url = toOriginForm(req.url);
    handle(req, res);
  };
  const server =
    certificate === null
      ? createServer(options, onRequest)
      : createTlsServer(
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

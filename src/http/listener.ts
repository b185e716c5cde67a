/**
 * The public listener: `POST /api/v1/send-mail`, `/healthz` and `/readyz`, nothing else.
 *
 * Guarantees: every error response has the two members of the error registry; no response names the software; a drain ends within its
 * timeout. Fails: `start` rejects with an error of one line; a later error is a 500 and is published as `node.operation_failed`.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import { createServer as createTlsServer, Server as TlsServer } from 'node:https';
import type { Duplex } from 'node:stream';
import Fastify, { type FastifyInstance } from 'fastify';
import type { Clock } from '../clock.ts';
import { bind, formatHostPort } from './bind.ts';
import { RequestLimiter } from './capacity.ts';
import { Connections, type HttpConnections, peerShareExemption } from './connections.ts';
import { type ErrorCode, errorBody, errorEntry } from './errors.ts';
import {
  LISTENER_LIMITS,
  type ListenAddress,
  type Listener,
  type ListenerLimits,
  type ListenerOptions,
} from './listener-options.ts';
import { countHeader, pathOf, ResponseWriter, toOriginForm } from './protocol.ts';
import { createSendMail } from './send-mail.ts';
import { type CertificatePair, readCertificate, watchCertificate } from './tls.ts';

/** The methods of each path, in the form of the Allow header (RFC 9110 section 10.2.1). */
const ALLOW: Readonly<Record<string, string>> = {
  '/api/v1/send-mail': 'POST',
  '/healthz': 'GET, HEAD',
  '/readyz': 'GET, HEAD',
};

/** The maximum time to flush closing connections, as part of the drain timeout. */
const MAX_FLUSH_MS = 250;

/** Builds the listener; nothing is bound before `start`. */
export function createListener(options: ListenerOptions): Listener {
  const { clock, settings, publish } = options;
  const reportError = (error: unknown) =>
    publish({ type: 'node.operation_failed', at: clock.now(), operation: 'request', error });
  const limits: ListenerLimits = { ...LISTENER_LIMITS, ...options.limits };
  const limiter = new RequestLimiter(limits, options.loadSignal);
  const responseWriter = new ResponseWriter(clock, limits.lingerMs, settings.maxRequestBytes);
  const onRefused = (code: ErrorCode): void =>
    publish({ type: 'request.refused', at: clock.now(), code, accountId: null, keyId: null });
  const connections = new Connections({
    limits,
    clock,
    isExemptFromPeerShare: peerShareExemption(settings.trustedProxies),
    onDrop: (reason) => publish({ type: 'connection.dropped', at: clock.now(), listener: 'public', reason }),
  });
  let running: {
    readonly app: FastifyInstance;
    readonly server: Server;
    readonly stopCertificateWatch: () => void;
  } | null = null;

  async function start(): Promise<ListenAddress> {
    const certificate = settings.tls === null ? null : readCertificate(settings.tls);
    const app = createApp(options, limits, limiter, responseWriter, connections, onRefused, (handle) =>
      createHttpServer({ limits, certificate, responseWriter, connections, clock, handle, onRefused }),
    );
    await app.ready();
    const { server } = app;
    const at = await bind(server, settings.listen, 'POSTRIDER_LISTEN');
    // Accepting can fail later if no descriptors are free; open connections continue.
    server.on('error', reportError);
    const stopCertificateWatch =
      settings.tls === null
        ? () => {}
        : watchCertificate(
            settings.tls,
            limits.certificatePollMs,
            clock,
            (pair) => {
              if (server instanceof TlsServer) server.setSecureContext({ ...pair, minVersion: MIN_TLS_VERSION });
              publish({ type: 'certificate.reloaded', at: clock.now() });
            },
            (fault) => publish({ type: 'certificate.refused', at: clock.now(), fault }),
          );
    running = { app, server, stopCertificateWatch };
    return { ...at, url: `${certificate === null ? 'http' : 'https'}://${formatHostPort(at)}` };
  }

  async function drain(timeoutMs: number): Promise<void> {
    responseWriter.startDraining();
    if (running === null) return;
    const { app, server, stopCertificateWatch } = running;
    running = null;
    stopCertificateWatch();
    // Stops accepting, and closes connections that are idle between two requests.
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    let cancelTimeout = () => {};
    let cancelFlush = () => {};
    const timeout = new Promise<void>((resolve) => {
      cancelTimeout = clock.after(timeoutMs, resolve);
    });
    // Once no request is in flight, only connections without a request remain, and responses that are being flushed.
    const idle = new Promise<void>((resolve) => {
      limiter.whenIdle(() => {
        cancelFlush = clock.after(Math.min(MAX_FLUSH_MS, timeoutMs), resolve);
      });
    });
    await Promise.race([closed, timeout, idle]);
    cancelTimeout();
    cancelFlush();
    server.closeAllConnections();
    await closed;
    await app.close();
  }

  return { start, drain, close: () => drain(0) };
}

/** Creates the Fastify instance for routing and lifecycle. Bodies and responses are handled here, so clients see no Fastify defaults. */
function createApp(
  options: ListenerOptions,
  limits: ListenerLimits,
  limiter: RequestLimiter,
  responseWriter: ResponseWriter,
  connections: Connections,
  onRefused: (code: ErrorCode) => void,
  serverFactory: (handle: (req: IncomingMessage, res: ServerResponse) => void) => Server,
): FastifyInstance {
  const handleUnknownRoute = (req: IncomingMessage, res: ServerResponse): void => {
    const allow = ALLOW[pathOf(req.url ?? '')];
    const code = allow === undefined ? 'not-found' : 'method-not-allowed';
    responseWriter.sendError(req, res, code, null, allow === undefined ? {} : { Allow: allow });
    onRefused(code);
  };
  const app = Fastify({
    serverFactory,
    clientErrorHandler: (error, socket) => onClientError(error, socket, connections, options.clock, onRefused),
    logger: false,
    exposeHeadRoutes: false,
    return503OnClosing: false,
    requestTimeout: limits.requestTimeoutMs,
    // Queries have no meaning here and are not parsed.
    routerOptions: { querystringParser: () => ({}) },
    // A target that cannot be decoded matches no path.
    frameworkErrors: (_error, request, reply) => {
      reply.hijack();
      handleUnknownRoute(request.raw, reply.raw);
    },
  });
  // Fastify would read the body before the handler runs, also of a 404: here the handler reads it, after the key.
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY'])
    app.addHttpMethod(method, { hasBody: false, overrideExisting: true });
  const sendMail = createSendMail(options, limiter, responseWriter, connections);
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
      const reason = responseWriter.isDraining ? 'draining' : options.notReadyReason();
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

// The HTTP server of the public listener: timeouts, header size, and the error responses that node:http would otherwise send by itself,
// with bodies of the error registry.
//
// Guarantees: a slow or malformed client gets a response and is disconnected. The response to a request that is being committed is its
// own result. Requests with no Host header or several are refused.

type Handler = (req: IncomingMessage, res: ServerResponse) => void;

/** The oldest supported version; RFC 8996 deprecates earlier ones. */
const MIN_TLS_VERSION = 'TLSv1.2';

/** The parts of the server. */
interface ServerParts {
  readonly limits: ListenerLimits;
  /** Null speaks plain HTTP. */
  readonly certificate: CertificatePair | null;
  readonly responseWriter: ResponseWriter;
  readonly connections: HttpConnections;
  readonly clock: Clock;
  /** Handles every valid request. */
  readonly handle: Handler;
  /** Called for each request that is refused here. */
  readonly onRefused: OnRefused;
}

type OnRefused = (code: ErrorCode) => void;

/** Creates a server that passes valid requests to `handle`. */
function createHttpServer(parts: ServerParts): Server {
  const { limits, certificate, responseWriter, connections, clock, handle, onRefused } = parts;
  const options = {
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    connectionsCheckingInterval: limits.timeoutCheckMs,
    maxHeaderSize: limits.maxHeaderBytes,
    // Node's response to a missing Host header has no body; `onRequest` below sends one with a body.
    requireHostHeader: false,
    insecureHTTPParser: false,
    noDelay: true,
  };
  const onRequest: Handler = (req, res) => {
    // RFC 9112 section 3.2: 400 for none, and for several; two are ambiguous.
    const hostCount = countHeader(req.rawHeaders, 'host');
    if (hostCount > 1 || (hostCount === 0 && req.httpVersionMinor >= 1)) {
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
  // The handler decides on 100 Continue: a request whose key is wrong is refused before its body.
  server.on('checkContinue', onRequest);
  server.on('checkExpectation', (req: IncomingMessage, res: ServerResponse) => {
    responseWriter.sendError(req, res, 'expectation-failed', null, {});
    onRefused('expectation-failed');
  });
  server.on('connect', (_req: IncomingMessage, socket: Duplex) => {
    onRefused('not-found');
    connections.endWithResponse(socket, rawErrorResponse('not-found', clock));
  });
  connections.attach(server);
  return server;
}

/** Responds to bytes that are not valid HTTP, and ends the connection. */
function onClientError(
  error: NodeJS.ErrnoException,
  socket: Duplex,
  connections: HttpConnections,
  clock: Clock,
  onRefused: OnRefused,
): void {
  connections.handleClientError(error, socket, () => {
    const code = clientErrorCode(error);
    onRefused(code);
    return rawErrorResponse(code, clock);
  });
}

function clientErrorCode(error: NodeJS.ErrnoException): ErrorCode {
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

/** The complete HTTP response for an error, written to the raw socket where node:http no longer writes one. */
function rawErrorResponse(code: ErrorCode, clock: Clock): Buffer {
  const body = errorBody(code);
  const { status } = errorEntry(code);
  const head =
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\nContent-Type: application/json\r\n` +
    `Content-Length: ${body.length}\r\nDate: ${new Date(clock.now()).toUTCString()}\r\nConnection: close\r\n\r\n`;
  return Buffer.concat([Buffer.from(head, 'latin1'), body]);
}

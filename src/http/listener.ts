/**
 * The public listener: `POST /api/v1/send-mail`, `/healthz` and `/readyz`, nothing else.
 *
 * Promises: every answer that is no success has the two members of the registry; no banner; drains within a bound.
 * Fails: `start` rejects with one clear line; a fault while running is a 500 and goes to the observer.
 */

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Server as TlsServer } from 'node:https';
import Fastify, { type FastifyInstance } from 'fastify';
import { Answers, pathOf } from './answer.ts';
import { bind, hostPort } from './bind.ts';
import { Connections, withoutShare } from './connections.ts';
import type { ErrorCode } from './errors.ts';
import { type BoundAt, LISTENER_LIMITS, type Listener, type ListenerLimits, type ListenerOptions } from './ports.ts';
import { createSendMail } from './send-mail.ts';
import { createHttpServer, OLDEST_TLS, onClientError } from './server.ts';
import { InFlight } from './shed.ts';
import { readCertificate, watchCertificate } from './tls.ts';

/** What each path allows, as the Allow header lists it (RFC 9110 section 10.2.1). */
const ALLOW: Readonly<Record<string, string>> = {
  '/api/v1/send-mail': 'POST',
  '/healthz': 'GET, HEAD',
  '/readyz': 'GET, HEAD',
};

/** How long closing connections may take to flush, of the time a drain has. */
const FLUSH_MS = 250;

/** Builds the listener; nothing is bound before `start`. */
export function createListener(options: ListenerOptions): Listener {
  const { clock, settings, observe } = options;
  const limits: ListenerLimits = { ...LISTENER_LIMITS, ...options.limits };
  const inFlight = new InFlight(limits, options.load);
  const answers = new Answers(clock, limits.lingerMs, settings.maxRequestBytes);
  const refused = (code: ErrorCode): void => observe.refused(code, null, null);
  const connections = new Connections({
    limits,
    clock,
    sharesNothing: withoutShare(settings.trustedProxies),
    dropped: observe.dropped,
  });
  let running: { readonly app: FastifyInstance; readonly server: Server; readonly stopWatch: () => void } | null = null;

  async function start(): Promise<BoundAt> {
    const certificate = settings.tls === null ? null : readCertificate(settings.tls);
    const app = createApp(options, limits, inFlight, answers, connections, refused, (handle) =>
      createHttpServer({ limits, certificate, answers, connections, clock, handle, refused }),
    );
    await app.ready();
    const { server } = app;
    const at = await bind(server, settings.listen, 'POSTRIDER_LISTEN');
    // Accepting can fail later, for want of descriptors; the connections there are go on.
    server.on('error', (error) => observe.failed(error));
    const stopWatch =
      settings.tls === null
        ? () => {}
        : watchCertificate(
            settings.tls,
            limits.certificatePollMs,
            clock,
            (pair) => {
              if (server instanceof TlsServer) server.setSecureContext({ ...pair, minVersion: OLDEST_TLS });
              observe.certificate(null);
            },
            (fault) => observe.certificate(fault),
          );
    running = { app, server, stopWatch };
    return { ...at, url: `${certificate === null ? 'http' : 'https'}://${hostPort(at)}` };
  }

  async function drain(timeoutMs: number): Promise<void> {
    answers.startDraining();
    if (running === null) return;
    const { app, server, stopWatch } = running;
    running = null;
    stopWatch();
    // Stops accepting and closes connections that are idle between two requests.
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    let cancelBound = () => {};
    let cancelFlush = () => {};
    const bound = new Promise<void>((resolve) => {
      cancelBound = clock.after(timeoutMs, resolve);
    });
    // Once nothing is in flight, only connections without a request are left, and answers on their last bytes.
    const idle = new Promise<void>((resolve) => {
      inFlight.whenIdle(() => {
        cancelFlush = clock.after(Math.min(FLUSH_MS, timeoutMs), resolve);
      });
    });
    await Promise.race([closed, bound, idle]);
    cancelBound();
    cancelFlush();
    server.closeAllConnections();
    await closed;
    await app.close();
  }

  return { start, drain, close: () => drain(0) };
}

/** Fastify, as router and lifecycle; bodies and answers are ours, so that no default of it reaches a client. */
function createApp(
  options: ListenerOptions,
  limits: ListenerLimits,
  inFlight: InFlight,
  answers: Answers,
  connections: Connections,
  refused: (code: ErrorCode) => void,
  serverFactory: (handle: (req: IncomingMessage, res: ServerResponse) => void) => Server,
): FastifyInstance {
  const unrouted = (req: IncomingMessage, res: ServerResponse): void => {
    const allow = ALLOW[pathOf(req.url ?? '')];
    const code = allow === undefined ? 'not-found' : 'method-not-allowed';
    answers.error(req, res, code, null, allow === undefined ? {} : { Allow: allow });
    refused(code);
  };
  const app = Fastify({
    serverFactory,
    clientErrorHandler: (error, socket) => onClientError(error, socket, connections, options.clock, refused),
    logger: false,
    exposeHeadRoutes: false,
    return503OnClosing: false,
    requestTimeout: limits.requestTimeoutMs,
    // Queries mean nothing here, and parsing them would be work for whoever sends them.
    routerOptions: { querystringParser: () => ({}) },
    // A target that cannot be decoded names no path.
    frameworkErrors: (_error, request, reply) => {
      reply.hijack();
      unrouted(request.raw, reply.raw);
    },
  });
  // Fastify would read the body before the handler runs, also of a 404: here the handler reads it, after the key.
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY'])
    app.addHttpMethod(method, { hasBody: false, overrideExisting: true });
  const sendMail = createSendMail(options, inFlight, answers, connections);
  app.post('/api/v1/send-mail', (request, reply) => {
    reply.hijack();
    sendMail(request.raw, reply.raw);
  });
  app.route({
    method: ['GET', 'HEAD'],
    url: '/healthz',
    handler: (_request, reply) => {
      reply.hijack();
      answers.ok(reply.raw, 'alive');
    },
  });
  app.route({
    method: ['GET', 'HEAD'],
    url: '/readyz',
    handler: (request, reply) => {
      reply.hijack();
      const reason = answers.draining ? 'draining' : options.ready();
      if (reason === null) {
        answers.ok(reply.raw, 'ready');
        return;
      }
      answers.error(request.raw, reply.raw, 'not-ready', reason, { 'Cache-Control': 'no-store' });
      refused('not-ready');
    },
  });
  app.setNotFoundHandler((request, reply) => {
    reply.hijack();
    unrouted(request.raw, reply.raw);
  });
  app.setErrorHandler((error, request, reply) => {
    options.observe.failed(error);
    reply.hijack();
    if (reply.raw.headersSent) {
      reply.raw.destroy();
      return;
    }
    answers.error(request.raw, reply.raw, 'internal-error', null, {});
    refused('internal-error');
  });
  return app;
}

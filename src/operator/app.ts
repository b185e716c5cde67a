/**
 * The application of the operator listener, loaded at the first request. If a password is set, every route requires the
 * password or a token, except `/healthz`, the files of the dashboard, and sign-in, sign-out and the documents of the
 * API.
 */

import Fastify, { type FastifyError, type FastifyInstance, type FastifyReply } from 'fastify';
import { getClientAddress } from '../http/peers.ts';
import type { HttpServer } from '../http/server.ts';
import { escapeJson } from '../printing/escape.ts';
import { AccessControl, createTokenAuthenticator, delayResponse, getBearerToken, isCrossOrigin } from './access.ts';
import { API_PATH, addApi, createScopeRefusal, isPermitted, type OperatorOptions, VIEWER } from './api.ts';
import { createApiDocument } from './api-document.ts';
import { addBodyParsers } from './bodies.ts';
import { addDashboard, isDashboardRoute, isUnknownPage } from './dashboard.ts';
import {
  CROSS_ORIGIN_CREDENTIALS,
  createStatusErrorBody,
  JSON_TYPE,
  SECURITY_HEADERS,
  sendRefusal,
} from './refusal.ts';
import type { Sessions } from './sessions.ts';

export async function createApp(
  options: OperatorOptions,
  sessions: Sessions | null,
  http: HttpServer,
): Promise<FastifyInstance> {
  const { clock, api } = options;
  const { proxies } = http;
  const access = new AccessControl(options.settings.operatorPassword);
  const tokens = api === null ? null : createTokenAuthenticator({ clock, access, store: api.store });
  const app = Fastify({
    logger: false,
    forceCloseConnections: true,
    return503OnClosing: false,
    // An address has at most 254 octets (RFC 5321 section 4.5.3.1.3), each of up to three characters in a path.
    routerOptions: { maxParamLength: 1_024 },
    serverFactory: () => http.nodeServer,
    clientErrorHandler: () => undefined,
    // Fastify calls no hooks for a request target that it cannot decode.
    frameworkErrors: (_error, _request, reply) =>
      sendStatusError(reply.headers(SECURITY_HEADERS), 400, 'Malformed request target'),
  });
  // Control characters are escaped, because curl may show a response on a terminal.
  app.setReplySerializer((payload) => escapeJson(JSON.stringify(payload)));
  addBodyParsers(app, http);
  app.addHook('onRequest', (request, reply, done) => {
    reply.headers(SECURITY_HEADERS);
    if (api !== null && isApi(request.url)) {
      done();
      return;
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      // The body is not read, so the connection is closed.
      reply.headers({ Allow: 'GET, HEAD', Connection: 'close' });
      sendStatusError(reply, 405, 'Method not allowed');
      return;
    }
    if (
      request.routeOptions.url === '/healthz' ||
      isDashboardRoute(request.routeOptions.url) ||
      isUnknownPage(request)
    ) {
      done();
      return;
    }
    const { authorization, host } = request.headers;
    if (authorization !== undefined && isCrossOrigin(request)) {
      sendStatusError(reply, CROSS_ORIGIN_CREDENTIALS.status, CROSS_ORIGIN_CREDENTIALS.message);
      return;
    }
    const token = options.settings.operatorPassword === null ? null : getBearerToken(authorization);
    if (tokens !== null && token !== null) {
      void tokens.authenticateForMetrics(getClientAddress(request.raw, proxies), token).then((authentication) => {
        if (authentication.kind === 'refused') {
          sendRefusal(reply, authentication);
          return;
        }
        if (request.routeOptions.url !== '/metrics' && !isPermitted(authentication.scope, VIEWER)) {
          sendRefusal(reply, createScopeRefusal(authentication.scope));
          return;
        }
        http.markAuthenticated(request.raw);
        done();
      }, done);
      return;
    }
    const decision = access.check(getClientAddress(request.raw, proxies), host, authorization, clock.now());
    switch (decision.kind) {
      case 'granted':
        // Without a password every process of this machine has access, so the request authenticates nobody.
        if (options.settings.operatorPassword !== null) http.markAuthenticated(request.raw);
        void delayResponse(request.raw, clock, decision.delayMs).then(() => done());
        return;
      case 'challenge':
        void delayResponse(request.raw, clock, decision.delayMs).then(() => {
          reply.header('WWW-Authenticate', 'Basic realm="Postrider operator", charset="UTF-8"');
          sendStatusError(reply, 401, 'The operator password or a token is required');
        });
        return;
      case 'limited':
        reply.header('Retry-After', Math.max(1, Math.ceil(decision.retryAfterMs / 1000)));
        sendStatusError(reply, 429, 'Too many wrong passwords');
        return;
      case 'host-not-allowed':
        sendStatusError(reply, 403, 'POSTRIDER_OPERATOR_PASSWORD is not set; use http://127.0.0.1 or http://localhost');
        return;
    }
  });

  const getOpenApi = createOnce(options.createOpenApi);
  app.get('/healthz', (_request, reply) => reply.send({ result: 'ok', message: 'alive' }));
  app.get('/metrics', async (_request, reply) => {
    const { contentType, text } = await options.scrapeMetrics();
    return reply.type(contentType).send(text);
  });
  app.get('/openapi.json', (_request, reply) => reply.type('application/json').send(getOpenApi()));
  const sendPage = addDashboard(app, options.dashboard);
  if (api !== null && sessions !== null && tokens !== null) {
    const { inboxContext } = options;
    addApi(app, {
      ...api,
      clock,
      http,
      access,
      sessions,
      tokens,
      inboxContext,
      getDocument: createOnce(() => createApiDocument(api.version, API_PATH)),
      getPublicDocument: getOpenApi,
    });
  }
  app.setNotFoundHandler((request, reply) =>
    isUnknownPage(request) ? sendPage(reply.code(404)) : sendStatusError(reply, 404, 'Not found'),
  );
  app.setErrorHandler((error: FastifyError, { raw }, reply) => {
    if (!raw.complete) reply.header('Connection', 'close');
    const { statusCode: status, message } = error;
    if (status === 503) return sendRefusal(reply, { status, message });
    if (status !== undefined && status < 500) return sendStatusError(reply, status, message);
    options.onError(error);
    return sendStatusError(reply, 500, 'Internal server error');
  });
  await app.ready();
  return app;
}

function createOnce(create: () => string): () => string {
  let result: string | null = null;
  return () => {
    result ??= create();
    return result;
  };
}

function isApi(target: string): boolean {
  return target.startsWith(`${API_PATH}/`);
}

function sendStatusError(reply: FastifyReply, status: number, message: string): FastifyReply {
  return reply
    .code(status)
    .type(JSON_TYPE)
    .send(JSON.stringify(createStatusErrorBody(status, message)));
}

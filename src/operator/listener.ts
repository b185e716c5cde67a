/** The operator listener. `start` rejects if it is not loopback and no password is set. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { type Answer, createHttpServer, type Fault, type HttpServer } from '../http/server.ts';
import { formatListen, isUnixSocket } from '../model/listen-address.ts';
import { isLoopbackHost } from './access.ts';
import type { OperatorListener, OperatorOptions } from './api.ts';
import { createStatusErrorAnswer } from './refusal.ts';
import { createSessions, type Sessions } from './sessions.ts';

const LISTEN_SETTING = 'POSTRIDER_OPERATOR_LISTEN';
/** Without progress during a download. */
const MAX_STALL_MS = 30_000;

export function createOperatorListener(options: OperatorOptions): OperatorListener {
  const { settings } = options;
  const { operatorListen } = settings;
  let running: RunningServer | null = null;

  return {
    async start() {
      if (settings.operatorPassword === null) {
        // `loadSettings` refuses both too.
        if (isUnixSocket(operatorListen))
          throw new Error(`${LISTEN_SETTING}: a unix socket needs POSTRIDER_OPERATOR_PASSWORD`);
        const { host, port } = operatorListen;
        if (!isLoopbackHost(host)) {
          throw new Error(
            `${LISTEN_SETTING} ${formatListen(operatorListen)}: other machines could access it without a password; set POSTRIDER_OPERATOR_PASSWORD or use 127.0.0.1:${port}`,
          );
        }
      }
      const { api } = options;
      const sessions = api === null ? null : createSessions(api.key, settings.operatorPassword === null);
      const newServer = createOperatorServer(options, sessions);
      const address = await newServer.http.start();
      running = newServer;
      const link = sessions?.linkToken ?? null;
      return { ...address, signInUrl: link === null ? null : `${address.url}/sign-in?link=${link}` };
    },
    async close() {
      const closing = running;
      running = null;
      // Fastify does not close the connections of a server that it did not bind.
      await closing?.http.drain(0);
      await closing?.closeApp();
    },
  };
}

interface RunningServer {
  readonly http: HttpServer;
  closeApp(): Promise<void>;
}

/**
 * The application is loaded at the first request: it takes a third of the processor time of a start, and many processes
 * never receive such a request (docs/decisions/launcher.md).
 */
function createOperatorServer(options: OperatorOptions, sessions: Sessions | null): RunningServer {
  const { settings, clock, onError } = options;
  let app: Promise<FastifyInstance> | null = null;
  const loadApp = (): Promise<FastifyInstance> => {
    app ??= import('./app.ts').then(({ createApp }) => createApp(options, sessions, http));
    return app;
  };
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const loadedApp = await loadApp().catch((error: unknown) => {
      onError(error);
      http.send(request, response, createStatusErrorAnswer(500, 'Internal server error'));
      return null;
    });
    loadedApp?.routing(request, response);
  };
  const http = createHttpServer({
    name: 'operator',
    address: settings.operatorListen,
    setting: LISTEN_SETTING,
    tls: null,
    trustedProxies: settings.trustedProxies,
    // An upload of 200 MB over a slow connection takes longer than other requests, so only bodies have a time limit.
    limits: { requestTimeoutMs: 0, unreadResponseTimeoutMs: MAX_STALL_MS, maxConnections: options.maxConnections },
    clock,
    sendsContinue: false,
    handle: (request, response) => void handle(request, response),
    answerFault: (fault) => FAULT_ANSWERS[fault],
    publish: options.publish,
    onError,
  });
  return {
    http,
    async closeApp() {
      await (await app?.catch(() => null))?.close();
    },
  };
}

const MALFORMED_REQUEST = createStatusErrorAnswer(400, 'Malformed HTTP request');
const FAULT_ANSWERS: Readonly<Record<Fault, Answer>> = {
  'malformed-request': MALFORMED_REQUEST,
  'body-too-large': MALFORMED_REQUEST,
  unfinished: MALFORMED_REQUEST,
  'invalid-host': createStatusErrorAnswer(400, 'Exactly one Host header is required'),
  connect: createStatusErrorAnswer(405, 'Method not allowed', { Allow: 'GET, HEAD' }),
  'request-timeout': createStatusErrorAnswer(408, 'Request timeout'),
  'expectation-failed': createStatusErrorAnswer(417, 'Expectation failed'),
  'headers-too-large': createStatusErrorAnswer(431, 'Request header fields too large'),
};

/**
 * Creates the operator listener, which serves metrics, documents, health, the dashboard and the operator API (app.ts).
 *
 * Errors: `start` rejects with a one-line error if it cannot bind the address, or if no password is set and the address
 * is not loopback.
 */

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { formatListen, isUnixSocket, toListenAddress } from '../model/listen-address.ts';
import { createServer } from '../node-http.ts';
import { isLoopbackHost } from './access.ts';
import type { OperatorListener, OperatorOptions } from './ports.ts';
import { createClientErrorResponse, createRawResponse } from './raw-responses.ts';
import { createStatusErrorBody, JSON_TYPE, SECURITY_HEADERS } from './refusal.ts';
import { createSessions, type Sessions } from './sessions.ts';

const LISTEN_SETTING = 'POSTRIDER_OPERATOR_LISTEN';

/** Creates the listener. `start` binds the listener. */
export function createOperatorListener(options: OperatorOptions): OperatorListener {
  const { settings, bind } = options;
  const { operatorListen } = settings;
  let running: RunningServer | null = null;

  return {
    async start() {
      if (settings.operatorPassword === null) {
        // Without a password, a unix socket and a public address are refused. `loadSettings` refuses both too.
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
      const address = toListenAddress(await bind(newServer.server, operatorListen, LISTEN_SETTING), 'http');
      running = newServer;
      const link = sessions?.linkToken ?? null;
      return { ...address, signInUrl: link === null ? null : `${address.url}/sign-in?link=${link}` };
    },
    async close() {
      const closing = running;
      running = null;
      // Fastify does not close the connections of a server that it did not bind. A connection with an incomplete
      // response would never close.
      closing?.server.close();
      closing?.server.closeAllConnections();
      await closing?.closeApp();
    },
  };
}

interface RunningServer {
  readonly server: Server;
  /** Closes the application if it was loaded. */
  closeApp(): Promise<void>;
}

/**
 * Creates the server. The application is loaded at the first request, because it takes a third of the processor time of
 * a start and many processes never receive such a request (docs/decisions/launcher.md).
 */
function createOperatorServer(options: OperatorOptions, sessions: Sessions | null): RunningServer {
  const { connections, onError } = options;
  let app: Promise<FastifyInstance> | null = null;
  const loadApp = (): Promise<FastifyInstance> => {
    app ??= import('./app.ts').then(({ createApp }) => createApp(options, sessions, server));
    return app;
  };
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const loadedApp = await loadApp().catch((error: unknown) => {
      onError(error);
      sendError(response, 500, 'Internal server error');
      return null;
    });
    loadedApp?.routing(request, response);
  };
  const server = createServer(
    {
      // Bodies have their own timeouts (body-timeouts.ts).
      requestTimeout: 0,
      headersTimeout: 10_000,
      connectionsCheckingInterval: 1_000,
      maxHeaderSize: 16_384,
      // The response of Node to a missing Host header has no body. A hook of the application sends a response with a
      // body.
      requireHostHeader: false,
    },
    (request, response) => void handle(request, response),
  );
  server.on('clientError', (error: NodeJS.ErrnoException, socket) =>
    connections.handleClientError(error, socket, () => createClientErrorResponse(error)),
  );
  server.on('connect', (_request, socket) =>
    connections.endWithResponse(socket, createRawResponse(405, 'Method not allowed', 'Allow: GET, HEAD\r\n')),
  );
  server.on('checkExpectation', (_request, response) => sendError(response, 417, 'Expectation failed'));
  connections.attach(server);
  return {
    server,
    async closeApp() {
      await (await app?.catch(() => null))?.close();
    },
  };
}

/** Sends a response without the application, then closes the connection. */
function sendError(response: ServerResponse, status: number, message: string): void {
  const body = JSON.stringify(createStatusErrorBody(status, message));
  const headers = {
    ...SECURITY_HEADERS,
    'Content-Type': JSON_TYPE,
    'Content-Length': body.length,
    Connection: 'close',
  };
  response.writeHead(status, headers).end(body);
}

/**
 * The HTTP listener for provider events (POSTRIDER_FEEDBACK_HTTP_LISTEN). Each path has one receiver: `/ses` for the
 * messages of SNS, and `/events/PROVIDER` for the events of every other provider.
 *
 * Guarantees: each request gets one response, or its connection is closed. Each 404 response to a path below `/events/`
 * is published as the event `report.refused`. If a receiver throws, the response is 500 and the error is reported. If
 * the server cannot listen, `start` rejects with a one-line Error that names the setting and the address.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../clock.ts';
import type { BindServer } from '../http/bind.ts';
import type { HttpConnections } from '../http/connections.ts';
import { hasFaultyFraming } from '../http/framing.ts';
import type { PublishOf } from '../model/events.ts';
import { type HttpListen, type ListenAddress, toListenAddress } from '../model/listen-address.ts';
import { BROKEN_HTTP_REASON, UNKNOWN_PATH_REASON } from '../model/node.ts';
import {
  type BodyReader,
  type CertificatePair,
  createBodyReader,
  createEventServer,
  type HttpResponse,
  type RequestTimeLimits,
  sendResponse,
} from './http-server.ts';

/** The maximum time for which a shutdown waits for requests in progress. */
const MAX_CLOSE_MS = 10_000;

/** The response does not name the configured providers, because anyone can request it. */
export const NOT_FOUND: HttpResponse = { status: 404, message: 'not found' };

/** Receives one request. Resolves to the response, or to null if the client has disconnected. */
export type EventRoute = (request: IncomingMessage, bodyReader: BodyReader) => Promise<HttpResponse | null>;

export interface EventListenerParts {
  readonly listenAddress: HttpListen;
  readonly bind: BindServer;
  readonly connections: HttpConnections;
  readonly clock: Clock;
  /** Enables HTTPS. Null means plain HTTP behind a proxy. */
  readonly certificate: CertificatePair | null;
  /** The receivers by path, for example `/events/postmark`. */
  readonly routes: ReadonlyMap<string, EventRoute>;
  readonly publish: PublishOf<'report.refused'>;
  readonly onError: (operation: string, error: unknown) => void;
  /** Default: `REQUEST_TIME_LIMITS`. */
  readonly timeLimits?: RequestTimeLimits;
}

export interface EventListener {
  /** Rejects with an Error whose one-line message names the setting and the address. */
  start(): Promise<ListenAddress>;
  /** Uses a renewed certificate for all later connections. */
  renewCertificate(certificate: CertificatePair): void;
  /** Closes the listener. Waits for requests in progress, for at most `MAX_CLOSE_MS`. */
  close(): Promise<void>;
}

/** Creates the listener. The listener accepts connections after `start`. */
export function createEventListener(parts: EventListenerParts): EventListener {
  const { clock, connections, certificate, routes, publish, onError } = parts;
  const bodyReader = createBodyReader(clock, parts.timeLimits?.bodyTimeout);
  const handleRequest = (request: IncomingMessage, response: ServerResponse): void => {
    if (hasFaultyFraming(request)) {
      onBrokenRequest();
      sendResponse(response, { status: 400, message: 'the request is not valid HTTP' });
      return;
    }
    void answer(request)
      .catch((error: unknown): HttpResponse => {
        onError('provider events', error);
        return { status: 500, message: 'an internal error occurred; send the request again' };
      })
      .then((result) => {
        if (result !== null) sendResponse(response, result);
      });
  };
  const onBrokenRequest = () => publish({ type: 'report.refused', at: clock.now(), reason: BROKEN_HTTP_REASON });
  const { server, renewCertificate } = createEventServer(
    certificate,
    connections,
    handleRequest,
    onBrokenRequest,
    parts.timeLimits,
  );

  async function answer(request: IncomingMessage): Promise<HttpResponse | null> {
    const path = (request.url ?? '').split('?')[0] ?? '';
    const route = routes.get(path);
    const result = route === undefined ? NOT_FOUND : await route(request, bodyReader);
    if (result?.status === 404 && path.startsWith('/events/'))
      publish({ type: 'report.refused', at: clock.now(), reason: UNKNOWN_PATH_REASON });
    return result;
  }

  return {
    start: async () => {
      const boundAddress = await parts.bind(server, parts.listenAddress, 'POSTRIDER_FEEDBACK_HTTP_LISTEN');
      return toListenAddress(boundAddress, certificate === null ? 'http' : 'https');
    },
    renewCertificate,
    async close() {
      const serverClosed = new Promise((resolve) => server.close(resolve));
      server.closeIdleConnections();
      const cancel = clock.after(MAX_CLOSE_MS, () => {
        server.closeAllConnections();
        connections.closeAll();
      });
      await serverClosed;
      cancel();
    },
  };
}

/** POSTRIDER_FEEDBACK_HTTP_LISTEN: `/ses` for SNS, `/events/PROVIDER` for every other provider. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { MonotonicClock } from '../clock.ts';
import { type Answer, createHttpServer, type Fault, type HttpServer, type ServerLimits } from '../http/server.ts';
import type { CertificatePaths } from '../http/tls.ts';
import type { Publish } from '../model/events.ts';
import type { HttpListen, ListenAddress } from '../model/listen-address.ts';
import { BROKEN_HTTP_REASON, UNKNOWN_PATH_REASON } from '../model/node.ts';

const MAX_CLOSE_MS = 10_000;

/** Anyone can request it, so it names no provider. */
export const NOT_FOUND: HttpResponse = { status: 404, message: 'not found' };

/** SNS and some providers wait 20 s for a response, so a body that is late gets its response before. */
export const EVENT_LIMITS: Partial<ServerLimits> = { bodyTimeoutMs: 18_000, unreadResponseTimeoutMs: 30_000 };

export interface HttpResponse {
  readonly status: number;
  readonly message: string;
  readonly allow?: string;
}

export type EventRequests = Pick<HttpServer, 'readBody' | 'markAuthenticated'>;

export type EventRoute = (request: IncomingMessage, requests: EventRequests) => Promise<HttpResponse | null>;

export interface EventListenerParts {
  readonly listenAddress: HttpListen;
  readonly clock: MonotonicClock;
  /** Null means plain HTTP behind a proxy. */
  readonly tls: CertificatePaths | null;
  readonly trustedProxies: readonly string[];
  readonly routes: ReadonlyMap<string, EventRoute>;
  readonly publish: Publish;
  readonly onError: (operation: string, error: unknown) => void;
  readonly limits?: Partial<ServerLimits>;
}

export interface EventListener {
  start(): Promise<ListenAddress>;
  close(): Promise<void>;
}

export function createEventListener(parts: EventListenerParts): EventListener {
  const { clock, routes, publish, onError } = parts;
  const server = createHttpServer({
    name: 'events',
    address: parts.listenAddress,
    setting: 'POSTRIDER_FEEDBACK_HTTP_LISTEN',
    tls: parts.tls,
    trustedProxies: parts.trustedProxies,
    limits: { ...EVENT_LIMITS, ...parts.limits },
    clock,
    sendsContinue: false,
    handle,
    answerFault(fault) {
      const response = FAULT_RESPONSES[fault];
      if (response === null) return null;
      publish({ type: 'report.refused', at: clock.now(), reason: BROKEN_HTTP_REASON });
      return createAnswer(response);
    },
    publish,
    onError: (error) => onError('provider events', error),
  });

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    server.capacity.beginRequest();
    try {
      const content = await answer(request);
      if (content !== null) server.send(request, response, createAnswer(content));
    } catch (error) {
      onError('provider events', error);
      const message = 'an internal error occurred; send the request again';
      if (response.headersSent) response.destroy();
      else server.send(request, response, createAnswer({ status: 500, message }));
    } finally {
      server.capacity.endRequest();
    }
  }

  async function answer(request: IncomingMessage): Promise<HttpResponse | null> {
    const path = (request.url ?? '').split('?')[0] ?? '';
    const route = routes.get(path);
    const result = route === undefined ? NOT_FOUND : await route(request, server);
    if (result?.status === 404 && path.startsWith('/events/'))
      publish({ type: 'report.refused', at: clock.now(), reason: UNKNOWN_PATH_REASON });
    return result;
  }

  return { start: server.start, close: () => server.drain(MAX_CLOSE_MS) };
}

const FAULT_RESPONSES: Readonly<Record<Fault, HttpResponse | null>> = {
  unfinished: null,
  'malformed-request': { status: 400, message: 'the request is not valid HTTP' },
  'body-too-large': { status: 400, message: 'the request is not valid HTTP' },
  'invalid-host': { status: 400, message: 'exactly one Host header field is required' },
  connect: { status: 405, message: 'the method must be POST' },
  'request-timeout': { status: 408, message: 'the request did not arrive in time' },
  'expectation-failed': { status: 417, message: 'the expectation is not supported' },
  'headers-too-large': { status: 431, message: 'the header fields are too large' },
};

/** The connection is closed after a 4xx response. */
function createAnswer({ status, message, allow = 'POST' }: HttpResponse): Answer {
  const headers: Record<string, string> = { 'content-type': 'application/json' };
  if (status === 405) headers.allow = allow;
  if (status === 401) headers['www-authenticate'] = 'Basic realm="postrider", charset="UTF-8"';
  if (status === 503 || status === 429) headers['retry-after'] = '20';
  if (status >= 400 && status < 500) headers.Connection = 'close';
  return { status, headers, body: `${JSON.stringify({ result: status === 200 ? 'ok' : 'error', message })}\n` };
}

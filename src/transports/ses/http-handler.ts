/**
 * Unlike the SDK’s own, it reports whether a request was sent completely (`unanswered`) or not (`deferred`), and limits
 * a response.
 */
import type * as http from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../../clock.ts';
import { Agent, getHttps, request as requestHttp } from '../../node-http.ts';

export interface HandlerRequest {
  readonly protocol: string;
  readonly hostname: string;
  readonly port?: number | undefined;
  readonly method: string;
  readonly path: string;
  readonly query?: Readonly<Record<string, string | readonly string[] | null>> | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | undefined;
}

export interface HandlerResponse {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

export interface HandlerOptions {
  readonly abortSignal?: AbortSignal;
  /** The operating system has accepted the whole request, or a response arrives. */
  readonly onSent?: () => void;
}

export interface HttpHandler {
  handle(request: HandlerRequest, options?: HandlerOptions): Promise<{ readonly response: HandlerResponse }>;
  destroy(): void;
}

export const HANDLER_LIMITS = {
  connectMs: 10_000,
  /** From the first byte of the request to the last of the response. Afterwards the outcome is unknown. */
  responseMs: 60_000,
  maxResponseBytes: 65_536,
  /** Without this limit, the peer could close the connection while the next request uses it. */
  idleMs: 20_000,
};
export type HandlerLimits = Readonly<typeof HANDLER_LIMITS>;

export class HttpHandlerError extends Error {
  override readonly name = 'HttpHandlerError';
}

export function createHttpHandler(
  connections: number,
  clock: Clock,
  limits: HandlerLimits = HANDLER_LIMITS,
): HttpHandler {
  // The global agents have the proxy settings of the environment (NODE_USE_ENV_PROXY).
  const https = getHttps();
  const { proxyEnv } = https.globalAgent.options;
  const options = {
    keepAlive: true,
    maxSockets: connections,
    // By default the agent leaves at most 256 idle connections open.
    maxFreeSockets: connections,
    timeout: limits.idleMs,
    proxyEnv,
  } as const;
  const httpAgent = new Agent(options);
  const httpsAgent = new https.Agent(options);

  return {
    handle(request, { abortSignal, onSent } = {}) {
      return new Promise((resolve, reject) => {
        const tls = request.protocol !== 'http:';
        const outgoingRequest = (tls ? https.request : requestHttp)({
          agent: tls ? httpsAgent : httpAgent,
          host: request.hostname.startsWith('[') ? request.hostname.slice(1, -1) : request.hostname,
          port: request.port,
          method: request.method,
          path: `${request.path}${formatQuery(request.query)}`,
          headers: request.headers,
        });
        let cancel = clock.after(limits.connectMs, () =>
          outgoingRequest.destroy(new HttpHandlerError(`no connection within ${limits.connectMs / 1_000} seconds`)),
        );
        const onAborted = (): void =>
          void outgoingRequest.destroy(new HttpHandlerError('aborted, because the service is stopping'));
        const stopListening = (): void => {
          cancel();
          abortSignal?.removeEventListener('abort', onAborted);
        };
        const rejectRequest = (error: Error): void => {
          stopListening();
          reject(error);
        };
        const onConnected = (): void => {
          cancel();
          cancel = clock.after(limits.responseMs, () =>
            outgoingRequest.destroy(new HttpHandlerError(`no response within ${limits.responseMs / 1_000} seconds`)),
          );
        };
        abortSignal?.addEventListener('abort', onAborted, { once: true });
        outgoingRequest.on('socket', (socket) => {
          // As a reused connection is, or one that a proxy has opened.
          if (isReady(socket)) onConnected();
          else socket.once(tls ? 'secureConnect' : 'connect', onConnected);
        });
        outgoingRequest.on('finish', () => onSent?.());
        outgoingRequest.on('error', rejectRequest);
        outgoingRequest.on('response', (response) => {
          // A response may arrive before the server has read the whole request.
          onSent?.();
          readBody(response, limits.maxResponseBytes).then(
            (body) => {
              stopListening();
              resolve({ response: { statusCode: response.statusCode ?? 0, headers: flattenHeaders(response), body } });
            },
            (error: Error) => {
              outgoingRequest.destroy();
              rejectRequest(error);
            },
          );
        });
        if (abortSignal?.aborted) onAborted();
        outgoingRequest.end(request.body);
      });
    },
    destroy() {
      httpAgent.destroy();
      httpsAgent.destroy();
    },
  };
}

function isReady(socket: Socket): boolean {
  const isHandshaking = 'secureConnecting' in socket && socket.secureConnecting === true;
  return !socket.connecting && !isHandshaking;
}

async function readBody(response: http.IncomingMessage, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    sizeBytes += chunk.length;
    if (sizeBytes > maxBytes) throw new HttpHandlerError(`the response has more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function flattenHeaders({ headers }: http.IncomingMessage): Record<string, string> {
  const flatHeaders: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) flatHeaders[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return flatHeaders;
}

function formatQuery(query: HandlerRequest['query']): string {
  const parameters = Object.entries(query ?? {}).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((item: string | null) =>
      item === null ? encodeURIComponent(name) : `${encodeURIComponent(name)}=${encodeURIComponent(item)}`,
    ),
  );
  return parameters.length === 0 ? '' : `?${parameters.join('&')}`;
}

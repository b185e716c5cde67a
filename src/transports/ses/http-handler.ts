/**
 * HTTP for the SDK, over connections that are kept. It stands in for the SDK's own handler because of two things that that one
 * does not tell or do: whether a request had left whole when its connection died, which decides between "try again" and
 * "perhaps taken", and a bound on the answer.
 *
 * Rejects with the system's error, or a HttpHandlerError.
 */
import * as http from 'node:http';
import * as https from 'node:https';
import type { Socket } from 'node:net';
import type { Clock } from '../../clock.ts';

/** A request as the SDK has signed it. */
export interface HandlerRequest {
  /** `https:` or `http:`. */
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

/** What the SDK hands through from the call. */
export interface HandlerOptions {
  readonly abortSignal?: AbortSignal;
  /** Called when all of the request is with the operating system, and at the latest with the answer. */
  readonly onSent?: () => void;
}

export interface HttpHandler {
  handle(request: HandlerRequest, options?: HandlerOptions): Promise<{ readonly response: HandlerResponse }>;
  /** Closes the connections. */
  destroy(): void;
}

export interface HandlerLimits {
  readonly connectMs: number;
  /** From the first byte of the request to the last of the answer; connecting has its own. */
  readonly responseMs: number;
  readonly maxResponseBytes: number;
  /** An idle connection is closed after this, before the other side does so in the moment of its next use. */
  readonly idleMs: number;
}

export const HANDLER_LIMITS: HandlerLimits = {
  connectMs: 10_000,
  // The provider answers within seconds; what takes longer is given up, and whether it was taken is not known.
  responseMs: 60_000,
  maxResponseBytes: 65_536,
  idleMs: 20_000,
};

export class HttpHandlerError extends Error {
  override readonly name = 'WireError';
}

/** A wire of at most so many connections. */
export function createHttpHandler(
  connections: number,
  clock: Clock,
  limits: HandlerLimits = HANDLER_LIMITS,
): HttpHandler {
  // A proxy of the environment is the global agents' affair (NODE_USE_ENV_PROXY); these agents follow them.
  const { proxyEnv } = https.globalAgent.options;
  const options = { keepAlive: true, maxSockets: connections, timeout: limits.idleMs, proxyEnv } as const;
  const plain = new http.Agent(options);
  const secure = new https.Agent(options);

  return {
    handle(request, { abortSignal, onSent } = {}) {
      return new Promise((resolve, reject) => {
        const tls = request.protocol !== 'http:';
        const made = (tls ? https : http).request({
          agent: tls ? secure : plain,
          host: request.hostname.startsWith('[') ? request.hostname.slice(1, -1) : request.hostname,
          port: request.port,
          method: request.method,
          path: `${request.path}${queryText(request.query)}`,
          headers: request.headers,
        });
        let cancel = clock.after(limits.connectMs, () =>
          made.destroy(new HttpHandlerError(`no connection within ${limits.connectMs / 1_000} seconds`)),
        );
        const aborted = (): void => void made.destroy(new HttpHandlerError('given up by the service, which stops'));
        const end = (): void => {
          cancel();
          abortSignal?.removeEventListener('abort', aborted);
        };
        const fail = (error: Error): void => {
          end();
          reject(error);
        };
        const connected = (): void => {
          cancel();
          cancel = clock.after(limits.responseMs, () =>
            made.destroy(new HttpHandlerError(`no answer within ${limits.responseMs / 1_000} seconds`)),
          );
        };
        abortSignal?.addEventListener('abort', aborted, { once: true });
        made.on('socket', (socket) => {
          // One that was kept, or that a proxy has opened, is ready.
          if (isReady(socket)) connected();
          else socket.once(tls ? 'secureConnect' : 'connect', connected);
        });
        made.on('finish', () => onSent?.());
        made.on('error', fail);
        made.on('response', (response) => {
          // Also where it came before the request was read: it is the answer to it.
          onSent?.();
          collect(response, limits.maxResponseBytes).then(
            (body) => {
              end();
              resolve({ response: { statusCode: response.statusCode ?? 0, headers: headersOf(response), body } });
            },
            (error: Error) => {
              made.destroy();
              fail(error);
            },
          );
        });
        if (abortSignal?.aborted) aborted();
        made.end(request.body);
      });
    },
    destroy() {
      plain.destroy();
      secure.destroy();
    },
  };
}

function isReady(socket: Socket): boolean {
  const handshaking = 'secureConnecting' in socket && socket.secureConnecting === true;
  return !socket.connecting && !handshaking;
}

async function collect(response: http.IncomingMessage, most: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > most) throw new HttpHandlerError(`an answer of more than ${most} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function headersOf({ headers }: http.IncomingMessage): Record<string, string> {
  const flat: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) flat[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return flat;
}

function queryText(query: HandlerRequest['query']): string {
  const parts = Object.entries(query ?? {}).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((one: string | null) =>
      one === null ? encodeURIComponent(name) : `${encodeURIComponent(name)}=${encodeURIComponent(one)}`,
    ),
  );
  return parts.length === 0 ? '' : `?${parts.join('&')}`;
}

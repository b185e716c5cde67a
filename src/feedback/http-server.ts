/**
 * Creates the HTTP server of the listener for provider events. The server enforces limits, reads request bodies and
 * sends one-line responses.
 *
 * Slow, oversized and malformed requests get a response, and then the server closes the connection. Memory is bounded:
 * the total size of the bodies that are being received is at most `MAX_BUFFERED_BYTES`. Disconnected clients are not
 * logged. After a refusal, the server closes the connection and does not read the remaining body.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from '../clock.ts';
import type { HttpConnections } from '../http/connections.ts';
import { createServer, getHttps, STATUS_CODES } from '../node-http.ts';

/** The maximum total size of all bodies that are being received. */
const MAX_BUFFERED_BYTES = 64 * 1_048_576;
const MIN_TLS_VERSION = 'TLSv1.2';
/** Error codes that mean that the client disconnected. */
const DISCONNECT_CODES: readonly string[] = ['ECONNRESET', 'EPIPE', 'HPE_INVALID_EOF_STATE'];
/** The time limits of a request, in milliseconds. The names, except `bodyTimeout`, are those of `node:http`. */
export interface RequestTimeLimits {
  readonly headersTimeout: number;
  /**
   * Maximum time from the end of the header fields to the end of the body. If it is exceeded, the receiver chooses the
   * response.
   */
  readonly bodyTimeout: number;
  /** Maximum time of the whole request. If it is exceeded, the response is 408. */
  readonly requestTimeout: number;
  readonly connectionsCheckingInterval: number;
}

export const REQUEST_TIME_LIMITS: RequestTimeLimits = {
  headersTimeout: 10_000,
  bodyTimeout: 19_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 5_000,
};
const MAX_HEADER_BYTES = 16_384;

export interface HttpResponse {
  readonly status: number;
  /** A one-line text for the client. */
  readonly message: string;
  /** The value of the header field `Allow` in a 405 response. Default: `POST`. */
  readonly allow?: string;
}

export interface CertificatePair {
  readonly cert: Buffer;
  readonly key: Buffer;
}

export type RequestBody =
  | { readonly kind: 'complete'; readonly bytes: Buffer }
  /** The body is too large. The remaining body is not read. */
  | { readonly kind: 'too-large' }
  /** The bodies of all requests together exceed the limit. The remaining body is not read. */
  | { readonly kind: 'busy' }
  /** The body was not complete when the time limit expired. The remaining body is not read. */
  | { readonly kind: 'late' }
  /** The client disconnected. */
  | { readonly kind: 'aborted' };

export interface EventServer {
  readonly server: Server;
  renewCertificate(certificate: CertificatePair): void;
}

/**
 * Creates an HTTPS server, or an HTTP server if `certificate` is null. The server calls `onBrokenRequest` before it
 * responds to a request that is not valid HTTP, is too slow, or has header fields that are too large.
 */
export function createEventServer(
  certificate: CertificatePair | null,
  connections: HttpConnections,
  handle: (request: IncomingMessage, response: ServerResponse) => void,
  onBrokenRequest: () => void,
  timeLimits: RequestTimeLimits = REQUEST_TIME_LIMITS,
): EventServer {
  const { headersTimeout, requestTimeout, connectionsCheckingInterval } = timeLimits;
  const limits = { headersTimeout, requestTimeout, connectionsCheckingInterval, maxHeaderSize: MAX_HEADER_BYTES };
  const tls =
    certificate === null
      ? null
      : getHttps().createServer(
          {
            ...limits,
            ...certificate,
            minVersion: MIN_TLS_VERSION,
            handshakeTimeout: limits.headersTimeout,
          },
          handle,
        );
  const server: Server = tls ?? createServer(limits, handle);
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    if (DISCONNECT_CODES.includes(error.code ?? '')) {
      socket.destroy();
      return;
    }
    connections.handleClientError(error, socket, () => {
      onBrokenRequest();
      return formatRawResponse(toErrorResponse(error));
    });
  });
  connections.attach(server);
  return {
    server,
    renewCertificate: ({ cert, key }) => tls?.setSecureContext({ cert, key, minVersion: MIN_TLS_VERSION }),
  };
}

/** Reads request bodies. One limit applies to the total size of the bodies of all requests. */
export interface BodyReader {
  /** Reads a body of at most `maxBytes`. Never rejects. If the body cannot be read, `kind` is not `complete`. */
  read(request: IncomingMessage, maxBytes: number): Promise<RequestBody>;
}

/** Creates the reader for the request bodies of one listener. */
export function createBodyReader(
  clock: Pick<Clock, 'after'>,
  timeoutMs: number = REQUEST_TIME_LIMITS.bodyTimeout,
  maxBufferedBytes: number = MAX_BUFFERED_BYTES,
): BodyReader {
  let bufferedBytes = 0;
  return {
    read(request, maxBytes) {
      if (Number(request.headers['content-length'] ?? 0) > maxBytes) return Promise.resolve({ kind: 'too-large' });
      return new Promise((resolve) => {
        const chunks: Buffer[] = [];
        let length = 0;
        let isDone = false;
        const resolveRead = (body: RequestBody) => {
          if (isDone) return;
          isDone = true;
          cancelTimeout();
          bufferedBytes -= length;
          chunks.length = 0;
          resolve(body);
        };
        const cancelTimeout = clock.after(timeoutMs, () => {
          request.pause();
          resolveRead({ kind: 'late' });
        });
        request.on('data', (chunk: Buffer) => {
          if (isDone) return;
          length += chunk.length;
          bufferedBytes += chunk.length;
          chunks.push(chunk);
          const refusal = length > maxBytes ? 'too-large' : bufferedBytes > maxBufferedBytes ? 'busy' : null;
          if (refusal === null) return;
          request.pause();
          resolveRead({ kind: refusal });
        });
        request.on('end', () => resolveRead({ kind: 'complete', bytes: Buffer.concat(chunks) }));
        request.on('error', () => resolveRead({ kind: 'aborted' }));
        request.on('close', () => resolveRead({ kind: 'aborted' }));
      });
    },
  };
}

/**
 * Sends a response. Closes the connection after a 4xx response, or if the body of the request was not read to its end.
 */
export function sendResponse(response: ServerResponse, { status, message, allow = 'POST' }: HttpResponse): void {
  const headers: Record<string, string> = { 'content-type': 'application/json' };
  if (status === 405) headers.allow = allow;
  if (status === 401) headers['www-authenticate'] = 'Basic realm="postrider", charset="UTF-8"';
  if (status === 503 || status === 429) headers['retry-after'] = '20';
  if ((status >= 400 && status < 500) || !response.req.complete) headers.connection = 'close';
  response.writeHead(status, headers).end(formatResponseBody({ status, message }));
}

function formatResponseBody({ status, message }: HttpResponse): string {
  return `${JSON.stringify({ result: status === 200 ? 'ok' : 'error', message })}\n`;
}

function toErrorResponse(error: NodeJS.ErrnoException): HttpResponse {
  switch (error.code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { status: 408, message: 'the request did not arrive in time' };
    case 'HPE_HEADER_OVERFLOW':
      return { status: 431, message: 'the header fields are too large' };
    default:
      return { status: 400, message: 'the request is not valid HTTP' };
  }
}

function formatRawResponse(answer: HttpResponse): string {
  const body = formatResponseBody(answer);
  return (
    `HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status] ?? ''}\r\nContent-Type: application/json\r\n` +
    `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`
  );
}

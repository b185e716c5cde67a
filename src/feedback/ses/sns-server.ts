/**
 * Creates the HTTP server of the SNS receiver. The server enforces limits, reads request bodies and sends one-line responses.
 *
 * Slow, oversized and malformed requests get a response, and then the server closes the connection. Memory is bounded to one
 * body per connection. Disconnected clients are not logged. After a refusal the connection ends, and the remaining body is not
 * read.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Duplex } from 'node:stream';
import type { HttpConnections } from '../../http/connections.ts';

/** The size limit of SNS. */
const MAX_BODY_BYTES = 262_144;
const MIN_TLS_VERSION = 'TLSv1.2';
/** Error codes of a client that disconnects, also during a request. */
const DISCONNECT_CODES: readonly string[] = ['ECONNRESET', 'EPIPE', 'HPE_INVALID_EOF_STATE'];
const LIMITS = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 5_000,
  maxHeaderSize: 16_384,
} as const;

export interface SnsResponse {
  readonly status: number;
  /** One line for the client. */
  readonly message: string;
}

export interface SnsCertificatePair {
  readonly cert: Buffer;
  readonly key: Buffer;
}

export type SnsBody =
  | { readonly kind: 'complete'; readonly text: string }
  /** The remaining body is not read. */
  | { readonly kind: 'too-large' }
  /** The client disconnected. */
  | { readonly kind: 'aborted' };

export interface SnsServer {
  readonly server: Server;
  renewCertificate(certificate: SnsCertificatePair): void;
}

/** Creates an HTTPS server, or an HTTP server without a certificate. `broken` is called for each request that is not valid HTTP. */
export function createSnsServer(
  certificate: SnsCertificatePair | null,
  connections: HttpConnections,
  handle: (request: IncomingMessage, response: ServerResponse) => void,
  broken: () => void,
): SnsServer {
  const tls =
    certificate === null
      ? null
      : createTlsServer(
          { ...LIMITS, ...certificate, minVersion: MIN_TLS_VERSION, handshakeTimeout: LIMITS.headersTimeout },
          handle,
        );
  const server: Server = tls ?? createServer(LIMITS, handle);
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    if (DISCONNECT_CODES.includes(error.code ?? '')) {
      socket.destroy();
      return;
    }
    connections.handleClientError(error, socket, () => {
      broken();
      return rawResponse(responseTo(error));
    });
  });
  connections.attach(server);
  return {
    server,
    renewCertificate: ({ cert, key }) => tls?.setSecureContext({ cert, key, minVersion: MIN_TLS_VERSION }),
  };
}

/** Reads the whole body as text. */
export function readSnsBody(request: IncomingMessage): Promise<SnsBody> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let length = 0;
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length <= MAX_BODY_BYTES) {
        chunks.push(chunk);
        return;
      }
      chunks.length = 0;
      request.pause();
      resolve({ kind: 'too-large' });
    });
    request.on('end', () => resolve({ kind: 'complete', text: Buffer.concat(chunks).toString('utf8') }));
    request.on('error', () => resolve({ kind: 'aborted' }));
    request.on('close', () => resolve({ kind: 'aborted' }));
  });
}

/** Sends a response, and ends the connection after a refusal. */
export function sendSnsResponse(response: ServerResponse, { status, message }: SnsResponse): void {
  const headers: Record<string, string> = { 'content-type': 'application/json' };
  if (status === 405) headers.allow = 'POST';
  if (status === 503) headers['retry-after'] = '20';
  if (status >= 400 && status < 500) headers.connection = 'close';
  response.writeHead(status, headers).end(responseBody({ status, message }));
}

function responseBody({ status, message }: SnsResponse): string {
  return `${JSON.stringify({ result: status === 200 ? 'ok' : 'error', message })}\n`;
}

function responseTo(error: NodeJS.ErrnoException): SnsResponse {
  switch (error.code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { status: 408, message: 'the request did not arrive in time' };
    case 'HPE_HEADER_OVERFLOW':
      return { status: 431, message: 'the header fields are too large' };
    default:
      return { status: 400, message: 'the request is not valid HTTP' };
  }
}

function rawResponse(answer: SnsResponse): string {
  const body = responseBody(answer);
  return (
    `HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status] ?? ''}\r\nContent-Type: application/json\r\n` +
    `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`
  );
}

/**
 * Creates the HTTP server of the SNS receiver. The server enforces limits, reads request bodies and sends one-line
 * responses.
 *
 * After a response to a slow, oversized or malformed request, the server closes the connection. Memory is bounded to
 * one body per connection. Disconnected clients are not logged. After a refusal, the server closes the connection and
 * does not read the remaining body.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Duplex } from 'node:stream';
import type { HttpConnections } from '../../http/connections.ts';

/** Maximum size of a request body. SNS has the same maximum for messages. */
const MAX_BODY_BYTES = 262_144;
const MIN_TLS_VERSION = 'TLSv1.2';
/** Error codes that mean that the client has disconnected. */
const DISCONNECT_CODES: readonly string[] = ['ECONNRESET', 'EPIPE', 'HPE_INVALID_EOF_STATE'];
const SNS_SERVER_LIMITS = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 5_000,
  maxHeaderSize: 16_384,
} as const;

export interface SnsResponse {
  readonly status: number;
  /** A text of one line for the client. */
  readonly message: string;
}

export interface SnsCertificatePair {
  readonly cert: Buffer;
  readonly key: Buffer;
}

export type SnsBody =
  | { readonly kind: 'complete'; readonly text: string }
  /** The body is too large. The remaining body is not read. */
  | { readonly kind: 'too-large' }
  /** The client disconnected. */
  | { readonly kind: 'aborted' };

export interface SnsServer {
  readonly server: Server;
  renewCertificate(certificate: SnsCertificatePair): void;
}

/**
 * Creates an HTTPS server, or an HTTP server if `certificate` is null. `onBrokenRequest` is called for each request
 * that is not valid HTTP.
 */
export function createSnsServer(
  certificate: SnsCertificatePair | null,
  connections: HttpConnections,
  handle: (request: IncomingMessage, response: ServerResponse) => void,
  onBrokenRequest: () => void,
): SnsServer {
  const tls =
    certificate === null
      ? null
      : createTlsServer(
          {
            ...SNS_SERVER_LIMITS,
            ...certificate,
            minVersion: MIN_TLS_VERSION,
            handshakeTimeout: SNS_SERVER_LIMITS.headersTimeout,
          },
          handle,
        );
  const server: Server = tls ?? createServer(SNS_SERVER_LIMITS, handle);
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

/** Reads the whole body as text. */
export function readSnsBody(request: IncomingMessage): Promise<SnsBody> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let lengthBytes = 0;
    request.on('data', (chunk: Buffer) => {
      lengthBytes += chunk.length;
      if (lengthBytes <= MAX_BODY_BYTES) {
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

/** Sends a response. After a refusal, also closes the connection. */
export function sendSnsResponse(response: ServerResponse, { status, message }: SnsResponse): void {
  const headers: Record<string, string> = { 'content-type': 'application/json' };
  if (status === 405) headers.allow = 'POST';
  if (status === 503) headers['retry-after'] = '20';
  if (status >= 400 && status < 500) headers.connection = 'close';
  response.writeHead(status, headers).end(formatResponseBody({ status, message }));
}

function formatResponseBody({ status, message }: SnsResponse): string {
  return `${JSON.stringify({ result: status === 200 ? 'ok' : 'error', message })}\n`;
}

function toErrorResponse(error: NodeJS.ErrnoException): SnsResponse {
  switch (error.code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { status: 408, message: 'the request did not arrive in time' };
    case 'HPE_HEADER_OVERFLOW':
      return { status: 431, message: 'the header fields are too large' };
    default:
      return { status: 400, message: 'the request is not valid HTTP' };
  }
}

function formatRawResponse(response: SnsResponse): string {
  const body = formatResponseBody(response);
  return (
    `HTTP/1.1 ${response.status} ${STATUS_CODES[response.status] ?? ''}\r\nContent-Type: application/json\r\n` +
    `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`
  );
}

/**
 * The bare HTTP server under the SNS receiver: limits, bodies, and answers of one clear line.
 *
 * Promises: slow, oversized and malformed requests are answered and let go, and hold at most one body a connection in
 * memory; a client that hangs up is no fault of ours; after a refusal the connection ends, and what is left of its body is
 * not read.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Duplex } from 'node:stream';
import type { HttpConnections } from '../../http/connections.ts';

/** SNS's own limit for a message. */
const MOST_BYTES = 262_144;
const OLDEST_TLS = 'TLSv1.2';
/** Of a client that ended the connection, also in the middle of a request. */
const HUNG_UP: readonly string[] = ['ECONNRESET', 'EPIPE', 'HPE_INVALID_EOF_STATE'];
const LIMITS = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 5_000,
  maxHeaderSize: 16_384,
} as const;

export interface SnsResponse {
  readonly status: number;
  /** One line for whoever asked. */
  readonly message: string;
}

export interface SnsCertificatePair {
  readonly cert: Buffer;
  readonly key: Buffer;
}

export type SnsBody =
  | { readonly kind: 'whole'; readonly text: string }
  /** The rest is not read. */
  | { readonly kind: 'too-large' }
  /** The client went away; there is nobody to answer. */
  | { readonly kind: 'gone' };

export interface SnsServer {
  readonly server: Server;
  renewCertificate(certificate: SnsCertificatePair): void;
}

/** HTTPS with a certificate, HTTP without. `broken` is told of each request that is refused before it is one. */
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
          { ...LIMITS, ...certificate, minVersion: OLDEST_TLS, handshakeTimeout: LIMITS.headersTimeout },
          handle,
        );
  const server: Server = tls ?? createServer(LIMITS, handle);
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    if (HUNG_UP.includes(error.code ?? '')) {
      socket.destroy();
      return;
    }
    connections.handleClientError(error, socket, () => {
      broken();
      return rawAnswer(answerTo(error));
    });
  });
  connections.attach(server);
  return {
    server,
    renewCertificate: ({ cert, key }) => tls?.setSecureContext({ cert, key, minVersion: OLDEST_TLS }),
  };
}

/** The body as text, once it is all there. */
export function readSnsBody(request: IncomingMessage): Promise<SnsBody> {
  return new Promise((resolve) => {
    const pieces: Buffer[] = [];
    let length = 0;
    request.on('data', (piece: Buffer) => {
      length += piece.length;
      if (length <= MOST_BYTES) {
        pieces.push(piece);
        return;
      }
      pieces.length = 0;
      request.pause();
      resolve({ kind: 'too-large' });
    });
    request.on('end', () => resolve({ kind: 'whole', text: Buffer.concat(pieces).toString('utf8') }));
    request.on('error', () => resolve({ kind: 'gone' }));
    request.on('close', () => resolve({ kind: 'gone' }));
  });
}

/** Sends an answer, and ends the connection after a refusal. */
export function sendSnsResponse(response: ServerResponse, { status, message }: SnsResponse): void {
  const headers: Record<string, string> = { 'content-type': 'application/json' };
  if (status === 405) headers.allow = 'POST';
  if (status === 503) headers['retry-after'] = '20';
  if (status >= 400 && status < 500) headers.connection = 'close';
  response.writeHead(status, headers).end(bodyFor({ status, message }));
}

function bodyFor({ status, message }: SnsResponse): string {
  return `${JSON.stringify({ result: status === 200 ? 'ok' : 'error', message })}\n`;
}

function answerTo(error: NodeJS.ErrnoException): SnsResponse {
  switch (error.code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { status: 408, message: 'the request was not all there in time' };
    case 'HPE_HEADER_OVERFLOW':
      return { status: 431, message: 'the header fields are larger than SNS sends' };
    default:
      return { status: 400, message: 'this is not HTTP' };
  }
}

function rawAnswer(answer: SnsResponse): string {
  const body = bodyFor(answer);
  return (
    `HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status] ?? ''}\r\nContent-Type: application/json\r\n` +
    `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`
  );
}

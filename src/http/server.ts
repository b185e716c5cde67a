/**
 * The bare HTTP server under the public listener: timeouts, size of headers, and the answers that node:http would
 * otherwise give itself, with bodies of the registry.
 *
 * Promises: a slow or malformed client is answered and let go; a request that is being committed is never answered by
 * anything but its own outcome; requests with no or several Host headers go no further.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Duplex } from 'node:stream';
import type { Clock } from '../clock.ts';
import { type Answers, occurrences, originForm } from './answer.ts';
import type { HttpConnections } from './connections.ts';
import { type ErrorCode, errorBody, errorEntry } from './errors.ts';
import type { ListenerLimits } from './ports.ts';
import type { CertificatePair } from './tls.ts';

type Handler = (req: IncomingMessage, res: ServerResponse) => void;

/** Oldest version spoken; RFC 8996 retires what is before. */
export const OLDEST_TLS = 'TLSv1.2';

/** What the server is made of. */
export interface ServerParts {
  readonly limits: ListenerLimits;
  /** Null speaks plain HTTP. */
  readonly certificate: CertificatePair | null;
  readonly answers: Answers;
  readonly connections: HttpConnections;
  readonly clock: Clock;
  /** Takes every sane request. */
  readonly handle: Handler;
  /** Told of each request that is answered here. */
  readonly refused: Refused;
}

type Refused = (code: ErrorCode) => void;

/** A server that hands sane requests to `handle`. */
export function createHttpServer(parts: ServerParts): Server {
  const { limits, certificate, answers, connections, clock, handle, refused } = parts;
  const options = {
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    connectionsCheckingInterval: limits.timeoutCheckMs,
    maxHeaderSize: limits.maxHeaderBytes,
    // Node's own answer to an absent Host has no body; `onRequest` below gives ours.
    requireHostHeader: false,
    insecureHTTPParser: false,
    noDelay: true,
  };
  const onRequest: Handler = (req, res) => {
    // RFC 9112 section 3.2: 400 for none, and for several; which of two would be meant, nobody knows.
    const hosts = occurrences(req.rawHeaders, 'host');
    if (hosts > 1 || (hosts === 0 && req.httpVersionMinor >= 1)) {
      answers.error(req, res, 'invalid-host', null, {});
      refused('invalid-host');
      return;
    }
    if (req.url !== undefined) req.url = originForm(req.url);
    handle(req, res);
  };
  const server =
    certificate === null
      ? createServer(options, onRequest)
      : createTlsServer(
          {
            ...options,
            ...certificate,
            minVersion: OLDEST_TLS,
            ALPNProtocols: ['http/1.1'],
            handshakeTimeout: limits.headersTimeoutMs,
          },
          onRequest,
        );
  // The handler decides on 100 Continue: a request whose key is wrong is refused before its body.
  server.on('checkContinue', onRequest);
  server.on('checkExpectation', (req: IncomingMessage, res: ServerResponse) => {
    answers.error(req, res, 'expectation-failed', null, {});
    refused('expectation-failed');
  });
  server.on('connect', (_req: IncomingMessage, socket: Duplex) => {
    refused('not-found');
    connections.endWith(socket, rawAnswer('not-found', clock));
  });
  connections.watch(server);
  return server;
}

/** Answers what went wrong below HTTP, and ends the connection. */
export function onClientError(
  error: NodeJS.ErrnoException,
  socket: Duplex,
  connections: HttpConnections,
  clock: Clock,
  refused: Refused,
): void {
  connections.fault(error, socket, () => {
    const code = codeOf(error);
    refused(code);
    return rawAnswer(code, clock);
  });
}

function codeOf(error: NodeJS.ErrnoException): ErrorCode {
  switch (error.code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return 'request-timeout';
    case 'HPE_HEADER_OVERFLOW':
      return 'headers-too-large';
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return 'body-too-large';
    default:
      return 'malformed-request';
  }
}

/** The complete HTTP response for an error, written to the raw socket where node:http no longer writes one. */
function rawAnswer(code: ErrorCode, clock: Clock): Buffer {
  const body = errorBody(code);
  const { status } = errorEntry(code);
  const head =
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\nContent-Type: application/json\r\n` +
    `Content-Length: ${body.length}\r\nDate: ${new Date(clock.now()).toUTCString()}\r\nConnection: close\r\n\r\n`;
  return Buffer.concat([Buffer.from(head, 'latin1'), body]);
}

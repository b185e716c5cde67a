/**
 * Answers of the operator's listener to what never becomes a request: malformed lines, timeouts, tunnels. The same short
 * body as everywhere, in place of the framework's own; the connection ends with it.
 */
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';

/** For `clientError`: says what was wrong where anybody can still read it. */
export function answerClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable || error.code === 'ECONNRESET' || error.code === 'EPIPE') {
    socket.destroy();
    return;
  }
  switch (error.code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      endWith(socket, 408, 'Request timeout');
      return;
    case 'HPE_HEADER_OVERFLOW':
      endWith(socket, 431, 'Request header fields too large');
      return;
    default:
      endWith(socket, 400, 'Malformed HTTP request');
  }
}

/** One error and the end of the connection; `more` is whole header lines. */
export function endWith(socket: Duplex, status: number, message: string, more = ''): void {
  const body = JSON.stringify({ result: 'error', message });
  const head =
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\nContent-Type: application/json; charset=utf-8\r\n` +
    `X-Content-Type-Options: nosniff\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${more}Connection: close\r\n\r\n`;
  socket.end(head + body, () => socket.destroy());
}

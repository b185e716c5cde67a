/**
 * Answers of the operator's listener to what never becomes a request: malformed lines, timeouts, tunnels. The same short
 * body as everywhere, in place of the framework's own; the connection ends with it.
 */
import { STATUS_CODES } from 'node:http';
import { statusErrorBody } from './refusal.ts';

/** For `clientError`: what was wrong, as a whole answer. */
export function clientErrorResponse(error: NodeJS.ErrnoException): string {
  switch (error.code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return rawResponse(408, 'Request timeout');
    case 'HPE_HEADER_OVERFLOW':
      return rawResponse(431, 'Request header fields too large');
    default:
      return rawResponse(400, 'Malformed HTTP request');
  }
}

/** One error that ends the connection; `more` is whole header lines. */
export function rawResponse(status: number, message: string, more = ''): string {
  const body = JSON.stringify(statusErrorBody(status, message));
  const head =
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\nContent-Type: application/json; charset=utf-8\r\n` +
    `X-Content-Type-Options: nosniff\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${more}Connection: close\r\n\r\n`;
  return head + body;
}

/**
 * Creates the responses of the operator listener to input that is not a complete HTTP request: malformed data, timeouts
 * and CONNECT. The body has the format of all errors. The connection is closed after the response.
 */
import { STATUS_CODES } from '../node-http.ts';
import { createStatusErrorBody } from './refusal.ts';

/** Returns the complete response to the event `clientError` of the HTTP server. */
export function createClientErrorResponse(error: NodeJS.ErrnoException): string {
  switch (error.code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return createRawResponse(408, 'Request timeout');
    case 'HPE_HEADER_OVERFLOW':
      return createRawResponse(431, 'Request header fields too large');
    default:
      return createRawResponse(400, 'Malformed HTTP request');
  }
}

/** Returns a complete error response that closes the connection. `headers` contains complete header lines. */
export function createRawResponse(status: number, message: string, headers = ''): string {
  const body = JSON.stringify(createStatusErrorBody(status, message));
  const head =
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\nContent-Type: application/json; charset=utf-8\r\n` +
    `X-Content-Type-Options: nosniff\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${headers}Connection: close\r\n\r\n`;
  return head + body;
}

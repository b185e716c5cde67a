/**
 * Limits the time for the body of a request. Node uses one timeout for all requests, but an upload of 200 MB over a
 * slow connection can take longer than other bodies. The timeout of a body starts with the request. Each chunk of an
 * authenticated upload restarts the timeout.
 */
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../clock.ts';
import type { HttpConnections } from '../http/connections.ts';
import { createRawResponse } from './raw-responses.ts';

const BODY_TIMEOUT_MS = 30_000;

export class BodyTimeouts {
  readonly #clock: Clock;
  readonly #connections: Pick<HttpConnections, 'handleClientError'>;
  readonly #cancelByRequest = new WeakMap<IncomingMessage, () => void>();

  constructor(clock: Clock, connections: Pick<HttpConnections, 'handleClientError'>) {
    this.#clock = clock;
    this.#connections = connections;
  }

  /** Starts the timeout. When the timeout expires, the response is 408 and the connection is closed. */
  start(request: IncomingMessage): void {
    this.#setTimeout(request);
    request.once('close', () => this.#cancelByRequest.get(request)?.());
  }

  /** Restarts the timeout after a chunk of an upload. */
  restart(request: IncomingMessage): void {
    this.#cancelByRequest.get(request)?.();
    this.#setTimeout(request);
  }

  #setTimeout(request: IncomingMessage): void {
    const onTimeout = () => {
      if (request.complete || request.destroyed) return;
      const error: NodeJS.ErrnoException = new Error('the request body timed out');
      this.#connections.handleClientError(error, request.socket, () => createRawResponse(408, 'Request timeout'));
    };
    this.#cancelByRequest.set(request, this.#clock.after(BODY_TIMEOUT_MS, onTimeout));
  }
}

/**
 * Timeouts of request bodies. Node has one limit for all requests, but an upload of 200 MB over a slow connection may take longer than
 * any other body. A body has a time limit from its beginning; each chunk of an authenticated upload restarts it.
 */
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../clock.ts';
import type { HttpConnections } from '../http/connections.ts';
import { rawResponse } from './raw-responses.ts';

const BODY_TIMEOUT_MS = 30_000;

export class BodyTimeouts {
  readonly #clock: Clock;
  readonly #connections: Pick<HttpConnections, 'handleClientError'>;
  readonly #cancels = new WeakMap<IncomingMessage, () => void>();

  constructor(clock: Clock, connections: Pick<HttpConnections, 'handleClientError'>) {
    this.#clock = clock;
    this.#connections = connections;
  }

  /** Starts the timeout. When it expires, the answer is 408 and the connection closes. */
  start(request: IncomingMessage): void {
    this.#restart(request);
    request.once('close', () => this.#cancels.get(request)?.());
  }

  /** Restarts the timeout after a chunk of an upload. */
  restart(request: IncomingMessage): void {
    this.#cancels.get(request)?.();
    this.#restart(request);
  }

  #restart(request: IncomingMessage): void {
    const end = () => {
      if (request.complete || request.destroyed) return;
      const timeout: NodeJS.ErrnoException = new Error('the request body timed out');
      this.#connections.handleClientError(timeout, request.socket, () => rawResponse(408, 'Request timeout'));
    };
    this.#cancels.set(request, this.#clock.after(BODY_TIMEOUT_MS, end));
  }
}

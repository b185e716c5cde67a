/**
 * How long a request's body may take. Node knows one limit for all requests, and a list of 200 MB over a slow line takes longer
 * than any other body should: so each has so long from its beginning, and an upload that was let in from each of its parts.
 */
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../clock.ts';
import type { HttpConnections } from '../http/connections.ts';
import { rawResponse } from './raw-responses.ts';

const BODY_MS = 30_000;

export class BodyTimeouts {
  readonly #clock: Clock;
  readonly #connections: Pick<HttpConnections, 'handleClientError'>;
  readonly #cancels = new WeakMap<IncomingMessage, () => void>();

  constructor(clock: Clock, connections: Pick<HttpConnections, 'handleClientError'>) {
    this.#clock = clock;
    this.#connections = connections;
  }

  /** From now on; ends with 408 and the connection. */
  start(request: IncomingMessage): void {
    this.#restart(request);
    request.once('close', () => this.#cancels.get(request)?.());
  }

  /** A part of an upload has come. */
  restart(request: IncomingMessage): void {
    this.#cancels.get(request)?.();
    this.#restart(request);
  }

  #restart(request: IncomingMessage): void {
    const end = () => {
      if (request.complete || request.destroyed) return;
      const timeout: NodeJS.ErrnoException = new Error('the body takes too long');
      this.#connections.handleClientError(timeout, request.socket, () => rawResponse(408, 'Request timeout'));
    };
    this.#cancels.set(request, this.#clock.after(BODY_MS, end));
  }
}

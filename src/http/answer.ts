/**
 * Writes answers. Promises: one body shape for every error; a connection whose request body was not read is closed
 * after the answer, but only once the client had the time to read it; while draining, every answer closes.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../clock.ts';
import { hasBody } from './body.ts';
import { type ErrorCode, errorBody, errorEntry } from './errors.ts';
import type { Headers } from './limit-headers.ts';

/** `{"result":{"id":"` + 36 characters + `"}}`. */
const CREATED_BYTES = 56;

export class Answers {
  readonly #clock: Clock;
  readonly #lingerMs: number;
  readonly #lingerBytes: number;
  #draining = false;

  constructor(clock: Clock, lingerMs: number, lingerBytes: number) {
    this.#clock = clock;
    this.#lingerMs = lingerMs;
    this.#lingerBytes = lingerBytes;
  }

  get draining(): boolean {
    return this.#draining;
  }

  /** From now on every answer says `Connection: close`. */
  startDraining(): void {
    this.#draining = true;
  }

  /** 201 with the id; takes over `headers`. */
  created(res: ServerResponse, id: string, headers: Headers): void {
    headers['Content-Type'] = 'application/json';
    headers['Content-Length'] = CREATED_BYTES;
    if (this.#draining) headers.Connection = 'close';
    res.writeHead(201, headers);
    // One-byte text goes out together with the head, without a look at its encoding.
    res.end(`{"result":{"id":"${id}"}}`, 'latin1');
  }

  /** 200 of a health report. */
  ok(res: ServerResponse, message: string): void {
    const body = JSON.stringify({ result: 'ok', message });
    const headers: Headers = {
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(body),
      'Cache-Control': 'no-store',
    };
    if (this.#draining) headers.Connection = 'close';
    res.writeHead(200, headers);
    res.end(body);
  }

  /** An error of the registry; takes over `headers`. */
  error(req: IncomingMessage, res: ServerResponse, code: ErrorCode, detail: string | null, headers: Headers): void {
    const body = errorBody(code, detail);
    const unread = !req.complete && hasBody(req);
    headers['Content-Type'] = 'application/json';
    headers['Content-Length'] = body.length;
    if (unread || this.#draining) headers.Connection = 'close';
    res.writeHead(errorEntry(code).status, headers);
    // A client that waits for 100 Continue and gets this instead sends no body (RFC 9110 section 10.1.1).
    const comes = req.headers.expect === undefined || req.readableFlowing !== null;
    if (!unread || !comes) {
      res.end(body);
      return;
    }
    res.write(body);
    this.#linger(req, res);
  }

  /**
   * Throws away what the client still sends, within bounds, and only then closes: closing on unread bytes resets the
   * connection, and the client would lose the answer (RFC 9112 section 9.6).
   */
  #linger(req: IncomingMessage, res: ServerResponse): void {
    let left = this.#lingerBytes;
    let over = false;
    const stop = () => {
      if (over) return;
      over = true;
      cancel();
      res.end();
    };
    const cancel = this.#clock.after(this.#lingerMs, stop);
    req.on('data', (chunk: Buffer) => {
      left -= chunk.length;
      if (left < 0) stop();
    });
    req.on('end', stop);
    req.on('error', stop);
  }
}

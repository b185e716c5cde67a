/**
 * Writes answers. Promises: one body shape for every error; a connection whose request body was not read is closed
 * after the answer, but only once the client had the time to read it; while draining, every answer closes.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../clock.ts';
import type { LimitsLeft } from '../model/account.ts';
import { hasBody } from './body.ts';
import { type ErrorCode, errorBody, errorEntry } from './errors.ts';
import type { ThrottleAnswer, ThrottleLimit } from './throttle.ts';

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

// Questions to a request's headers that node:http does not answer. All linear.

/** How often the header `name` (lower case) was sent; `rawHeaders` alternates names and values. */
export function occurrences(rawHeaders: readonly string[], name: string): number {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const candidate = rawHeaders[i];
    if (candidate !== undefined && candidate.length === name.length && candidate.toLowerCase() === name) count += 1;
  }
  return count;
}

/** True where the header `name` (lower case) was sent more than once. */
export function repeats(rawHeaders: readonly string[], name: string): boolean {
  return occurrences(rawHeaders, name) > 1;
}

const JSON_TYPE = 'application/json';

/** True for `application/json`, any case, with or without parameters (RFC 9110 section 8.3.1). */
export function isJsonType(value: string | undefined): boolean {
  if (value === undefined) return false;
  if (value === JSON_TYPE) return true;
  const end = value.indexOf(';');
  const type = end < 0 ? value : value.slice(0, end);
  // Longer than the name and generous white space: not worth lowering.
  return type.length < 64 && type.trim().toLowerCase() === JSON_TYPE;
}

/** The path of a request target in origin or absolute form (RFC 9112 section 3.2), the query left out. */
export function pathOf(target: string): string {
  const origin = originForm(target);
  const query = origin.indexOf('?');
  return query < 0 ? origin : origin.slice(0, query);
}

/** The origin form of a target; `http://host/path` becomes `/path`, as a server must accept it (section 3.2.2). */
export function originForm(target: string): string {
  if (target.charCodeAt(0) === 0x2f) return target;
  const scheme = target.indexOf('://');
  if (scheme < 0) return target;
  const slash = target.indexOf('/', scheme + 3);
  return slash < 0 ? '/' : target.slice(slash);
}

// The headers that tell a client about its limits: RateLimit and RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers
// 10 and 11, structured fields) and Retry-After (RFC 9110 section 10.2.3). Whole seconds, rounded up, so that a client
// that obeys them is never too early.

export type Headers = Record<string, string | number>;

/** Milliseconds as whole seconds, at least 1. */
export function wholeSeconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000));
}

/** Adds the RateLimit headers for whichever limits are set; none for none. */
export function addLimits(
  headers: Headers,
  throttle: ThrottleLimit | null,
  taken: ThrottleAnswer | null,
  rate: LimitsLeft['rate'],
): void {
  let policy = '';
  let state = '';
  if (throttle !== null && taken !== null) {
    // `w` is the time an empty bucket takes to fill; `t` the time until the quota is whole, or the next token is there.
    policy = `"throttle";q=${Math.floor(throttle.burst)};w=${wholeSeconds((throttle.burst * 1000) / throttle.perSecond)}`;
    state = taken.ok
      ? `"throttle";r=${taken.left};t=${wholeSeconds(taken.resetMs)}`
      : `"throttle";r=0;t=${wholeSeconds(taken.retryAfterMs)}`;
  }
  if (rate !== null) {
    const comma = policy === '' ? '' : ', ';
    policy += `${comma}"rate";q=${rate.limit};w=${wholeSeconds(rate.periodMs)}`;
    state += `${comma}"rate";r=${Math.max(0, rate.left)};t=${wholeSeconds(rate.resetMs)}`;
  }
  if (policy === '') return;
  headers['RateLimit-Policy'] = policy;
  headers.RateLimit = state;
}

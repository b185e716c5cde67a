/**
 * HTTP requests and responses of the public listener: status, headers, bodies.
 *
 * Guarantees: all errors have the same body format. A connection whose request body was not read is closed after the response, and only
 * after the client had time to read it. During a drain every response closes its connection.
 */
import { isUtf8 } from 'node:buffer';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../clock.ts';
import type { RemainingLimits } from '../model/message.ts';
import { REQUEST_FIELDS } from '../model/submission.ts';
import type { BodyRefusal } from './capacity.ts';
import { type ErrorCode, errorBody, errorEntry } from './errors.ts';
import type { ThrottleLimit, ThrottleResult } from './throttle.ts';

/** `{"result":{"id":"` + 36 characters + `"}}`. */
const CREATED_BYTES = 56;

export class ResponseWriter {
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

  /** Adds `Connection: close` to every response from now on. */
  startDraining(): void {
    this.#draining = true;
  }

  /** Sends a 201 with the id; modifies `headers`. */
  created(res: ServerResponse, id: string, headers: ResponseHeaders): void {
    headers['Content-Type'] = 'application/json';
    headers['Content-Length'] = CREATED_BYTES;
    if (this.#draining) headers.Connection = 'close';
    res.writeHead(201, headers);
    // With `latin1`, Node sends the body together with the head.
    res.end(`{"result":{"id":"${id}"}}`, 'latin1');
  }

  /** Sends the 200 of a health check. */
  ok(res: ServerResponse, message: string): void {
    const body = JSON.stringify({ result: 'ok', message });
    const headers: ResponseHeaders = {
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(body),
      'Cache-Control': 'no-store',
    };
    if (this.#draining) headers.Connection = 'close';
    res.writeHead(200, headers);
    res.end(body);
  }

  /** Sends an error of the registry; modifies `headers`. */
  error(
    req: IncomingMessage,
    res: ServerResponse,
    code: ErrorCode,
    detail: string | null,
    headers: ResponseHeaders,
  ): void {
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
   * Discards what the client still sends, within limits, and then closes. Closing with unread bytes would reset the connection, and the
   * client would lose the response (RFC 9112 section 9.6).
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

// Functions on request headers that node:http does not provide. All take linear time.

/** How often the header `name` (lower case) was sent; `rawHeaders` alternates names and values. */
export function countHeader(rawHeaders: readonly string[], name: string): number {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const candidate = rawHeaders[i];
    if (candidate !== undefined && candidate.length === name.length && candidate.toLowerCase() === name) count += 1;
  }
  return count;
}

/** True if the header `name` (lower case) was sent more than once. */
export function isHeaderRepeated(rawHeaders: readonly string[], name: string): boolean {
  return countHeader(rawHeaders, name) > 1;
}

const JSON_TYPE = 'application/json';

/** True for `application/json`, any case, with or without parameters (RFC 9110 section 8.3.1). */
export function isJsonType(value: string | undefined): boolean {
  if (value === undefined) return false;
  if (value === JSON_TYPE) return true;
  const end = value.indexOf(';');
  const type = end < 0 ? value : value.slice(0, end);
  // A longer value cannot match and is not converted.
  return type.length < 64 && type.trim().toLowerCase() === JSON_TYPE;
}

/** The path of a request target in origin or absolute form (RFC 9112 section 3.2), the query left out. */
export function pathOf(target: string): string {
  const origin = toOriginForm(target);
  const query = origin.indexOf('?');
  return query < 0 ? origin : origin.slice(0, query);
}

/** The origin form of a target; `http://host/path` becomes `/path`, as a server must accept it (section 3.2.2). */
export function toOriginForm(target: string): string {
  if (target.charCodeAt(0) === 0x2f) return target;
  const scheme = target.indexOf('://');
  if (scheme < 0) return target;
  const slash = target.indexOf('/', scheme + 3);
  return slash < 0 ? '/' : target.slice(slash);
}

// The headers with the limits of a client: RateLimit and RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers 10 and 11, structured
// fields) and Retry-After (RFC 9110 section 10.2.3). Whole seconds, rounded up, so a client that follows them never retries too early.

export type ResponseHeaders = Record<string, string | number>;

/** Milliseconds as whole seconds, at least 1. */
export function wholeSeconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000));
}

/** Adds the RateLimit headers for the limits that are set. */
export function addRateLimitHeaders(
  headers: ResponseHeaders,
  throttle: ThrottleLimit | null,
  taken: ThrottleResult | null,
  rate: RemainingLimits['rate'],
): void {
  let policy = '';
  let state = '';
  if (throttle !== null && taken !== null) {
    // `w` is the time in which an empty bucket fills; `t` is the time until the bucket is full, or until the next token.
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

// Reads a request's body, bounded, and decodes it strictly.
//
// Guarantees: buffers at most `maxBytes`, and twice that only while the chunks of a body are joined. Bytes after a refused body are not
// kept. Invalid UTF-8 is an error and is never replaced by U+FFFD. The callback is called exactly once.

/** The bytes, or why there are none: the body is too large, a limit is reached, or the client disconnected. */
export type BodyResult = Buffer | 'body-too-large' | BodyRefusal | 'aborted';

const EMPTY = Buffer.alloc(0);

/** True if the headers announce a body (RFC 9112 section 6.3). */
function hasBody(req: IncomingMessage): boolean {
  const length = req.headers['content-length'];
  return req.headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
}

/** True if Content-Length is greater than `maxBytes`. */
export function contentLengthExceeds(req: IncomingMessage, maxBytes: number): boolean {
  const length = req.headers['content-length'];
  return length !== undefined && Number(length) > maxBytes;
}

/**
 * Reads the body of at most `bytes`; `hold` is asked for room for each part as it arrives. A body given up is not
 * paused: what still comes of it goes by.
 */
export function readBody(
  req: IncomingMessage,
  maxBytes: number,
  hold: (bytes: number) => BodyRefusal | null,
  done: (body: BodyResult) => void,
): void {
  let first: Buffer | null = null;
  let rest: Buffer[] | null = null;
  let size = 0;
  let over = false;
  const end = (body: BodyResult): void => {
    over = true;
    first = null;
    rest = null;
    done(body);
  };
  req.on('data', (chunk: Buffer) => {
    if (over) return;
    size += chunk.length;
    const fault = size > maxBytes ? 'body-too-large' : hold(chunk.length);
    if (fault !== null) end(fault);
    else if (first === null) first = chunk;
    else if (rest === null) rest = [first, chunk];
    else rest.push(chunk);
  });
  req.on('end', () => {
    if (!over) end(rest === null ? (first ?? EMPTY) : Buffer.concat(rest, size));
  });
  // Emitted only if the connection ends before the body.
  req.on('error', () => {
    if (!over) end('aborted');
  });
}

/**
 * Parses JSON (RFC 8259). Returns undefined if the bytes are not UTF-8 or not JSON. A byte order mark is not allowed (section 8.1). The
 * depth is not limited, because V8's parser does not recurse.
 */
export function parseJson(bytes: Buffer): unknown {
  if (bytes.length === 0 || !isUtf8(bytes)) return undefined;
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    return undefined;
  }
}

// Unknown members of a body. They are ignored, and a 201 names them, so a client that sends `cc` or `attachments` can detect that they
// have no effect.
//
// Guarantees: a listed name has 1 to 64 ASCII letters, digits, hyphens or underscores, so it is safe in a header. Names are in the order
// of the body, each once, at most ten. For a body with only the four fields the members are counted; any other body is scanned once, up
// to the tenth name.

export interface IgnoredFields {
  /** The number of all unknown members, also those that are not listed. */
  readonly count: number;
  readonly names: readonly string[];
}

const MAX_NAMES = 10;
const MAX_NAME_LENGTH = 64;
/** The length if every character is written as an escape of six characters. */
const MAX_WRITTEN_LENGTH = 6 * MAX_NAME_LENGTH;

const QUOTE = 0x22;
const COMMA = 0x2c;
const BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const BRACKET_END = 0x5d;
const BRACE = 0x7b;
const BRACE_END = 0x7d;

/**
 * The unknown members, or null if there are none. `bytes` is a JSON object in UTF-8 and `body` is its parsed value, which has the four
 * fields.
 */
export function ignoredFields(bytes: Buffer, body: object): IgnoredFields | null {
  const count = Object.keys(body).length - REQUEST_FIELDS.length;
  return count === 0 ? null : { count, names: namesIn(bytes) };
}

/** Names in the order of the text. The parsed object has another order: numeric names come first. */
function namesIn(bytes: Buffer): readonly string[] {
  const names = new Set<string>();
  let depth = 0;
  let nameNext = false;
  for (let at = 0; at < bytes.length && names.size < MAX_NAMES; at += 1) {
    switch (bytes[at]) {
      case QUOTE: {
        const end = endOfString(bytes, at + 1);
        if (nameNext) {
          const name = nameOf(bytes, at + 1, end);
          if (name !== null) names.add(name);
          nameNext = false;
        }
        at = end;
        break;
      }
      case COMMA:
        nameNext = depth === 1;
        break;
      case BRACE:
      case BRACKET:
        depth += 1;
        nameNext = depth === 1;
        break;
      case BRACE_END:
      case BRACKET_END:
        depth -= 1;
        break;
    }
  }
  return [...names];
}

/** The position of the quotation mark that ends the string that begins at `from`. */
function endOfString(bytes: Buffer, from: number): number {
  let at = from;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return at;
}

/** Returns the name between two quotation marks. Null if it is a field of the request, or if a header must not contain it. */
function nameOf(bytes: Buffer, from: number, end: number): string | null {
  if (end - from > MAX_WRITTEN_LENGTH) return null;
  // Bytes outside ASCII become characters that are not permitted in a name.
  const written = bytes.toString('latin1', from, end);
  const name: unknown = written.includes('\\') ? JSON.parse(`"${written}"`) : written;
  if (typeof name !== 'string' || !isPermitted(name)) return null;
  return REQUEST_FIELDS.some((field) => field === name) ? null : name;
}

function isPermitted(name: string): boolean {
  if (name.length === 0 || name.length > MAX_NAME_LENGTH) return false;
  for (let i = 0; i < name.length; i += 1) {
    const c = name.charCodeAt(i);
    const letter = (c | 0x20) >= 0x61 && (c | 0x20) <= 0x7a;
    if (!letter && !(c >= 0x30 && c <= 0x39) && c !== 0x2d && c !== 0x5f) return false;
  }
  return true;
}

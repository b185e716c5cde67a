/**
 * Reads a request's body, bounded, and decodes it strictly.
 *
 * Promises: holds `maxBytes` at most, and twice that only while the parts of a body are joined; what comes after a body
 * was given up is not kept; invalid UTF-8 is an error and never U+FFFD; calls back exactly once.
 */
import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import type { Shed } from './shed.ts';

/** The bytes, or why there are none: too many of them, no room for them, or the client went away. */
export type Body = Buffer | 'body-too-large' | Shed | 'aborted';

const EMPTY = Buffer.alloc(0);

/** True where the headers announce a body (RFC 9112 section 6.3). */
export function hasBody(req: IncomingMessage): boolean {
  const length = req.headers['content-length'];
  return req.headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
}

/** True where Content-Length alone shows that the body is too large. */
export function announcesMoreThan(req: IncomingMessage, maxBytes: number): boolean {
  const length = req.headers['content-length'];
  return length !== undefined && Number(length) > maxBytes;
}

/**
 * Reads the body of at most `maxBytes`; `hold` is asked for room for each part as it arrives. A body given up is not
 * paused: what still comes of it goes by.
 */
export function readBody(
  req: IncomingMessage,
  maxBytes: number,
  hold: (bytes: number) => Shed | null,
  done: (body: Body) => void,
): void {
  let first: Buffer | null = null;
  let rest: Buffer[] | null = null;
  let size = 0;
  let over = false;
  const end = (body: Body): void => {
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
  // Emitted only where the connection ends before the body does.
  req.on('error', () => {
    if (!over) end('aborted');
  });
}

/**
 * The JSON value (RFC 8259), or undefined where the bytes are no UTF-8 or no JSON. A byte order mark is no JSON
 * (section 8.1). Any depth: V8's parser keeps its own stack.
 */
export function parseJson(bytes: Buffer): unknown {
  if (bytes.length === 0 || !isUtf8(bytes)) return undefined;
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    return undefined;
  }
}

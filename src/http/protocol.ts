/** The headers and bodies of requests and responses of the public listener. Each function takes linear time. */
import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import type { RemainingLimits } from '../model/message.ts';
import { REQUEST_FIELDS } from '../model/submission.ts';
import type { ThrottleLimit, ThrottleResult } from './throttle.ts';

/**
 * Returns the number of headers with the name `name`, which the caller passes in lower case. `rawHeaders` contains
 * names and values alternately.
 */
export function countHeader(rawHeaders: readonly string[], name: string): number {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const candidate = rawHeaders[i];
    if (candidate !== undefined && candidate.length === name.length && candidate.toLowerCase() === name) count += 1;
  }
  return count;
}

/** Returns true if the request has more than one header with the name `name`, which the caller passes in lower case. */
export function isHeaderRepeated(rawHeaders: readonly string[], name: string): boolean {
  return countHeader(rawHeaders, name) > 1;
}

const JSON_TYPE = 'application/json';

/**
 * Returns true for `application/json`, in upper or lower case, with or without parameters (RFC 9110 section 8.3.1).
 */
export function isJsonType(value: string | undefined): boolean {
  if (value === undefined) return false;
  if (value === JSON_TYPE) return true;
  const typeEnd = value.indexOf(';');
  const type = typeEnd < 0 ? value : value.slice(0, typeEnd);
  // A type of 64 characters or more is refused without a conversion to lower case.
  return type.length < 64 && type.trim().toLowerCase() === JSON_TYPE;
}

/**
 * Returns the decoded path of a request target in origin form (RFC 9112 section 3.2.1), without the query. A path that
 * cannot be decoded is returned unchanged.
 */
export function getPath(target: string): string {
  const [targetWithoutQuery = ''] = target.split('?', 1);
  const [path = ''] = targetWithoutQuery.split('#', 1);
  if (!path.includes('%')) return path;
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}

/**
 * Converts a target to origin form: `http://host/path` becomes `/path`. A server must also accept the absolute form
 * (RFC 9112 section 3.2.2).
 */
export function toOriginForm(target: string): string {
  if (target.charCodeAt(0) === 0x2f) return target;
  const schemeEnd = target.indexOf('://');
  if (schemeEnd < 0) return target;
  const slashIndex = target.indexOf('/', schemeEnd + 3);
  return slashIndex < 0 ? '/' : target.slice(slashIndex);
}

// Writes the headers for limits: RateLimit and RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers-10 and -11,
// structured fields), and Retry-After (RFC 9110 section 10.2.3). Times are whole seconds, rounded up, so that a client
// that uses these times never retries too early.

export type ResponseHeaders = Record<string, string | number>;

/** Converts milliseconds to whole seconds, rounded up. The minimum is 1. */
export function toWholeSeconds(durationMs: number): number {
  return Math.max(1, Math.ceil(durationMs / 1000));
}

/** Adds the RateLimit headers for the configured limits. */
export function addRateLimitHeaders(
  headers: ResponseHeaders,
  throttle: ThrottleLimit | null,
  throttleResult: ThrottleResult | null,
  rate: RemainingLimits['rate'],
): void {
  let policy = '';
  let remainingText = '';
  if (throttle !== null && throttleResult !== null) {
    // The parameter `w` is the time in which an empty bucket fills. The parameter `t` is the time until the bucket is
    // full, or, for a refusal, until the next token.
    policy = `"throttle";q=${Math.floor(throttle.burst)};w=${toWholeSeconds((throttle.burst * 1000) / throttle.perSecond)}`;
    remainingText = throttleResult.ok
      ? `"throttle";r=${throttleResult.remaining};t=${toWholeSeconds(throttleResult.resetMs)}`
      : `"throttle";r=0;t=${toWholeSeconds(throttleResult.retryAfterMs)}`;
  }
  if (rate !== null) {
    const separator = policy === '' ? '' : ', ';
    policy += `${separator}"rate";q=${rate.limit};w=${toWholeSeconds(rate.periodMs)}`;
    remainingText += `${separator}"rate";r=${Math.max(0, rate.remaining)};t=${toWholeSeconds(rate.resetMs)}`;
  }
  if (policy === '') return;
  headers['RateLimit-Policy'] = policy;
  headers.RateLimit = remainingText;
}

/**
 * Parses JSON (RFC 8259). Returns undefined if the bytes are not UTF-8 or not JSON. A byte order mark is an error
 * (section 8.1). The nesting depth is not limited, because the parser of V8 does not recurse.
 */
export function parseJson(bytes: Buffer): unknown {
  if (bytes.length === 0 || !isUtf8(bytes)) return undefined;
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    return undefined;
  }
}

// Finds the unknown members of a body, which are ignored. A response with status 201 lists the unknown members, so that
// a client that sends `cc` or `attachments` can detect that these members have no effect.
//
// Guarantees: a listed name has 1 to 64 ASCII letters, digits, hyphens or underscores, so that the name is safe in a
// header. At most ten names are listed, in the order of the body and without duplicates. If a body has only the four
// fields of a request, its text is not scanned. Any other body is scanned once, up to the tenth listed name.

export interface IgnoredFields {
  /** The number of unknown members, including members that are not listed. */
  readonly count: number;
  readonly names: readonly string[];
}

const MAX_NAMES = 10;
const MAX_NAME_LENGTH = 64;
/**
 * The maximum length of a listed name in the body, where each character can be an escape sequence of six characters.
 */
const MAX_ESCAPED_LENGTH = 6 * MAX_NAME_LENGTH;

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/**
 * Returns the unknown members, or null if the body has no unknown members. `bytes` is a JSON object in UTF-8. `body` is
 * the parsed object, which must have the four fields of a request.
 */
export function findIgnoredFields(bytes: Buffer, body: object): IgnoredFields | null {
  const count = Object.keys(body).length - REQUEST_FIELDS.length;
  return count === 0 ? null : { count, names: readNames(bytes) };
}

/**
 * Returns the names of the unknown members in the order of the JSON text. In the parsed object, numeric names would
 * precede all other names.
 */
function readNames(bytes: Buffer): readonly string[] {
  const names = new Set<string>();
  let depth = 0;
  let isNameExpected = false;
  for (let index = 0; index < bytes.length && names.size < MAX_NAMES; index += 1) {
    switch (bytes[index]) {
      case QUOTE: {
        const nameEnd = findStringEnd(bytes, index + 1);
        if (isNameExpected) {
          const name = parseName(bytes, index + 1, nameEnd);
          if (name !== null) names.add(name);
          isNameExpected = false;
        }
        index = nameEnd;
        break;
      }
      case COMMA:
        isNameExpected = depth === 1;
        break;
      case OPEN_BRACE:
      case OPEN_BRACKET:
        depth += 1;
        isNameExpected = depth === 1;
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        depth -= 1;
        break;
    }
  }
  return [...names];
}

/** Returns the index of the closing quotation mark of the string that begins at `start`. */
function findStringEnd(bytes: Buffer, start: number): number {
  let index = start;
  while (index < bytes.length && bytes[index] !== QUOTE) index += bytes[index] === BACKSLASH ? 2 : 1;
  return index;
}

/**
 * Returns the name between two quotation marks. Returns null for a field of the request and for a name that a header
 * must not contain.
 */
function parseName(bytes: Buffer, start: number, end: number): string | null {
  if (end - start > MAX_ESCAPED_LENGTH) return null;
  // Bytes outside ASCII become characters that `isAllowedInHeader` refuses.
  const escapedName = bytes.toString('latin1', start, end);
  const name: unknown = escapedName.includes('\\') ? JSON.parse(`"${escapedName}"`) : escapedName;
  if (typeof name !== 'string' || !isAllowedInHeader(name)) return null;
  return REQUEST_FIELDS.some((field) => field === name) ? null : name;
}

function isAllowedInHeader(name: string): boolean {
  if (name.length === 0 || name.length > MAX_NAME_LENGTH) return false;
  for (let i = 0; i < name.length; i += 1) {
    const codeUnit = name.charCodeAt(i);
    const isLetter = (codeUnit | 0x20) >= 0x61 && (codeUnit | 0x20) <= 0x7a;
    if (!isLetter && !(codeUnit >= 0x30 && codeUnit <= 0x39) && codeUnit !== 0x2d && codeUnit !== 0x5f) return false;
  }
  return true;
}

/**
 * Returns true for Transfer-Encoding in HTTP/1.0, whose framing is faulty (RFC 9112 section 6.1): a proxy that does not
 * know the field takes the body for the next request. Node accepts it. Node alone limits chunk extensions, to 16 KiB
 * for each chunk; a lower limit would need a parser of our own.
 */
export function hasFaultyFraming({ httpVersionMinor, headers }: Pick<IncomingMessage, 'httpVersionMinor' | 'headers'>) {
  return httpVersionMinor === 0 && headers['transfer-encoding'] !== undefined;
}

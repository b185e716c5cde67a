import { isUtf8 } from 'node:buffer';
import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { RemainingLimits } from '../model/message.ts';
import { REQUEST_FIELDS } from '../model/submission.ts';
import { findTextEnd } from '../providers/json.ts';
import type { ThrottleLimit, ThrottleResult } from './throttle.ts';

export function countHeader(rawHeaders: readonly string[], name: string): number {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const candidate = rawHeaders[i];
    if (candidate !== undefined && candidate.length === name.length && candidate.toLowerCase() === name) count += 1;
  }
  return count;
}

const JSON_TYPE = 'application/json';

/** RFC 9110 section 8.3.1. */
export function isJsonType(value: string | undefined): boolean {
  if (value === undefined) return false;
  if (value === JSON_TYPE) return true;
  const typeEnd = value.indexOf(';');
  const type = typeEnd < 0 ? value : value.slice(0, typeEnd);
  // A type of 64 characters or more is refused without a conversion to lower case.
  return type.length < 64 && type.trim().toLowerCase() === JSON_TYPE;
}

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

/** `http://host/path` becomes `/path`. A server must also accept the absolute form (RFC 9112 section 3.2.2). */
export function toOriginForm(target: string): string {
  if (target.charCodeAt(0) === 0x2f) return target;
  const schemeEnd = target.indexOf('://');
  if (schemeEnd < 0) return target;
  const slashIndex = target.indexOf('/', schemeEnd + 3);
  return slashIndex < 0 ? '/' : target.slice(slashIndex);
}

export type ResponseHeaders = Record<string, string | number>;

/** Rounds up, so that a client that waits for this time never retries too early. The minimum is 1. */
export function toWholeSeconds(durationMs: number): number {
  return Math.max(1, Math.ceil(durationMs / 1000));
}

/** draft-ietf-httpapi-ratelimit-headers-10 and -11. `w` is the time in which an empty bucket fills. */
export function createRateLimitHeaders(
  throttle: ThrottleLimit | null,
  throttleResult: ThrottleResult | null,
  rate: RemainingLimits['rate'],
): ResponseHeaders {
  const policies: string[] = [];
  const limits: string[] = [];
  if (throttle !== null && throttleResult !== null) {
    const [remaining, resetMs] = throttleResult.ok
      ? [throttleResult.remaining, throttleResult.resetMs]
      : [0, throttleResult.retryAfterMs];
    const fillMs = (throttle.burst * 1000) / throttle.perSecond;
    policies.push(`"throttle";q=${Math.floor(throttle.burst)};w=${toWholeSeconds(fillMs)}`);
    limits.push(`"throttle";r=${remaining};t=${toWholeSeconds(resetMs)}`);
  }
  if (rate !== null) {
    policies.push(`"rate";q=${rate.limit};w=${toWholeSeconds(rate.periodMs)}`);
    limits.push(`"rate";r=${Math.max(0, rate.remaining)};t=${toWholeSeconds(rate.resetMs)}`);
  }
  return policies.length === 0 ? {} : { 'RateLimit-Policy': policies.join(', '), RateLimit: limits.join(', ') };
}

const MAX_IDEMPOTENCY_KEY_LENGTH = 255;

/** draft-ietf-httpapi-idempotency-key-header-07. The space of joined repetitions makes the value invalid. */
export function isIdempotencyKey(value: string): boolean {
  if (value.length === 0 || value.length > MAX_IDEMPOTENCY_KEY_LENGTH) return false;
  for (let i = 0; i < value.length; i += 1) {
    const codeUnit = value.charCodeAt(i);
    if (codeUnit < 0x21 || codeUnit > 0x7e) return false;
  }
  return true;
}

/** Each field is preceded by its length, so that different payloads differ. */
export function computeFingerprint(fields: Readonly<Record<(typeof REQUEST_FIELDS)[number], string>>): string {
  const { to, from, subject, message } = fields;
  const hashInput = `${to.length}:${to}${from.length}:${from}${subject.length}:${subject}${message.length}:${message}`;
  return hash('sha256', hashInput, 'hex');
}

/** Undefined if not UTF-8 or not JSON. A byte order mark is an error (RFC 8259 section 8.1). */
export function parseJson(bytes: Buffer): unknown {
  if (bytes.length === 0 || !isUtf8(bytes)) return undefined;
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    return undefined;
  }
}

// So that a client that sends `cc` or `attachments` can detect that they have no effect.

export interface IgnoredFields {
  readonly count: number;
  readonly names: readonly string[];
}

const MAX_NAMES = 10;
const MAX_NAME_LENGTH = 64;
/** In the body, each character can be an escape sequence of six characters. */
const MAX_ESCAPED_LENGTH = 6 * MAX_NAME_LENGTH;

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

export function findIgnoredFields(bytes: Buffer, body: object): IgnoredFields | null {
  const count = Object.keys(body).length - REQUEST_FIELDS.length;
  return count === 0 ? null : { count, names: readNames(bytes) };
}

/** Reads the JSON text, because numeric names precede all other names in the parsed object. */
function readNames(bytes: Buffer): readonly string[] {
  const names = new Set<string>();
  let depth = 0;
  let isNameExpected = false;
  for (let index = 0; index < bytes.length && names.size < MAX_NAMES; index += 1) {
    switch (bytes[index]) {
      case QUOTE: {
        const nameEnd = findTextEnd(bytes, index + 1);
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

/** RFC 9112 section 6.1. Node accepts it; an older proxy would take the body for the next request. */
export function hasFaultyFraming({ httpVersionMinor, headers }: Pick<IncomingMessage, 'httpVersionMinor' | 'headers'>) {
  return httpVersionMinor === 0 && headers['transfer-encoding'] !== undefined;
}

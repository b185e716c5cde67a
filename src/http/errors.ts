/**
 * The error registry of the public listener: code, status and text of every error response. Tests check that docs/errors.md and
 * openapi.json are equal to it.
 *
 * Guarantees: a body has exactly the members `result` and `message`; constant bodies are built once.
 */
import type { ForbiddenReason, ValidationFault } from '../model/submission.ts';

export interface ErrorEntry {
  readonly status: number;
  /** The text; `…` is the part that depends on the request. */
  readonly message: string;
  /** Headers of this response, besides content type and length. */
  readonly headers: readonly string[];
  /** The condition, as docs/errors.md prints it. */
  readonly when: string;
  /** An example of the part `…`. */
  readonly example?: string;
}

const FORBIDDEN_MESSAGE = 'Invalid tokens or rate limit exceeded';
const REASON_HEADER = 'Postrider-Reason';
const RATE_LIMIT_HEADERS = ['RateLimit', 'RateLimit-Policy'];

export const ERRORS = {
  'malformed-request': {
    status: 400,
    message: 'Malformed HTTP request',
    headers: [],
    when: 'the bytes are no HTTP/1.1 request; the connection is closed',
  },
  'invalid-host': {
    status: 400,
    message: 'Exactly one Host header is required',
    headers: [],
    when: 'an HTTP/1.1 request has no Host header, or any request has several',
  },
  'invalid-content-type': {
    status: 400,
    message: 'Content-Type must be application/json',
    headers: [],
    when: 'Content-Type is absent or names another type; parameters are allowed',
  },
  'invalid-content-encoding': {
    status: 400,
    message: 'Content-Encoding must be identity',
    headers: [],
    when: 'the body is compressed',
  },
  'body-too-large': {
    status: 400,
    message: 'Request body too large',
    headers: [],
    when: 'the body has more bytes than POSTRIDER_MAX_REQUEST (1 MiB unless set)',
  },
  'invalid-json': {
    status: 400,
    message: 'Invalid JSON payload',
    headers: [],
    when: 'the body is empty, is not UTF-8, is not JSON, or is JSON but no object',
  },
  'missing-fields': {
    status: 400,
    message: 'Missing required fields: …',
    headers: [],
    when: 'fields are absent, null or empty; in the order to, from, subject, message',
    example: 'to, subject',
  },
  'not-strings': {
    status: 400,
    message: 'Fields must be strings: …',
    headers: [],
    when: 'fields are numbers, booleans, lists or objects',
    example: 'subject',
  },
  'invalid-address': {
    status: 400,
    message: 'Invalid email address: …',
    headers: [],
    when: '`to` or `from` is no bare address such as name@example.com, or has a NUL',
    example: 'to',
  },
  'invalid-field': {
    status: 400,
    message: 'Invalid …',
    headers: [],
    when: 'a field has a lone surrogate, subject or message a NUL, or the subject a line break, another control character than a tab, or over 998 bytes; the text names both',
    example: 'subject: line breaks are not allowed',
  },
  'invalid-idempotency-key': {
    status: 400,
    message: 'Invalid Idempotency-Key: 1 to 255 visible ASCII characters, given once',
    headers: [],
    when: 'Idempotency-Key is empty, too long, repeated, or has other characters',
  },
  'idempotency-key-reused': {
    status: 400,
    message: 'Idempotency-Key was already used with another payload',
    headers: RATE_LIMIT_HEADERS,
    when: 'the account used the key within 24 hours with other fields',
  },
  'invalid-key': {
    status: 401,
    message: 'Invalid API key',
    headers: [],
    when: 'Authorization is absent, empty, repeated, has a scheme word, or names an unknown, revoked or expired key',
  },
  'account-locked': {
    status: 401,
    message: 'Account locked',
    headers: [],
    when: 'the operator has locked the account of the key',
  },
  'sender-not-authenticated': {
    status: 403,
    message: FORBIDDEN_MESSAGE,
    headers: [REASON_HEADER],
    when: 'the domain of `from` is not authenticated for the account',
  },
  'volume-exhausted': {
    status: 403,
    message: FORBIDDEN_MESSAGE,
    headers: [REASON_HEADER, ...RATE_LIMIT_HEADERS],
    when: 'the account has used up its volume',
  },
  'volume-expired': {
    status: 403,
    message: FORBIDDEN_MESSAGE,
    headers: [REASON_HEADER, ...RATE_LIMIT_HEADERS],
    when: 'the volume of the account has passed its expiry date',
  },
  'rate-limit-exceeded': {
    status: 403,
    message: FORBIDDEN_MESSAGE,
    headers: [REASON_HEADER, 'Retry-After', ...RATE_LIMIT_HEADERS],
    when: 'the account has used up its rate limit for this period',
  },
  'not-found': { status: 404, message: 'Not found', headers: [], when: 'no such path' },
  'method-not-allowed': {
    status: 405,
    message: 'Method not allowed',
    headers: ['Allow'],
    when: 'the path exists for other methods, which Allow lists',
  },
  'request-timeout': {
    status: 408,
    message: 'Request timeout',
    headers: [],
    when: 'the headers took longer than 10 s or the whole request longer than 30 s; the connection is closed',
  },
  'expectation-failed': {
    status: 417,
    message: 'Expectation failed',
    headers: [],
    when: 'Expect asks for something other than 100-continue',
  },
  throttled: {
    status: 429,
    message: 'Too many requests',
    headers: ['Retry-After', ...RATE_LIMIT_HEADERS],
    when: 'the account sends faster than its throttle',
  },
  overloaded: {
    status: 429,
    message: 'Too many requests',
    headers: ['Retry-After'],
    when: 'the server sheds load before its latency collapses',
  },
  'too-many-bodies': {
    status: 429,
    message: 'Too many requests',
    headers: ['Retry-After'],
    when: 'the account has 200 requests whose bodies are still arriving, or its requests hold 128 MiB not yet answered',
  },
  'headers-too-large': {
    status: 431,
    message: 'Request header fields too large',
    headers: [],
    when: 'request line and headers have more than 16 KiB; the connection is closed',
  },
  'internal-error': {
    status: 500,
    message: 'Internal server error',
    headers: [],
    when: 'a fault of the server; nothing is known to be stored',
  },
  'not-committed': {
    status: 500,
    message: 'Internal server error',
    headers: ['Retry-After', ...RATE_LIMIT_HEADERS],
    when: 'the store could not commit the mail request',
  },
  'not-ready': {
    status: 503,
    message: 'Not ready: …',
    headers: [],
    when: '/readyz while the node drains or its store cannot commit',
    example: 'draining',
  },
} as const satisfies Readonly<Record<string, ErrorEntry>> &
  // The type checks that every reason for a refusal has an entry.
  Readonly<Record<ForbiddenReason | ValidationFault['code'], ErrorEntry>>;

export type ErrorCode = keyof typeof ERRORS;

export const ERROR_CODES = Object.keys(ERRORS) as readonly ErrorCode[];

/** The entry of a code, with the members that only some entries have. */
export function errorEntry(code: ErrorCode): ErrorEntry {
  return ERRORS[code];
}

/** The text of an error; `detail` replaces `…`. */
export function errorMessage(code: ErrorCode, detail: string | null = null): string {
  const { message } = errorEntry(code);
  const index = message.indexOf('…');
  return index < 0 ? message : message.slice(0, index) + (detail ?? '') + message.slice(index + 1);
}

const CONSTANT_BODIES: ReadonlyMap<ErrorCode, Buffer> = new Map(
  ERROR_CODES.filter((code) => !errorEntry(code).message.includes('…')).map((code) => [
    code,
    encodeError(errorMessage(code)),
  ]),
);

/** The JSON body of an error, as bytes. */
export function errorBody(code: ErrorCode, detail: string | null = null): Buffer {
  return CONSTANT_BODIES.get(code) ?? encodeError(errorMessage(code, detail));
}

function encodeError(message: string): Buffer {
  return Buffer.from(JSON.stringify({ result: 'error', message }));
}

/** The text that replaces `…` for a fault found by `validateSubmission`. */
export function refusalDetail(refusal: ValidationFault): string | null {
  switch (refusal.code) {
    case 'invalid-json':
      return null;
    case 'invalid-field':
      return `${refusal.field}: ${refusal.fault}`;
    case 'missing-fields':
    case 'not-strings':
    case 'invalid-address':
      return refusal.fields.join(', ');
  }
}

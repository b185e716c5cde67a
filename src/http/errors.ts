/** Tests check that docs/errors.md and openapi.json agree with it. */
import { SEND_MAIL_PATH } from '../model/outcome.ts';
import type { ForbiddenReason, ValidationFault } from '../model/submission.ts';
import type { IgnoredFields } from './protocol.ts';

export interface ErrorEntry {
  readonly status: number;
  readonly message: string;
  readonly headers?: readonly string[];
  readonly condition: string;
  readonly remedy: string;
  readonly example?: string;
}

const FORBIDDEN_MESSAGE = 'Invalid tokens or rate limit exceeded';
const REASON_HEADER = 'Postrider-Reason';
const RATE_LIMIT_HEADERS = ['RateLimit', 'RateLimit-Policy'];

export const ERRORS = {
  'malformed-request': {
    status: 400,
    message: 'Malformed HTTP request',
    condition: 'the received bytes are not a valid HTTP/1.0 or HTTP/1.1 request; the connection is closed',
    remedy: 'correct the HTTP client or the proxy, so that it sends HTTP/1.1',
  },
  'invalid-host': {
    status: 400,
    message: 'Exactly one Host header is required',
    condition: 'an HTTP/1.1 request has no Host header, or a request has more than one',
    remedy: 'send exactly one Host header',
  },
  'invalid-content-type': {
    status: 400,
    message: 'Content-Type must be application/json',
    condition: 'Content-Type is absent or names another type; parameters are allowed',
    remedy: 'send `Content-Type: application/json`',
  },
  'invalid-content-encoding': {
    status: 400,
    message: 'Content-Encoding must be identity',
    condition: 'the body is compressed',
    remedy: 'send the body without compression',
  },
  'body-too-large': {
    status: 400,
    message: 'Request body too large',
    condition:
      'the body is larger than POSTRIDER_MAX_REQUEST (1 MiB unless set), or its chunk extensions have more than 1 KiB',
    remedy: 'shorten the message, or ask the operator to raise POSTRIDER_MAX_REQUEST',
  },
  'invalid-json': {
    status: 400,
    message: 'Invalid JSON payload',
    condition: 'the body is empty, is not UTF-8, is not JSON, or is not a JSON object',
    remedy: 'send a JSON object in UTF-8',
  },
  'missing-fields': {
    status: 400,
    message: 'Missing required fields: …',
    condition: 'fields are absent, null or empty; the message lists them in the order to, from, subject, message',
    remedy: 'send every named field with a value that is not empty',
    example: 'to, subject',
  },
  'not-strings': {
    status: 400,
    message: 'Fields must be strings: …',
    condition: 'fields are present but are not strings',
    remedy: 'send every named field as a JSON string',
    example: 'subject',
  },
  'invalid-address': {
    status: 400,
    message: 'Invalid email address: …',
    condition:
      '`to` or `from` is not a bare address such as name@example.com, or contains NUL, or the quoted local part of `from` contains `@`, `<`, `>`, `,` or `=?`',
    remedy: 'send a bare address without a display name',
    example: 'to',
  },
  'invalid-field': {
    status: 400,
    message: 'Invalid …',
    condition:
      'a field contains an unpaired surrogate; subject or message contains NUL; or the subject contains a line break or another control character except tab, or has more than 998 bytes; the message names the field and the fault',
    remedy: 'correct the named field',
    example: 'subject: line breaks are not allowed',
  },
  'unknown-fields': {
    status: 400,
    message: 'Unknown fields: …',
    condition: 'the body has other members than to, from, subject and message, and the account refuses them',
    remedy: 'remove the named members',
    example: 'cc, html',
  },
  'invalid-idempotency-key': {
    status: 400,
    message: 'Invalid Idempotency-Key: must be 1 to 255 visible ASCII characters, in one header',
    condition: 'Idempotency-Key is empty, too long, repeated, or contains other characters',
    remedy: 'send one key of 1 to 255 visible ASCII characters, or omit the header',
  },
  'idempotency-key-reused': {
    status: 400,
    message: 'Idempotency-Key was already used with another payload',
    headers: RATE_LIMIT_HEADERS,
    condition: 'the account used the Idempotency-Key with other fields in the last 24 hours',
    remedy: 'send another key, or repeat the fields of the first request',
  },
  'invalid-key': {
    status: 401,
    message: 'Invalid API key',
    condition:
      'Authorization is absent, empty or repeated, has a scheme word, or has an unknown, revoked or expired key',
    remedy: 'send a valid key as the value of Authorization, without a scheme word',
  },
  'account-locked': {
    status: 401,
    message: 'Account locked',
    condition: 'the account of the key is locked',
    remedy: 'ask the operator to unlock the account',
  },
  'sender-not-authenticated': {
    status: 403,
    message: FORBIDDEN_MESSAGE,
    headers: [REASON_HEADER],
    condition: 'the domain of `from` is not authenticated for the account',
    remedy: 'ask the operator to add and verify the domain of `from`',
  },
  'volume-exhausted': {
    status: 403,
    message: FORBIDDEN_MESSAGE,
    headers: [REASON_HEADER, ...RATE_LIMIT_HEADERS],
    condition: 'the volume of the account is used up',
    remedy: 'ask the operator to set a new volume for the account',
  },
  'volume-expired': {
    status: 403,
    message: FORBIDDEN_MESSAGE,
    headers: [REASON_HEADER, ...RATE_LIMIT_HEADERS],
    condition: 'the volume of the account has expired',
    remedy: 'ask the operator to set a new volume for the account',
  },
  'rate-limit-exceeded': {
    status: 403,
    message: FORBIDDEN_MESSAGE,
    headers: [REASON_HEADER, 'Retry-After', ...RATE_LIMIT_HEADERS],
    condition: 'the account has reached its rate limit for this period',
    remedy: 'repeat the request after Retry-After seconds',
  },
  'not-found': {
    status: 404,
    message: 'Not found',
    condition: 'the path does not exist',
    remedy: `send the request to \`${SEND_MAIL_PATH}\``,
  },
  'method-not-allowed': {
    status: 405,
    message: 'Method not allowed',
    headers: ['Allow'],
    condition: 'the path does not support the method; Allow lists the supported methods',
    remedy: 'use a method that Allow lists',
  },
  'request-timeout': {
    status: 408,
    message: 'Request timeout',
    condition: 'the headers took longer than 10 s, or the complete request longer than 30 s; the connection is closed',
    remedy: 'repeat the request; send the complete request within 30 s',
  },
  'expectation-failed': {
    status: 417,
    message: 'Expectation failed',
    condition: 'Expect has a value other than 100-continue',
    remedy: 'send `Expect: 100-continue`, or omit the header',
  },
  throttled: {
    status: 429,
    message: 'Too many requests',
    headers: ['Retry-After', ...RATE_LIMIT_HEADERS],
    condition: 'the account exceeds its throttle',
    remedy: 'repeat the request after Retry-After seconds',
  },
  overloaded: {
    status: 429,
    message: 'Too many requests',
    headers: ['Retry-After'],
    condition: 'the server is overloaded and sheds load, or needs the memory of a body that arrives slowly',
    remedy: 'repeat the request after Retry-After seconds',
  },
  'too-many-bodies': {
    status: 429,
    message: 'Too many requests',
    headers: ['Retry-After'],
    condition:
      'the account has 200 requests whose bodies have not arrived completely, or the bodies of its unanswered requests have 128 MiB in total',
    remedy: 'send fewer requests at the same time; repeat the request after Retry-After seconds',
  },
  'headers-too-large': {
    status: 431,
    message: 'Request header fields too large',
    condition: 'the request line and headers have more than 16 KiB; the connection is closed',
    remedy: 'shorten the headers',
  },
  'internal-error': {
    status: 500,
    message: 'Internal server error',
    condition: 'an internal error occurred, such as a failed lookup of the key; the mail request is not stored',
    remedy: 'repeat the request; if the error persists, ask the operator to read the log',
  },
  'not-committed': {
    status: 500,
    message: 'Internal server error',
    headers: ['Retry-After', ...RATE_LIMIT_HEADERS],
    condition: 'the store did not confirm the commit; the mail request may be stored',
    remedy: 'repeat the request after Retry-After seconds with the same Idempotency-Key',
  },
  'not-ready': {
    status: 503,
    message: 'Not ready: …',
    condition: '/readyz: the node drains, or its store cannot commit',
    remedy: 'wait until the check succeeds; send requests to another node',
    example: 'draining',
  },
} as const satisfies Readonly<Record<string, ErrorEntry>> &
  Readonly<Record<ForbiddenReason | ValidationFault['code'], ErrorEntry>>;

export type ErrorCode = keyof typeof ERRORS;

export const ERROR_CODES = Object.keys(ERRORS) as readonly ErrorCode[];

export function getErrorEntry(code: ErrorCode): ErrorEntry {
  return ERRORS[code];
}

export function formatErrorMessage(code: ErrorCode, detail: string | null = null): string {
  const { message } = getErrorEntry(code);
  const index = message.indexOf('…');
  return index < 0 ? message : message.slice(0, index) + (detail ?? '') + message.slice(index + 1);
}

const CONSTANT_BODIES: ReadonlyMap<ErrorCode, Buffer> = new Map(
  ERROR_CODES.filter((code) => !getErrorEntry(code).message.includes('…')).map((code) => [
    code,
    encodeErrorBody(formatErrorMessage(code)),
  ]),
);

export function createErrorBody(code: ErrorCode, detail: string | null = null): Buffer {
  return CONSTANT_BODIES.get(code) ?? encodeErrorBody(formatErrorMessage(code, detail));
}

function encodeErrorBody(message: string): Buffer {
  return Buffer.from(JSON.stringify({ result: 'error', message }));
}

export function getRefusalDetail(refusal: ValidationFault): string | null {
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

/** A name that no header field can contain is not shown. */
export function formatUnknownFields({ count, names }: IgnoredFields): string {
  return names.length === 0 ? `${count} with other characters than A-Z, a-z, 0-9, _ and -` : names.join(', ');
}

export function createErrorAnswer(
  code: ErrorCode,
  detail: string | null = null,
  headers: Readonly<Record<string, string | number>> = {},
) {
  return {
    status: getErrorEntry(code).status,
    headers: { ...headers, 'Content-Type': 'application/json' },
    body: createErrorBody(code, detail),
  };
}

import type { FastifyReply } from 'fastify';
import type { Answer } from '../http/server.ts';
import type { ErrorBody } from './schemas.ts';

export interface Refusal {
  readonly kind: 'refused';
  readonly status: number;
  readonly message: string;
  readonly retryAfterMs?: number;
}

const CONTENT_SECURITY_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/** A page of the dashboard has its own content security policy. */
export const SECURITY_HEADERS = {
  'Content-Security-Policy': CONTENT_SECURITY_POLICY,
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cache-Control': 'no-store',
} as const;
export const JSON_TYPE = 'application/json; charset=utf-8';

export const STORE_RETRY_MS = 5_000;

export const CROSS_ORIGIN_CHANGE: Refusal = {
  kind: 'refused',
  status: 403,
  message: 'The header Origin names another origin; make changes from a page of this listener',
};

/** Such credentials are not checked, so they are not counted as failed attempts. */
export const CROSS_ORIGIN_CREDENTIALS: Refusal = {
  kind: 'refused',
  status: 403,
  message: 'Credentials from a page of another origin are not accepted; open this address directly',
};

/** Throws any error other than a StoreError. */
export function toStoreRefusal(error: unknown): Refusal {
  if (!(error instanceof Error && error.name === 'StoreError')) throw error;
  const message = 'The store does not respond; retry later, or run `postrider doctor`';
  return { kind: 'refused', status: 503, message };
}

type RefusalInput = Omit<Refusal, 'kind'> & Partial<Pick<Refusal, 'kind'>>;

/** The error codes of operations are in operations/errors.ts. */
const ERROR_CODE_BY_STATUS: Readonly<Record<number, string>> = {
  400: 'invalid',
  401: 'unauthenticated',
  403: 'forbidden',
  404: 'not-found',
  405: 'method-not-allowed',
  408: 'timeout',
  409: 'conflict',
  413: 'too-large',
  415: 'unsupported-media-type',
  417: 'expectation-failed',
  429: 'rate-limited',
  431: 'too-large',
  503: 'unavailable',
};

export function getStatusErrorCode(status: number): string {
  return ERROR_CODE_BY_STATUS[status] ?? 'internal';
}

export function createStatusErrorBody(status: number, message: string): ErrorBody {
  return { result: 'error', code: getStatusErrorCode(status), message };
}

/** Without the application. It closes the connection. */
export function createStatusErrorAnswer(status: number, message: string, headers: Answer['headers'] = {}): Answer {
  return {
    status,
    headers: { ...SECURITY_HEADERS, 'Content-Type': JSON_TYPE, ...headers, Connection: 'close' },
    body: JSON.stringify(createStatusErrorBody(status, message)),
  };
}

/** A response with status 503 always has Retry-After. */
export function sendRefusal(reply: FastifyReply, { status, message, ...options }: RefusalInput): FastifyReply {
  const retryAfterMs = options.retryAfterMs ?? (status === 503 ? STORE_RETRY_MS : undefined);
  if (retryAfterMs !== undefined) reply.header('Retry-After', Math.max(1, Math.ceil(retryAfterMs / 1000)));
  if (status === 401) reply.header('WWW-Authenticate', 'Bearer realm="Postrider operator"');
  return reply.code(status).send(createStatusErrorBody(status, message));
}

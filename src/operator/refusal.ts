/** How the operator API says no: a status, and the two members that all errors have. */
import type { FastifyReply } from 'fastify';
import type { ErrorBody } from './schemas.ts';

export interface Refusal {
  readonly kind: 'refused';
  readonly status: number;
  readonly message: string;
  readonly retryAfterMs?: number;
}

/** When to ask a store again that does not answer. */
export const STORE_RETRY_MS = 5_000;

export const CROSS_ORIGIN_CHANGE: Refusal = {
  kind: 'refused',
  status: 403,
  message: 'A change must come from a page of this listener (Origin)',
};

/** A password or token that a page from elsewhere sends is not judged, so that it counts for nothing. */
export const CROSS_ORIGIN_CREDENTIALS: Refusal = {
  kind: 'refused',
  status: 403,
  message: 'Credentials are not taken from a page of another origin; open this address directly',
};

/** Where the store cannot say who asks; throws what is no failure of the store. */
export function toStoreRefusal(error: unknown): Refusal {
  if (!(error instanceof Error && error.name === 'StoreError')) throw error;
  const message = 'The store does not answer; try again in a moment, and `postrider doctor` tells why';
  return { kind: 'refused', status: 503, message };
}

type Said = Omit<Refusal, 'kind'> & Partial<Pick<Refusal, 'kind'>>;

/** The code of a refusal by its status; those of operations are in operations/errors.ts. */
const CODES: Readonly<Record<number, string>> = {
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

/** The code of an error with this status. */
export function errorCodeForStatus(status: number): string {
  return CODES[status] ?? 'internal';
}

/** The body of every error of this listener. */
export function statusErrorBody(status: number, message: string): ErrorBody {
  return { result: 'error', code: errorCodeForStatus(status), message };
}

/** Answers with a refusal. One with 503 always says when to try again. */
export function refuse(reply: FastifyReply, { status, message, ...given }: Said): FastifyReply {
  const retryAfterMs = given.retryAfterMs ?? (status === 503 ? STORE_RETRY_MS : undefined);
  if (retryAfterMs !== undefined) reply.header('Retry-After', Math.max(1, Math.ceil(retryAfterMs / 1000)));
  if (status === 401) reply.header('WWW-Authenticate', 'Bearer realm="Postrider operator"');
  return reply.code(status).send(statusErrorBody(status, message));
}

/** How the operator API says no: a status, and the two members that all errors have. */
import type { FastifyReply } from 'fastify';

export interface Refusal {
  readonly kind: 'refused';
  readonly status: number;
  readonly message: string;
  readonly retryAfterMs?: number;
}

/** What a command refuses for, as a status. */
export const STATUS = { misused: 400, missing: 404, refused: 409, broken: 503 } as const;

type Said = Omit<Refusal, 'kind'> & Partial<Pick<Refusal, 'kind'>>;

export function refuse(reply: FastifyReply, { status, message, retryAfterMs }: Said): FastifyReply {
  if (retryAfterMs !== undefined) reply.header('Retry-After', Math.max(1, Math.ceil(retryAfterMs / 1000)));
  if (status === 401) reply.header('WWW-Authenticate', 'Bearer realm="Postrider operator"');
  return reply.code(status).send({ result: 'error', message });
}

/** What those routes of the operator's listener answer that are no operations. The dashboard's types come from here. */
import type { Static } from 'typebox';
import { Type } from '../model/schema.ts';
import { TOPICS } from '../model/topic.ts';
import { nullable, oneOf } from '../operations/schemas.ts';
import type { Parameter } from './route-description.ts';

/** The body of every error. */
export const ErrorBody = Type.Object(
  {
    result: oneOf(['error']),
    code: Type.String({ description: 'Kebab-case, stable.' }),
    message: Type.String(),
    field: Type.Optional(Type.String({ description: 'The parameter at fault, where one is.' })),
  },
  { additionalProperties: false },
);
export type ErrorBody = Static<typeof ErrorBody>;

/** `POST /sign-in` */
export const SignedIn = Type.Object({
  result: oneOf(['ok']),
  session: Type.String({ description: 'The page’s secret: the value of the header `Postrider-Session`.' }),
});
export type SignedIn = Static<typeof SignedIn>;

/** `POST /sign-out` */
export const SignedOut = Type.Object({ result: oneOf(['ok']) });

/** `POST /ticket` */
export const Ticket = Type.Object({
  ticket: Type.String({ description: 'The value of the query parameter `ticket`, for 30 s.' }),
});
export type Ticket = Static<typeof Ticket>;

/** The query parameter that stands for the page's secret where a browser loads a frame or a download. */
export const TICKET = 'ticket';
export const TICKET_PARAMETER: Parameter = {
  name: TICKET,
  in: 'query',
  type: 'string',
  description: 'Of `POST /ticket`, with the session’s cookie and without its header.',
};

/** `GET /session` */
export const Session = Type.Object({
  actor: Type.String({ description: '`page`, or `token:NAME`.' }),
  version: Type.String(),
  transport: Type.String({ description: 'The kind of transport, such as `capture`, `smtp`, `ses`.' }),
  password: Type.Boolean({ description: 'False where people sign in with the one-time link.' }),
  publicUrl: nullable(Type.String({ description: 'Of the public listener; null where this process has none.' })),
  firstKey: nullable(
    Type.String({
      description: 'For a page alone: the key made on the empty store at this start, for an hour; else null.',
    }),
  ),
});
export type Session = Static<typeof Session>;

/** The data of an event of `GET /events`. */
export const Change = Type.Object({
  topics: Type.Array(oneOf(TOPICS), { description: 'What has changed.' }),
});
export type Change = Static<typeof Change>;

/** `GET /healthz` */
export const Liveness = Type.Object({ result: oneOf(['ok']), message: Type.String() });

/** An OpenAPI document. */
export const OpenApiDocument = Type.Object({
  openapi: Type.String(),
  info: Type.Unsafe<object>({ type: 'object' }),
  servers: Type.Array(Type.Unsafe<object>({ type: 'object' })),
  security: Type.Array(Type.Unsafe<object>({ type: 'object' })),
  tags: Type.Array(Type.Unsafe<object>({ type: 'object' })),
  paths: Type.Unsafe<object>({ type: 'object' }),
  components: Type.Unsafe<object>({ type: 'object' }),
});

/** The responses of routes that perform no operation. The dashboard imports the types. */
import type { Static } from 'typebox';
import { Type } from '../model/schema.ts';
import { TOPICS } from '../model/topic.ts';
import { createNullable, createStringEnum } from '../operations/schemas.ts';
import type { Parameter } from './route-description.ts';

export const ErrorBody = Type.Object(
  {
    result: createStringEnum(['error']),
    code: Type.String({ description: 'The error code in kebab-case. It does not change between versions.' }),
    message: Type.String(),
    field: Type.Optional(
      Type.String({ description: 'The parameter that causes the error, if it is a single parameter.' }),
    ),
  },
  { additionalProperties: false },
);
export type ErrorBody = Static<typeof ErrorBody>;

export const SignInResponse = Type.Object({
  result: createStringEnum(['ok']),
  session: Type.String({ description: 'The secret of the page: the value of the header `Postrider-Session`.' }),
});
export type SignInResponse = Static<typeof SignInResponse>;

export const SignOutResponse = Type.Object({ result: createStringEnum(['ok']) });

export const Ticket = Type.Object({
  ticket: Type.String({ description: 'The value of the query parameter `ticket`. It is valid for 30 s.' }),
});
export type Ticket = Static<typeof Ticket>;

/** Authenticates the URL of a frame in place of the secret of the page. */
export const TICKET_NAME = 'ticket';
export const TICKET_PARAMETER: Parameter = {
  name: TICKET_NAME,
  in: 'query',
  type: 'string',
  description: 'A ticket of `POST /ticket`. It replaces the header `Postrider-Session`.',
};

export const Session = Type.Object({
  actor: Type.String({ description: '`page`, or `token:NAME`.' }),
  version: Type.String(),
  transport: Type.String({ description: 'The kind of transport, such as `capture`, `smtp` or `ses`.' }),
  password: Type.Boolean({ description: 'True if a password is set; false if sign-in uses the one-time link.' }),
  publicUrl: createNullable(
    Type.String({ description: 'The URL of the public listener; null if this process has none.' }),
  ),
  firstKey: createNullable(
    Type.String({
      description:
        'The API key that the start of the service created in an empty store. It is returned only to a page, for one hour; otherwise null.',
    }),
  ),
});
export type Session = Static<typeof Session>;

export const ChangeEvent = Type.Object({
  topics: Type.Array(createStringEnum(TOPICS), { description: 'The topics that changed.' }),
});
export type ChangeEvent = Static<typeof ChangeEvent>;

export const Health = Type.Object({ result: createStringEnum(['ok']), message: Type.String() });

export const OpenApiDocument = Type.Object({
  openapi: Type.String(),
  info: Type.Unsafe<object>({ type: 'object' }),
  servers: Type.Array(Type.Unsafe<object>({ type: 'object' })),
  security: Type.Array(Type.Unsafe<object>({ type: 'object' })),
  tags: Type.Array(Type.Unsafe<object>({ type: 'object' })),
  paths: Type.Unsafe<object>({ type: 'object' }),
  webhooks: Type.Optional(Type.Unsafe<object>({ type: 'object' })),
  components: Type.Unsafe<object>({ type: 'object' }),
});

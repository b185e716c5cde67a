/** The responses of routes that perform no operation. The dashboard imports the types. */
import type { Static } from 'typebox';
import { TOPICS } from '../model/audit.ts';
import { Type } from '../model/schema.ts';
import { createNullable, createStringEnum } from '../operations/schemas.ts';

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
  description: 'A ticket of `POST /ticket`. It replaces the header `Postrider-Session`.',
  schema: { type: 'string' },
};

export const Session = Type.Object({
  actor: Type.String({ description: '`page`, or `token:NAME`.' }),
  version: Type.String(),
  transport: Type.String({ description: 'The kind of transport, such as `capture`, `smtp` or `ses`.' }),
  routes: Type.Array(Type.String(), { description: 'The names of the configured routes, `default` first.' }),
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

// The types of the descriptions of routes, for the OpenAPI document.

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'body';
  readonly required?: true;
  readonly description: string;
  readonly schema: object;
}

export interface Success {
  readonly status?: number;
  readonly type?: string;
  readonly schema: object;
  /** Of each line or event, if the body is a sequence. */
  readonly item?: object;
}

export interface RouteDescription {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Relative to the API, with parameters in braces. */
  readonly path: string;
  /** `path` is not relative to the API. */
  readonly isOutsideApi?: true;
  readonly operationId: string;
  readonly group: string;
  readonly summary: string;
  readonly parameters: readonly Parameter[];
  /** By default the credentials of the API. */
  readonly access?: 'none' | 'token-or-password' | 'api';
  /** If the body is not JSON. */
  readonly requestType?: string;
  /** With code in backticks. */
  readonly notes?: string;
  readonly success: readonly Success[];
  /** Without the errors that occur before routing. */
  readonly errors: readonly number[];
}

/** Of every route that requires authentication. */
export const AUTHENTICATION_ERRORS: readonly number[] = [400, 401, 403, 429, 503];
/** Of every route that reads a body. */
export const BODY_ERRORS: readonly number[] = [413, 415];

export const MESSAGE_PARAMETER: Parameter = {
  name: 'id',
  in: 'path',
  required: true,
  description: 'The id of the message.',
  schema: { type: 'string' },
};

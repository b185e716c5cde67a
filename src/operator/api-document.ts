/** The OpenAPI 3.1 document of the operator listener: every route except the pages of the dashboard. Pure. */
import { NotificationPayload } from '../model/notification.ts';
import { Type } from '../model/schema.ts';
import { NOTIFICATION_TYPE } from '../model/webhook.ts';
import { createPayloadSchema, WEBHOOK_DATA_SCHEMAS } from '../model/webhook-payload.ts';
import { EVENTS_ROUTES } from './events.ts';
import { FILE_ROUTES } from './list-files.ts';
import { MESSAGE_FILE_ROUTES } from './message-files.ts';
import { describeRoute } from './operation-route.ts';
import { OPERATION_ROUTES } from './operation-routes.ts';
import { getStatusErrorCode } from './refusal.ts';
import {
  AUTHENTICATION_ERRORS,
  BODY_ERRORS,
  ErrorBody,
  Health,
  OpenApiDocument,
  type Parameter,
  type RouteDescription,
  Session,
  SignInResponse,
  SignOutResponse,
  type Success,
  Ticket,
} from './schemas.ts';

/** Of a route that accepts the password or a token. Without a password, only programs on this machine have access. */
const ACCESS_ERRORS: readonly number[] = [400, 401, 403, 429, 503];
const TEXT = Type.String();

/** The routes that perform no operation: browser sessions, documents, health and metrics. */
const OTHER_ROUTES: readonly RouteDescription[] = [
  {
    ...describeOther('Sign-in', 'POST', '/sign-in', 'signIn', SignInResponse),
    summary: 'Create a browser session with the password or the token of the one-time link',
    parameters: [
      describeBody('password', 'The value of `POSTRIDER_OPERATOR_PASSWORD`.'),
      describeBody('link', 'The token of the sign-in link that the start of the service printed.'),
    ],
    notes: 'Sets the session cookie. Programs use a token instead.',
    errors: [400, 401, 403, ...BODY_ERRORS, 429],
  },
  {
    ...describeOther('Sign-in', 'POST', '/sign-out', 'signOut', SignOutResponse),
    summary: 'End the session of this browser on every node',
    errors: [400, 403, ...BODY_ERRORS, 503],
  },
  {
    ...describeOther('Sign-in', 'POST', '/ticket', 'createTicket', Ticket, 'api'),
    summary: 'Create a ticket that authenticates the URL of one frame',
    parameters: [{ ...describeBody('path', 'The path of the URL, beginning with `/api/v1`.'), required: true }],
    errors: [400, 401, 403, ...BODY_ERRORS],
  },
  {
    ...describeOther('Sign-in', 'GET', '/session', 'showSession', Session, 'api'),
    summary: 'Show the authenticated actor and the installation',
    errors: AUTHENTICATION_ERRORS,
  },
  {
    ...describeOther('Service', 'GET', '/openapi.json', 'showOperatorDocument', OpenApiDocument),
    summary: 'Get this document',
  },
  {
    ...describeOther('Service', 'GET', '/public-openapi.json', 'readPublicDocument', OpenApiDocument),
    summary: 'Get the OpenAPI document of the public listener, for pages of the dashboard',
  },
  {
    ...describeOther('Service', 'GET', '/healthz', 'showLiveness', Health),
    isOutsideApi: true,
    summary: 'Check that the process responds',
  },
  {
    ...describeOther('Service', 'GET', '/metrics', 'showMetrics', TEXT, 'token-or-password'),
    isOutsideApi: true,
    summary: 'Get the metrics in the text format of Prometheus',
    success: [{ type: 'text/plain', schema: TEXT }],
    errors: ACCESS_ERRORS,
  },
  {
    ...describeOther('Service', 'GET', '/openapi.json', 'showPublicDocument', OpenApiDocument, 'token-or-password'),
    isOutsideApi: true,
    summary: 'Get the OpenAPI document of the public listener',
    errors: ACCESS_ERRORS,
  },
];

function describeOther(
  group: string,
  method: 'GET' | 'POST',
  path: string,
  operationId: string,
  schema: object,
  access: RouteDescription['access'] = 'none',
) {
  return { method, path, operationId, group, parameters: [], access, success: [{ schema }], errors: [400] } as const;
}

function describeBody(name: string, description: string): Parameter {
  return { name, in: 'body', description, schema: { type: 'string' } };
}

export const ROUTE_DESCRIPTIONS: readonly RouteDescription[] = [
  ...OPERATION_ROUTES.map(describeRoute),
  ...MESSAGE_FILE_ROUTES,
  ...EVENTS_ROUTES,
  ...FILE_ROUTES,
  ...OTHER_ROUTES,
];

export function createApiDocument(version: string, base: string): string {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of ROUTE_DESCRIPTIONS) {
    const path = joinPath(base, route);
    paths[path] ??= {};
    Object.assign(paths[path] ?? {}, { [route.method.toLowerCase()]: createOperation(route) });
  }
  const statuses = [...new Set(ROUTE_DESCRIPTIONS.flatMap(({ errors }) => errors))].sort((a, b) => a - b);
  const document = {
    openapi: '3.1.0',
    info: {
      title: 'Postrider operator API',
      version,
      description: 'The operations of the command line as a JSON API. Each change has an entry in the audit log.',
    },
    servers: [{ url: '/' }],
    security: SECURITY_BY_ACCESS.api,
    tags: [...new Set(ROUTE_DESCRIPTIONS.map(({ group }) => group))].map((name) => ({ name })),
    paths,
    webhooks: describeWebhooks(),
    components: {
      securitySchemes: {
        token: {
          type: 'http',
          scheme: 'bearer',
          description:
            'Created by `postrider token create NAME`. Its scope (`--scope`) determines what it permits: `metrics`, `read`, `content` or `full`.',
        },
        session: { type: 'apiKey', in: 'cookie', name: 'postrider_session', description: 'Set by `POST /sign-in`.' },
        secret: {
          type: 'apiKey',
          in: 'header',
          name: 'Postrider-Session',
          description:
            'Returned by `POST /sign-in` and stored by the page. A session needs both the cookie and this header.',
        },
        password: {
          type: 'http',
          scheme: 'basic',
          description: 'The value of `POSTRIDER_OPERATOR_PASSWORD` with any user name.',
        },
      },
      responses: {
        ...Object.fromEntries(statuses.map((status) => [getStatusErrorCode(status), createErrorResponse(status)])),
        error: {
          description: 'An error that any request can cause, such as a timeout (408) or an internal error (500).',
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
        },
      },
      schemas: { Error: ErrorBody },
    },
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

function describeWebhooks(): object {
  const types = Object.keys(WEBHOOK_DATA_SCHEMAS) as (keyof typeof WEBHOOK_DATA_SCHEMAS)[];
  const responses = (noun: string, gone: string) => ({
    '2XX': { description: `The ${noun} has accepted the ${noun === 'target' ? 'notification' : 'event'}.` },
    410: { description: `The ${noun} no longer exists. ${gone}` },
    default: { description: `The ${noun === 'target' ? 'notification' : 'event'} is sent again later.` },
  });
  return Object.fromEntries([
    ...types.map((type) => [
      type,
      {
        post: {
          summary: `The event ${type}`,
          ...describeRequest(createPayloadSchema(type)),
          responses: responses('endpoint', 'The service disables it.'),
        },
      },
    ]),
    [
      // To the HTTPS targets of POSTRIDER_NOTIFY.
      NOTIFICATION_TYPE,
      {
        post: {
          ...describeRequest(NotificationPayload),
          summary: 'A notification to operators: problems that need attention began or ended',
          responses: responses('target', 'The notification is not sent again.'),
        },
      },
    ],
  ]);
}

function describeRequest(schema: object): object {
  return {
    tags: ['Webhooks'],
    security: [],
    parameters: WEBHOOK_HEADERS.map(([name, description]) => {
      return { name, in: 'header', required: true, description, schema: { type: 'string' } };
    }),
    requestBody: { required: true, content: { 'application/json': { schema } } },
  };
}

const WEBHOOK_HEADERS = [
  ['webhook-id', 'The id of the delivery, the same in every attempt.'],
  ['webhook-timestamp', 'The time of the attempt in Unix seconds.'],
  ['webhook-signature', 'One or more signatures of the form `v1,BASE64`, separated by spaces.'],
] as const;

const SECURITY_BY_ACCESS = {
  api: [{ token: [] }, { session: [], secret: [] }, { password: [] }],
  'token-or-password': [{ token: [] }, { password: [] }],
  none: [],
} as const;

function joinPath(base: string, { path, isOutsideApi }: RouteDescription): string {
  return isOutsideApi === true ? path : base + path;
}

function createErrorResponse(status: number): object {
  const headers = ERROR_HEADERS[status];
  return {
    description: ERROR_DESCRIPTIONS[status],
    ...(headers === undefined ? {} : { headers }),
    content: {
      'application/json': {
        schema: { ...ErrorBody, properties: { ...ErrorBody.properties, code: { const: getStatusErrorCode(status) } } },
      },
    },
  };
}

function createOperation(route: RouteDescription): object {
  const { operationId, group, summary, parameters, access = 'api', requestType, notes, success, errors } = route;
  const bodyParameters = parameters.filter((parameter) => parameter.in === 'body');
  const required = bodyParameters.filter((parameter) => parameter.required === true).map(({ name }) => name);
  const schema = {
    type: 'object',
    ...(required.length === 0 ? {} : { required }),
    properties: Object.fromEntries(
      bodyParameters.map(({ name, description, schema: member }) => [name, { ...member, description }]),
    ),
    additionalProperties: false,
  };
  const requestBody =
    requestType !== undefined
      ? { required: true, content: { [requestType]: { schema: { type: 'string' } } } }
      : { required: required.length > 0, content: { 'application/json': { schema } } };
  return {
    operationId,
    tags: [group],
    summary,
    ...(notes === undefined ? {} : { description: notes }),
    ...(access === 'api' ? {} : { security: SECURITY_BY_ACCESS[access] }),
    parameters: parameters
      .filter((parameter) => parameter.in !== 'body')
      .map(({ name, in: location, required: isRequired, description, schema: parameterSchema }) => {
        return { name, in: location, required: isRequired === true, description, schema: parameterSchema };
      }),
    ...(requestType === undefined && bodyParameters.length === 0 ? {} : { requestBody }),
    responses: {
      ...createSuccessResponses(success),
      ...Object.fromEntries(
        [...new Set(errors)]
          .sort((a, b) => a - b)
          .map((status) => [status, { $ref: `#/components/responses/${getStatusErrorCode(status)}` }]),
      ),
      default: { $ref: '#/components/responses/error' },
    },
  };
}

function createSuccessResponses(variants: readonly Success[]): object {
  const responsesByStatus: Record<number, { readonly description: string; readonly content: Record<string, object> }> =
    {};
  for (const { status = 200, type = 'application/json', schema, item } of variants) {
    responsesByStatus[status] ??= { description: 'The operation succeeded.', content: {} };
    // OpenAPI 3.1 has no equivalent of `itemSchema`, which OpenAPI 3.2 added.
    const mediaTypeObject = { schema, ...(item === undefined ? {} : { 'x-item-schema': item }) };
    Object.assign(responsesByStatus[status].content, { [type]: mediaTypeObject });
  }
  return responsesByStatus;
}

const ERROR_DESCRIPTIONS: Readonly<Record<number, string>> = {
  400: 'A parameter is missing, unknown or invalid, or the request is malformed.',
  401: 'The credentials are missing or invalid.',
  403: 'The request is from a page of another origin, the scope of the token does not permit it, or the sign-in link is invalid.',
  404: 'The named object does not exist.',
  409: 'The request conflicts with the current state.',
  413: 'The body is too large.',
  415: 'The media type of the body is not supported.',
  429: 'Too many wrong passwords or tokens, or too many concurrent requests.',
  503: 'The store, DNS or the provider does not respond. The same request may succeed later.',
};

const RETRY_AFTER_HEADER = {
  'Retry-After': {
    description: 'The number of seconds after which the client can retry.',
    required: true,
    schema: { type: 'integer' },
  },
};
const ERROR_HEADERS: Readonly<Record<number, object>> = {
  401: {
    'WWW-Authenticate': {
      description: 'The supported authentication scheme.',
      required: true,
      schema: { type: 'string' },
    },
  },
  429: RETRY_AFTER_HEADER,
  503: RETRY_AFTER_HEADER,
};

/** The OpenAPI 3.1 document of the operator listener: every route except the pages of the dashboard. Pure. */

import { NOTIFICATION_TYPE, NotificationPayload } from '../model/notification-payload.ts';
import { createPayloadSchema, WEBHOOK_DATA_SCHEMAS } from '../model/webhook-payload.ts';
import { escapeHtml } from './escape-html.ts';
import { EVENTS_ROUTES } from './events.ts';
import { FILE_ROUTES } from './file-routes.ts';
import { INBOX_FILE_ROUTES } from './inbox.ts';
import { LISTENER_ROUTES } from './listener-routes.ts';
import { MESSAGE_HTML_ROUTE } from './message-html.ts';
import { describeRoute } from './operation-route.ts';
import { OPERATION_ROUTES } from './operation-routes.ts';
import { getErrorCode } from './refusal.ts';
import type { Parameter, RouteDescription, Success } from './route-description.ts';
import { ErrorBody } from './schemas.ts';
import { SESSION_ROUTES } from './session-routes.ts';

export const ROUTE_DESCRIPTIONS: readonly RouteDescription[] = [
  ...OPERATION_ROUTES.map(describeRoute),
  ...INBOX_FILE_ROUTES,
  MESSAGE_HTML_ROUTE,
  ...EVENTS_ROUTES,
  ...FILE_ROUTES,
  ...SESSION_ROUTES,
  ...LISTENER_ROUTES,
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
        ...Object.fromEntries(statuses.map((status) => [getErrorCode(status), createErrorResponse(status)])),
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
  const eventWebhooks = types.map((type) => [type, { post: describeWebhook(type) }]);
  return Object.fromEntries([...eventWebhooks, [NOTIFICATION_TYPE, { post: describeNotification() }]]);
}

function describeWebhook(type: keyof typeof WEBHOOK_DATA_SCHEMAS): object {
  return {
    summary: `The event ${type}`,
    ...describeRequest(createPayloadSchema(type)),
    responses: {
      '2XX': { description: 'The endpoint has accepted the event.' },
      410: { description: 'The endpoint no longer exists. The service disables it.' },
      default: { description: 'The event is sent again later.' },
    },
  };
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

/** To the HTTPS targets of POSTRIDER_NOTIFY. */
function describeNotification(): object {
  return {
    ...describeRequest(NotificationPayload),
    summary: 'A notification to operators: problems that need attention began or ended',
    responses: {
      '2XX': { description: 'The target has accepted the notification.' },
      410: { description: 'The target no longer exists. The notification is not sent again.' },
      default: { description: 'The notification is sent again later.' },
    },
  };
}

const WEBHOOK_HEADERS = [
  ['webhook-id', 'The id of the delivery, the same in every attempt.'],
  ['webhook-timestamp', 'The time of the attempt in Unix seconds.'],
  ['webhook-signature', 'One or more signatures of the form `v1,BASE64`, separated by spaces.'],
] as const;

/** One of them is sufficient. */
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
        schema: { ...ErrorBody, properties: { ...ErrorBody.properties, code: { const: getErrorCode(status) } } },
      },
    },
  };
}

function createOperation(route: RouteDescription): object {
  const { operationId, group, summary, parameters, access, requestType, notes, success, errors } = route;
  const bodyParameters = parameters.filter((parameter) => parameter.in === 'body');
  const otherParameters = parameters.filter((parameter) => parameter.in !== 'body');
  const required = bodyParameters.filter(({ required: isRequired }) => isRequired === true).map(({ name }) => name);
  const schema = {
    type: 'object',
    ...(required.length === 0 ? {} : { required }),
    properties: Object.fromEntries(
      bodyParameters.map((parameter) => [
        parameter.name,
        { ...getSchema(parameter), description: parameter.description },
      ]),
    ),
    additionalProperties: false,
  };
  return {
    operationId,
    tags: [group],
    summary,
    ...(notes === undefined ? {} : { description: notes }),
    ...(access === undefined ? {} : { security: SECURITY_BY_ACCESS[access] }),
    parameters: otherParameters.map(createParameterObject),
    ...(requestType === undefined
      ? {}
      : { requestBody: { required: true, content: { [requestType]: { schema: { type: 'string' } } } } }),
    ...(bodyParameters.length === 0
      ? {}
      : { requestBody: { required: required.length > 0, content: { 'application/json': { schema } } } }),
    responses: {
      ...createSuccessResponses(success),
      ...Object.fromEntries(
        [...new Set(errors)]
          .sort((a, b) => a - b)
          .map((status) => [status, { $ref: `#/components/responses/${getErrorCode(status)}` }]),
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

const ERROR_HEADERS: Readonly<Record<number, object>> = {
  401: {
    'WWW-Authenticate': {
      description: 'The supported authentication scheme.',
      required: true,
      schema: { type: 'string' },
    },
  },
  429: {
    'Retry-After': {
      description: 'The number of seconds after which the client can retry.',
      required: true,
      schema: { type: 'integer' },
    },
  },
  503: {
    'Retry-After': {
      description: 'The number of seconds after which the client can retry.',
      required: true,
      schema: { type: 'integer' },
    },
  },
};

function createParameterObject(parameter: Parameter): object {
  const { name, in: location, required, description } = parameter;
  return { name, in: location, required: required === true, description, schema: getSchema(parameter) };
}

function getSchema({ type, schema }: Parameter): object {
  return schema ?? { type };
}

/** Returns the API reference as HTML without scripts. */
export function createApiReference(base: string): string {
  const groups = [...new Set(ROUTE_DESCRIPTIONS.map(({ group }) => group))];
  const sections = groups.map((group) => {
    const routes = ROUTE_DESCRIPTIONS.filter((route) => route.group === group).map((route) => formatRoute(base, route));
    return `<h2 id="${getAnchor(group)}">${escapeHtml(group)}</h2>${routes.join('')}`;
  });
  const contents = groups.map((group) => `<li><a href="#${getAnchor(group)}">${escapeHtml(group)}</a></li>`);
  return (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Postrider operator API</title>' +
    `<meta name="viewport" content="width=device-width"><style>${STYLE_SHEET}</style></head><body><main>` +
    '<h1>Operator API</h1><p>The operations of the command line as a JSON API over HTTP. Authenticate with a token of ' +
    '<code>postrider token create NAME</code>: <code>Authorization: Bearer po_…</code>. An error is ' +
    '<code>{"result":"error","code":"not-found","message":"…"}</code>, with <code>field</code> if a single parameter causes the error. The OpenAPI document is ' +
    `<a href="${base}/openapi.json">${base}/openapi.json</a>.</p><nav><ul>${contents.join('')}</ul></nav>${sections.join('')}` +
    '<p><a href="/">Back</a></p></main></body></html>'
  );
}

function formatRoute(base: string, route: RouteDescription): string {
  const { method, summary, parameters, notes } = route;
  const rows = parameters.map(
    ({ name, in: location, type, required, description }) =>
      `<tr><td><code>${escapeHtml(name)}</code></td><td>${location}, ${type}${required === true ? ', required' : ''}</td><td>${formatInlineCode(description)}</td></tr>`,
  );
  const table =
    rows.length === 0
      ? ''
      : `<table><thead><tr><th>Parameter</th><th>Kind</th><th>Meaning</th></tr></thead><tbody>${rows.join('')}</tbody></table>`;
  const notesHtml = notes === undefined ? '' : `<p>${formatInlineCode(notes)}</p>`;
  return `<section><h3><code>${method} ${escapeHtml(joinPath(base, route))}</code></h3><p>${formatInlineCode(summary)}.</p>${table}${notesHtml}</section>`;
}

/** Returns the anchor of a group, such as `live-updates`. */
function getAnchor(group: string): string {
  return escapeHtml(group.toLowerCase().replaceAll(' ', '-'));
}

/** Converts text to HTML. Text between backticks becomes code. */
function formatInlineCode(text: string): string {
  const parts = text.split('`');
  return parts.map((part, index) => (index % 2 === 0 ? escapeHtml(part) : `<code>${escapeHtml(part)}</code>`)).join('');
}

const STYLE_SHEET =
  ':root{color-scheme:light dark;background:Canvas;color:CanvasText}body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem}' +
  'h3{font-size:1rem;margin:1.5rem 0 .3rem}code,td{overflow-wrap:anywhere}table{border-collapse:collapse;width:100%}' +
  'td,th{text-align:left;padding:.25rem .8rem .25rem 0;vertical-align:top}section{border-top:1px solid #8884;padding-bottom:.5rem}';

/**
 * The OpenAPI 3.1 document of the operator's listener and its page for people, both made from the routes: those that are operations
 * (operation-routes.ts), and the others. It names every route but the pages of the dashboard, with the schema of each answer. Pure.
 */

import { escapeHtml } from './escape-html.ts';
import { EVENTS_ROUTES } from './events.ts';
import { FILE_ROUTES } from './file-routes.ts';
import { INBOX_FILE_ROUTES } from './inbox.ts';
import { LISTENER_ROUTES } from './listener-routes.ts';
import { describeRoute } from './operation-route.ts';
import { OPERATION_ROUTES } from './operation-routes.ts';
import { errorCodeForStatus } from './refusal.ts';
import type { Parameter, RouteDescription, Success } from './route-description.ts';
import { ErrorBody } from './schemas.ts';
import { SESSION_ROUTES } from './session-routes.ts';

/** Every route of the document: operations first. */
export const ROUTE_DESCRIPTIONS: readonly RouteDescription[] = [
  ...OPERATION_ROUTES.map(describeRoute),
  ...INBOX_FILE_ROUTES,
  ...EVENTS_ROUTES,
  ...FILE_ROUTES,
  ...SESSION_ROUTES,
  ...LISTENER_ROUTES,
];

/** JSON text. `base` stands before every path of the API. */
export function apiDocument(version: string, base: string): string {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of ROUTE_DESCRIPTIONS) {
    const path = pathOf(base, route);
    paths[path] ??= {};
    Object.assign(paths[path] ?? {}, { [route.method.toLowerCase()]: operation(route) });
  }
  const statuses = [...new Set(ROUTE_DESCRIPTIONS.flatMap(({ errors }) => errors))].sort((a, b) => a - b);
  const document = {
    openapi: '3.1.0',
    info: {
      title: 'Postrider operator API',
      version,
      description: 'The functions of the command line over JSON. Every change is in the audit log.',
    },
    servers: [{ url: '/' }],
    security: ACCESS.api,
    tags: [...new Set(ROUTE_DESCRIPTIONS.map(({ group }) => group))].map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer', description: '`postrider token create NAME`' },
        session: { type: 'apiKey', in: 'cookie', name: 'postrider_session', description: 'Set by signing in.' },
        secret: {
          type: 'apiKey',
          in: 'header',
          name: 'Postrider-Session',
          description: 'Answered by signing in; kept by the page. Neither admits anybody without the other.',
        },
        password: {
          type: 'http',
          scheme: 'basic',
          description: 'The value of `POSTRIDER_OPERATOR_PASSWORD` with any user name.',
        },
      },
      responses: {
        ...Object.fromEntries(statuses.map((status) => [errorCodeForStatus(status), refusal(status)])),
        error: {
          description: 'An error that any request can meet, such as a timeout (408) or a fault of the service (500).',
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
        },
      },
      schemas: { Error: ErrorBody },
    },
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

/** The credentials that a route asks for, any one of these. */
const ACCESS = {
  api: [{ token: [] }, { session: [], secret: [] }, { password: [] }],
  password: [{ password: [] }],
  none: [],
} as const;

function pathOf(base: string, { path, outsideApi: outside }: RouteDescription): string {
  return outside === true ? path : base + path;
}

function refusal(status: number): object {
  const headers = REFUSAL_HEADERS[status];
  return {
    description: REFUSALS[status],
    ...(headers === undefined ? {} : { headers }),
    content: {
      'application/json': {
        schema: { ...ErrorBody, properties: { ...ErrorBody.properties, code: { const: errorCodeForStatus(status) } } },
      },
    },
  };
}

function operation(route: RouteDescription): object {
  const { operationId, group, summary, parameters, access, takes, notes, success, errors } = route;
  const inBody = parameters.filter((one) => one.in === 'body');
  const others = parameters.filter((one) => one.in !== 'body');
  const required = inBody.filter(({ required: must }) => must === true).map(({ name }) => name);
  const schema = {
    type: 'object',
    ...(required.length === 0 ? {} : { required }),
    properties: Object.fromEntries(inBody.map((one) => [one.name, { ...schemaOf(one), description: one.description }])),
    additionalProperties: false,
  };
  return {
    operationId,
    tags: [group],
    summary,
    ...(notes === undefined ? {} : { description: notes }),
    ...(access === undefined ? {} : { security: ACCESS[access] }),
    parameters: others.map(parameterOf),
    ...(takes === undefined
      ? {}
      : { requestBody: { required: true, content: { [takes]: { schema: { type: 'string' } } } } }),
    ...(inBody.length === 0
      ? {}
      : { requestBody: { required: required.length > 0, content: { 'application/json': { schema } } } }),
    responses: {
      ...successes(success),
      ...Object.fromEntries(
        [...new Set(errors)]
          .sort((a, b) => a - b)
          .map((status) => [status, { $ref: `#/components/responses/${errorCodeForStatus(status)}` }]),
      ),
      default: { $ref: '#/components/responses/error' },
    },
  };
}

/** By status, each with what it may hold by media type. */
function successes(answers: readonly Success[]): object {
  const byStatus: Record<number, { readonly description: string; readonly content: Record<string, object> }> = {};
  for (const { status = 200, type = 'application/json', schema, item } of answers) {
    byStatus[status] ??= { description: 'Done.', content: {} };
    // OpenAPI 3.2 has `itemSchema` for this; 3.1 has nothing.
    const media = { schema, ...(item === undefined ? {} : { 'x-item-schema': item }) };
    Object.assign(byStatus[status].content, { [type]: media });
  }
  return byStatus;
}

const REFUSALS: Readonly<Record<number, string>> = {
  400: 'A parameter is missing, unknown or wrong, or the request is malformed.',
  401: 'Not signed in.',
  403: 'The request comes from a page of another origin, or the sign-in link is invalid.',
  404: 'There is no such thing.',
  409: 'The request conflicts with the current state.',
  413: 'The body is too large.',
  415: 'The body is of another type.',
  429: 'Too many wrong passwords or tokens, or too much at once.',
  503: 'The store, DNS or the provider does not answer. The same request may succeed later.',
};

const REFUSAL_HEADERS: Readonly<Record<number, object>> = {
  401: { 'WWW-Authenticate': { description: 'How to sign in.', required: true, schema: { type: 'string' } } },
  429: { 'Retry-After': { description: 'Whole seconds to wait.', required: true, schema: { type: 'integer' } } },
  503: { 'Retry-After': { description: 'Whole seconds to wait.', required: true, schema: { type: 'integer' } } },
};

function parameterOf(parameter: Parameter): object {
  const { name, in: place, required, description } = parameter;
  return { name, in: place, required: required === true, description, schema: schemaOf(parameter) };
}

function schemaOf({ type, schema }: Parameter): object {
  return schema ?? { type };
}

/** The page for people; no script in it. */
export function apiReference(base: string): string {
  const groups = [...new Set(ROUTE_DESCRIPTIONS.map(({ group }) => group))];
  const sections = groups.map((group) => {
    const routes = ROUTE_DESCRIPTIONS.filter((route) => route.group === group).map((route) => routeText(base, route));
    return `<h2 id="${escapeHtml(group.toLowerCase())}">${escapeHtml(group)}</h2>${routes.join('')}`;
  });
  const contents = groups.map(
    (group) => `<li><a href="#${escapeHtml(group.toLowerCase())}">${escapeHtml(group)}</a></li>`,
  );
  return (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Postrider operator API</title>' +
    `<meta name="viewport" content="width=device-width"><style>${STYLE}</style></head><body><main>` +
    '<h1>Operator API</h1><p>JSON over HTTP, the functions of the command line. Sign in with a token of ' +
    '<code>postrider token create NAME</code>: <code>Authorization: Bearer po_…</code>. Errors are ' +
    '<code>{"result":"error","code":"not-found","message":"…"}</code>, with <code>field</code> where one parameter is at fault. The document for machines is ' +
    `<a href="${base}/openapi.json">${base}/openapi.json</a>.</p><nav><ul>${contents.join('')}</ul></nav>${sections.join('')}` +
    '<p><a href="/">Back</a></p></main></body></html>'
  );
}

function routeText(base: string, route: RouteDescription): string {
  const { method, summary, parameters, notes } = route;
  const rows = parameters.map(
    ({ name, in: place, type, required, description }) =>
      `<tr><td><code>${escapeHtml(name)}</code></td><td>${place}, ${type}${required === true ? ', required' : ''}</td><td>${inlineCode(description)}</td></tr>`,
  );
  const table =
    rows.length === 0
      ? ''
      : `<table><thead><tr><th>Parameter</th><th>Kind</th><th>Meaning</th></tr></thead><tbody>${rows.join('')}</tbody></table>`;
  const more = notes === undefined ? '' : `<p>${inlineCode(notes)}</p>`;
  return `<section><h3><code>${method} ${escapeHtml(pathOf(base, route))}</code></h3><p>${escapeHtml(summary)}.</p>${table}${more}</section>`;
}

/** What stands between backticks as code. */
function inlineCode(text: string): string {
  const parts = text.split('`');
  return parts.map((part, at) => (at % 2 === 0 ? escapeHtml(part) : `<code>${escapeHtml(part)}</code>`)).join('');
}

const STYLE =
  ':root{color-scheme:light dark;background:Canvas;color:CanvasText}body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem}' +
  'h3{font-size:1rem;margin:1.5rem 0 .3rem}code,td{overflow-wrap:anywhere}table{border-collapse:collapse;width:100%}' +
  'td,th{text-align:left;padding:.25rem .8rem .25rem 0;vertical-align:top}section{border-top:1px solid #8884;padding-bottom:.5rem}';

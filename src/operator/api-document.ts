/**
 * The OpenAPI 3.1 document of the operator API and its page for people, both made from the routes (operation-routes.ts, inbox.ts,
 * events.ts, file-routes.ts). Pure.
 */

import { type Described, type Parameter, successOf } from './described.ts';
import { escapeHtml } from './escape-html.ts';
import { EVENTS_ROUTES } from './events.ts';
import { FILE_ROUTES } from './file-routes.ts';
import { INBOX_ROUTES } from './inbox.ts';
import { describedOf } from './operation-route.ts';
import { OPERATION_ROUTES } from './operation-routes.ts';

/** Every route under the API's base: operations first. */
const ALL: readonly Described[] = [
  ...OPERATION_ROUTES.map(describedOf),
  ...INBOX_ROUTES,
  ...EVENTS_ROUTES,
  ...FILE_ROUTES,
];

const ERROR = { $ref: '#/components/schemas/Error' };

/** JSON text. */
export function apiDocument(version: string, base: string): string {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of ALL) {
    paths[route.path] ??= {};
    Object.assign(paths[route.path] ?? {}, { [route.method.toLowerCase()]: operation(route) });
  }
  const document = {
    openapi: '3.1.0',
    info: {
      title: 'Postrider operator API',
      version,
      description: 'The functions of the command line over JSON. Every change is in the audit log.',
    },
    servers: [{ url: base }],
    security: [{ token: [] }, { session: [], secret: [] }],
    tags: [...new Set(ALL.map(({ group }) => group))].map((name) => ({ name })),
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
      },
      schemas: {
        Error: {
          type: 'object',
          required: ['result', 'code', 'message'],
          properties: {
            result: { const: 'error' },
            code: { type: 'string' },
            message: { type: 'string' },
            field: { type: 'string', description: 'The parameter at fault, where one is.' },
          },
          additionalProperties: false,
        },
      },
    },
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

function operation(route: Described): object {
  const { operation: operationId, group, summary, parameters, answer, takes, notes, result } = route;
  const inBody = parameters.filter((one) => one.in === 'body');
  const others = parameters.filter((one) => one.in !== 'body');
  const required = inBody.filter(({ required: must }) => must === true).map(({ name }) => name);
  const schema = {
    type: 'object',
    ...(required.length === 0 ? {} : { required }),
    properties: Object.fromEntries(inBody.map((one) => [one.name, { ...schemaOf(one), description: one.about }])),
    additionalProperties: false,
  };
  const refusals = [400, 401, 403, 404, 409, ...(takes === undefined ? [] : [413, 415]), 429, 503].map((status) => [
    String(status),
    { description: REFUSALS[status], content: { 'application/json': { schema: ERROR } } },
  ]);
  return {
    operationId,
    tags: [group],
    summary,
    ...(notes === undefined ? {} : { description: notes }),
    parameters: others.map(parameterOf),
    ...(takes === undefined ? {} : { requestBody: { required: true, content: { [takes]: { schema: {} } } } }),
    ...(inBody.length === 0
      ? {}
      : { requestBody: { required: required.length > 0, content: { 'application/json': { schema } } } }),
    responses: {
      [successOf(route)]: {
        description: 'Done.',
        content: { [answer ?? 'application/json']: { schema: result ?? {} } },
      },
      ...Object.fromEntries(refusals),
    },
  };
}

const REFUSALS: Readonly<Record<number, string>> = {
  400: 'A parameter is missing, unknown or wrong.',
  401: 'Not signed in.',
  403: 'A change that does not come from a page of this listener.',
  404: 'There is no such thing.',
  409: 'It cannot be done as things are.',
  413: 'The body is too large.',
  415: 'The body is of another type.',
  429: 'Too many wrong passwords or tokens.',
  503: 'The database does not answer as it should.',
};

function parameterOf(parameter: Parameter): object {
  const { name, in: place, required, about } = parameter;
  return { name, in: place, required: required === true, description: about, schema: schemaOf(parameter) };
}

function schemaOf({ type, schema }: Parameter): object {
  return schema ?? { type };
}

/** The page for people; no script in it. */
export function apiReference(base: string): string {
  const groups = [...new Set(ALL.map(({ group }) => group))];
  const sections = groups.map((group) => {
    const routes = ALL.filter((route) => route.group === group).map((route) => routeText(base, route));
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

function routeText(base: string, { method, path, summary, parameters, notes }: Described): string {
  const rows = parameters.map(
    ({ name, in: place, type, required, about }) =>
      `<tr><td><code>${escapeHtml(name)}</code></td><td>${place}, ${type}${required === true ? ', required' : ''}</td><td>${escapeHtml(about)}</td></tr>`,
  );
  const table =
    rows.length === 0
      ? ''
      : `<table><thead><tr><th>Parameter</th><th>Kind</th><th>Meaning</th></tr></thead><tbody>${rows.join('')}</tbody></table>`;
  const more = notes === undefined ? '' : `<p>${inlineCode(notes)}</p>`;
  return `<section><h3><code>${method} ${escapeHtml(base + path)}</code></h3><p>${escapeHtml(summary)}.</p>${table}${more}</section>`;
}

/** What stands between backticks as code. */
function inlineCode(text: string): string {
  const parts = text.split('`');
  return parts.map((part, at) => (at % 2 === 0 ? escapeHtml(part) : `<code>${escapeHtml(part)}</code>`)).join('');
}

const STYLE =
  ':root{color-scheme:light dark;background:Canvas;color:CanvasText}body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem}' +
  'h3{font-size:1rem;margin:1.5rem 0 .3rem}code{overflow-wrap:anywhere}table{border-collapse:collapse;width:100%}' +
  'td,th{text-align:left;padding:.25rem .8rem .25rem 0;vertical-align:top}section{border-top:1px solid #8884;padding-bottom:.5rem}';

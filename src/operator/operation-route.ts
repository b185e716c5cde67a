/**
 * The HTTP adapter: a route is a method, a path and an operation. Path parameters, query and body members become the
 * input; the result is the body; error codes become statuses. Nothing here depends on the wording of a message.
 */
import type { TObject, TSchema } from 'typebox';
import type { ServiceContext } from '../operations/context.ts';
import { ERROR_CODES, type ErrorCode, type OperationError } from '../operations/errors.ts';
import { inputMembers, isRequired } from '../operations/input.ts';
import type { Operation, OperationResult } from '../operations/operation.ts';
import { controlCharacterFault } from './control-characters.ts';
import { BODY_ERRORS, type Parameter, type RouteDescription, SIGNED_IN_ERRORS } from './route-description.ts';
import type { ErrorBody } from './schemas.ts';

export interface OperationRoute {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Below the API's base, parameters in braces: `/accounts/{account}`. */
  readonly path: string;
  /** The section of the API reference. */
  readonly group: string;
  readonly operation: Operation<TObject, TSchema, ServiceContext>;
  /** The status of success. */
  readonly status: 200 | 201;
  /** Members that the route itself gives and no request can. */
  readonly preset: Readonly<Record<string, string>>;
}

/** What a route says of where members of the input stand in a request. */
export interface RouteInput extends Pick<OperationRoute, 'path' | 'preset'> {
  readonly input: TObject;
  /** Where those stand that are not in the path. */
  readonly elsewhere: 'query' | 'body';
}

/** Where the members of a route's input stand: in the path, and in the query of a GET or DELETE or the body of any other request. */
export function routeInputOf({ method, path, preset, operation }: OperationRoute): RouteInput {
  const elsewhere = method === 'GET' || method === 'DELETE' ? 'query' : 'body';
  return { path, preset, input: operation.input, elsewhere };
}

/** A route. */
export function operationRoute(
  method: OperationRoute['method'],
  path: string,
  group: string,
  operation: OperationRoute['operation'],
  status: OperationRoute['status'] = 200,
  preset: OperationRoute['preset'] = {},
): OperationRoute {
  return { method, path, group, operation, status, preset };
}

/** The route as the OpenAPI document and the API reference describe it. */
export function describeRoute(route: OperationRoute): RouteDescription {
  const { method, path, group, status, operation } = route;
  return {
    method,
    path,
    group,
    operationId: operation.id,
    summary: operation.summary,
    parameters: describeParameters(routeInputOf(route)),
    success: [{ status, schema: operation.changes ? withWarnings(operation.result) : operation.result }],
    errors: [
      ...SIGNED_IN_ERRORS,
      ...(method === 'GET' ? [] : BODY_ERRORS),
      ...operation.errors.map((code) => ERROR_CODES[code].status),
    ],
  };
}

/** The parameters of a route, as the document describes them. */
export function describeParameters({ path, preset, input, elsewhere }: RouteInput): readonly Parameter[] {
  const inPath = pathParameters(path);
  const given = Object.entries(inputMembers(input)).filter(([name]) => !Object.hasOwn(preset, name));
  return given.map(([name, member]): Parameter => {
    const { type, description, errorMessage, ...rest } = member as {
      readonly type?: string;
      readonly description?: string;
      readonly errorMessage?: string;
    };
    return {
      name,
      in: inPath.includes(name) ? 'path' : elsewhere,
      type: type === 'integer' || type === 'boolean' ? type : 'string',
      description: description ?? '',
      schema: { ...(type === undefined ? {} : { type }), ...rest },
      ...(isRequired(input, name) ? { required: true } : {}),
    };
  });
}

/** The schema of a result, which may carry warnings where it is an object. */
export function withWarnings(result: TSchema): object {
  const { type, properties } = result as { readonly type?: string; readonly properties?: object };
  return type === 'object' ? { ...result, properties: { ...properties, warnings: WARNINGS } } : result;
}

const WARNINGS = {
  type: 'array',
  description: 'Present where the operator should know something although the operation succeeded.',
  items: {
    type: 'object',
    required: ['code', 'message'],
    properties: { code: { type: 'string' }, message: { type: 'string' } },
    additionalProperties: false,
  },
} as const;

/** The names of the parameters in a path. */
export function pathParameters(path: string): readonly string[] {
  return path.split('/').flatMap((part) => (part.startsWith('{') ? [part.slice(1, -1)] : []));
}

/** The three parts of a request that hold members of the input. */
export interface RequestParts {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
}

/**
 * The members that a request gives. A path parameter stands in the path alone; the others stand in the query of a GET or
 * DELETE and in the body of every other request. One line says what is wrong otherwise.
 */
export function readRequestInput(
  { path, preset, input, elsewhere }: RouteInput,
  { params, query, body }: RequestParts,
):
  | { readonly ok: true; readonly members: Readonly<Record<string, unknown>> }
  | { readonly ok: false; readonly body: ErrorBody } {
  const wrong = (message: string, field: string | null) =>
    ({ ok: false, body: errorBody('invalid', message, field) }) as const;
  const inPath = pathParameters(path);
  const members = inputMembers(input);
  const given: Record<string, unknown> = { ...preset };
  for (const [place, source] of [
    ['path', params],
    ['query', query],
    ['body', body ?? {}],
  ] as const) {
    if (typeof source !== 'object' || source === null || Array.isArray(source)) {
      return wrong('The body must be a JSON object', null);
    }
    for (const [name, value] of Object.entries(source)) {
      const known = Object.hasOwn(members, name) && !Object.hasOwn(preset, name);
      const expected = place === 'path' || (known && !inPath.includes(name) && place === elsewhere);
      if (!expected) return wrong(`Unknown parameter in the ${place}: ${JSON.stringify(name)}`, null);
      if (typeof value === 'string') {
        const controls = controlCharacterFault(name, value);
        if (controls !== null) return wrong(controls, name);
      }
      given[name] = value;
    }
  }
  return { ok: true, members: given };
}

/** Status and body of a performed operation. */
export function toResponse(
  route: OperationRoute,
  { warnings, ...performed }: OperationResult<unknown>,
): { readonly status: number; readonly body: unknown } {
  if (performed.ok) {
    const { value } = performed;
    const warned = warnings.length > 0 && typeof value === 'object' && value !== null && !Array.isArray(value);
    return { status: route.status, body: warned ? { ...value, warnings } : value };
  }
  return toErrorResponse(performed.error);
}

/** Status and body of an operation's error. */
export function toErrorResponse({ code, message, field }: OperationError): {
  readonly status: number;
  readonly body: ErrorBody;
} {
  return { status: ERROR_CODES[code].status, body: errorBody(code, message, field) };
}

export function errorBody(code: ErrorCode, message: string, field: string | null): ErrorBody {
  return { result: 'error', code, message, ...(field === null ? {} : { field }) };
}

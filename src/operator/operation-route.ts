/**
 * The HTTP adapter of operations. A route is a method, a path and an operation. Path parameters, query parameters and
 * body members are the input. The result is the response body. An error code determines the status, so a client need
 * not parse the text of an error message.
 */
import type { TObject, TSchema } from 'typebox';
import { ERROR_CODES, type ErrorCode, type OperationError } from '../operations/errors.ts';
import { getInputMembers, isRequired } from '../operations/input.ts';
import { type Operation, type OperationResult, perform, type ServiceContext } from '../operations/operation.ts';
import { findControlCharacterFault } from './control-characters.ts';
import { AUTHENTICATION_ERRORS, BODY_ERRORS, type Parameter, type RouteDescription } from './route-description.ts';
import type { ErrorBody } from './schemas.ts';

export interface OperationRoute {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** The path relative to the base path of the API, with parameters in braces: `/accounts/{account}`. */
  readonly path: string;
  /** The section of the API reference. */
  readonly group: string;
  readonly operation: Operation<TObject, TSchema, ServiceContext>;
  /** The status of a successful response. */
  readonly status: 200 | 201;
  /** The members of the input that the route sets and a request cannot set. */
  readonly presetMembers: Readonly<Record<string, string>>;
  /**
   * True if requests during a run of the operation get the result of this run, so that two runs of the operation never
   * overlap in this process. Such an operation has no input.
   */
  readonly sharesRun: boolean;
}

/** The locations of the input members in a request. */
export interface RouteInput extends Pick<OperationRoute, 'path' | 'presetMembers'> {
  readonly input: TObject;
  /** The location of members that are not in the path. */
  readonly nonPathLocation: 'query' | 'body';
}

/**
 * Members that are not in the path are in the query of a GET or DELETE request, and in the body of any other request.
 */
export function createRouteInput({ method, path, presetMembers, operation }: OperationRoute): RouteInput {
  const nonPathLocation = method === 'GET' || method === 'DELETE' ? 'query' : 'body';
  return { path, presetMembers, input: operation.input, nonPathLocation };
}

/** Creates a route. */
export function createOperationRoute(
  method: OperationRoute['method'],
  path: string,
  group: string,
  operation: OperationRoute['operation'],
  status: OperationRoute['status'] = 200,
  presetMembers: OperationRoute['presetMembers'] = {},
  sharesRun = false,
): OperationRoute {
  return { method, path, group, operation, status, presetMembers, sharesRun };
}

/** Returns the description of a route for the OpenAPI document and the API reference. */
export function describeRoute(route: OperationRoute): RouteDescription {
  const { method, path, group, status, operation } = route;
  return {
    method,
    path,
    group,
    operationId: operation.id,
    summary: operation.summary,
    parameters: describeParameters(createRouteInput(route)),
    success: [{ status, schema: operation.makesChange ? addWarningsToSchema(operation.result) : operation.result }],
    errors: [
      ...AUTHENTICATION_ERRORS,
      ...(method === 'GET' ? [] : BODY_ERRORS),
      ...operation.errors.map((code) => ERROR_CODES[code].status),
    ],
  };
}

/** Returns the descriptions of the parameters of a route. */
export function describeParameters({ path, presetMembers, input, nonPathLocation }: RouteInput): readonly Parameter[] {
  const pathNames = listPathParameters(path);
  const settableMembers = Object.entries(getInputMembers(input)).filter(
    ([name]) => !Object.hasOwn(presetMembers, name),
  );
  return settableMembers.map(([name, member]): Parameter => {
    const { type, description, errorMessage, ...otherKeywords } = member as {
      readonly type?: string;
      readonly description?: string;
      readonly errorMessage?: string;
    };
    return {
      name,
      in: pathNames.includes(name) ? 'path' : nonPathLocation,
      type: type === 'integer' || type === 'boolean' ? type : 'string',
      description: description ?? '',
      schema: { ...(type === undefined ? {} : { type }), ...otherKeywords },
      ...(isRequired(input, name) ? { required: true } : {}),
    };
  });
}

/** Adds the member `warnings` to the schema of a result, if the result is an object. */
export function addWarningsToSchema(result: TSchema): object {
  const { type, properties } = result as { readonly type?: string; readonly properties?: object };
  return type === 'object' ? { ...result, properties: { ...properties, warnings: WARNINGS_SCHEMA } } : result;
}

const WARNINGS_SCHEMA = {
  type: 'array',
  description: 'Warnings of an operation that succeeded. Absent if there are none.',
  items: {
    type: 'object',
    required: ['code', 'message'],
    properties: { code: { type: 'string' }, message: { type: 'string' } },
    additionalProperties: false,
  },
} as const;

/** Returns the names of the parameters in a path. */
export function listPathParameters(path: string): readonly string[] {
  return path.split('/').flatMap((part) => (part.startsWith('{') ? [part.slice(1, -1)] : []));
}

/** The parts of a request that contain input members. */
export interface RequestParts {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
}

/**
 * Returns the input members of a request. Returns the body of a response with status 400 if a member is unknown, in the
 * wrong location, or contains control characters.
 */
export function readRequestInput(
  { path, presetMembers, input, nonPathLocation }: RouteInput,
  { params, query, body }: RequestParts,
):
  | { readonly ok: true; readonly members: Readonly<Record<string, unknown>> }
  | { readonly ok: false; readonly body: ErrorBody } {
  const createInvalidResult = (message: string, field: string | null) =>
    ({ ok: false, body: createErrorBody('invalid', message, field) }) as const;
  const pathNames = listPathParameters(path);
  const members = getInputMembers(input);
  const values: Record<string, unknown> = { ...presetMembers };
  for (const [location, source] of [
    ['path', params],
    ['query', query],
    ['body', body ?? {}],
  ] as const) {
    if (typeof source !== 'object' || source === null || Array.isArray(source)) {
      return createInvalidResult('The body must be a JSON object', null);
    }
    for (const [name, value] of Object.entries(source)) {
      const isKnown = Object.hasOwn(members, name) && !Object.hasOwn(presetMembers, name);
      const isExpected = location === 'path' || (isKnown && !pathNames.includes(name) && location === nonPathLocation);
      if (!isExpected)
        return createInvalidResult(`Unknown parameter in the ${location}: ${JSON.stringify(name)}`, null);
      if (typeof value === 'string') {
        const fault = findControlCharacterFault(name, value, members[name]?.['x-multiline'] === true);
        if (fault !== null) return createInvalidResult(fault, name);
      }
      values[name] = value;
    }
  }
  return { ok: true, members: values };
}

/** Performs the operation of a route. `members` are the input members of the request. */
export type PerformRoute = (
  route: OperationRoute,
  members: Readonly<Record<string, unknown>>,
  context: ServiceContext,
) => Promise<OperationResult<unknown>>;

/**
 * Creates the function that performs the operations of routes. Concurrent requests to a route with `sharesRun` share
 * one run.
 */
export function createPerformer(): PerformRoute {
  const currentRuns = new Map<OperationRoute, Promise<OperationResult<unknown>>>();
  return (route, members, context) => {
    const currentRun = currentRuns.get(route);
    if (currentRun !== undefined) return currentRun;
    const run = perform(route.operation, members, context);
    if (!route.sharesRun) return run;
    const sharedRun = run.finally(() => currentRuns.delete(route));
    currentRuns.set(route, sharedRun);
    return sharedRun;
  };
}

/** Returns the status and body for the result of an operation. */
export function toResponse(
  route: OperationRoute,
  { warnings, ...outcome }: OperationResult<unknown>,
): { readonly status: number; readonly body: unknown } {
  if (outcome.ok) {
    const { value } = outcome;
    const hasWarnings = warnings.length > 0 && typeof value === 'object' && value !== null && !Array.isArray(value);
    return { status: route.status, body: hasWarnings ? { ...value, warnings } : value };
  }
  return toErrorResponse(outcome.error);
}

/** Returns the status and body for an error of an operation. */
export function toErrorResponse({ code, message, field }: OperationError): {
  readonly status: number;
  readonly body: ErrorBody;
} {
  return { status: ERROR_CODES[code].status, body: createErrorBody(code, message, field) };
}

export function createErrorBody(code: ErrorCode, message: string, field: string | null): ErrorBody {
  return { result: 'error', code, message, ...(field === null ? {} : { field }) };
}

/** The HTTP adapter of operations: path, query and body are the input, and an error code determines the status. */

import type { FastifyReply } from 'fastify';
import type { TObject, TSchema } from 'typebox';
import type { ErrorResult } from '../operations/errors.ts';
import { ERROR_CODES, type ErrorCode, type OperationError } from '../operations/errors.ts';
import { getInputMembers, isRequired } from '../operations/input.ts';
import { type Operation, type OperationResult, perform, type ServiceContext } from '../operations/operation.ts';
import { STORE_RETRY_MS } from './refusal.ts';
import {
  AUTHENTICATION_ERRORS,
  BODY_ERRORS,
  type ErrorBody,
  type Parameter,
  type RouteDescription,
} from './schemas.ts';

export interface OperationRoute {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Relative to the API, with parameters in braces: `/accounts/{account}`. */
  readonly path: string;
  readonly group: string;
  readonly operation: Operation<TObject, TSchema, ServiceContext>;
  readonly status: 200 | 201;
  /** Set by the route. A request cannot set them. */
  readonly presetMembers: Readonly<Record<string, string>>;
  /** Requests during a run get its result, so that two runs never overlap. The operation has no input. */
  readonly sharesRun: boolean;
}

export interface RouteInput extends Pick<OperationRoute, 'path' | 'presetMembers'> {
  readonly input: TObject;
  readonly nonPathLocation: 'query' | 'body';
}

export function createRouteInput({ method, path, presetMembers, operation }: OperationRoute): RouteInput {
  const nonPathLocation = method === 'GET' || method === 'DELETE' ? 'query' : 'body';
  return { path, presetMembers, input: operation.input, nonPathLocation };
}

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
      description: description ?? '',
      schema: { ...(type === undefined ? {} : { type }), ...otherKeywords },
      ...(isRequired(input, name) ? { required: true } : {}),
    };
  });
}

/** If the result is an object. */
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

export function listPathParameters(path: string): readonly string[] {
  return path.split('/').flatMap((part) => (part.startsWith('{') ? [part.slice(1, -1)] : []));
}

export interface RequestParts {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
}

/** Or the body of a 400 for a member that is unknown, in the wrong location, or contains control characters. */
export function readRequestInput(
  { path, presetMembers, input, nonPathLocation }: RouteInput,
  { params, query, body }: RequestParts,
):
  | { readonly ok: true; readonly members: Readonly<Record<string, unknown>> }
  | { readonly ok: false; readonly body: ErrorBody } {
  const createInvalidResult = (message: string, field: string | null) =>
    ({ ok: false, body: createOperationErrorBody('invalid', message, field) }) as const;
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

export type PerformRoute = (
  route: OperationRoute,
  members: Readonly<Record<string, unknown>>,
  context: ServiceContext,
) => Promise<OperationResult<unknown>>;

/** Requests to a route with `sharesRun` share one run. */
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

export function toErrorResponse({ code, message, field }: OperationError): {
  readonly status: number;
  readonly body: ErrorBody;
} {
  return { status: ERROR_CODES[code].status, body: createOperationErrorBody(code, message, field) };
}

export function sendError(reply: FastifyReply, { error }: ErrorResult): FastifyReply {
  if (error.code === 'unavailable') reply.header('Retry-After', STORE_RETRY_MS / 1000);
  const { status, body } = toErrorResponse(error);
  return reply.code(status).send(body);
}

function createOperationErrorBody(code: ErrorCode, message: string, field: string | null): ErrorBody {
  return { result: 'error', code, message, ...(field === null ? {} : { field }) };
}

// No input needs control characters. PostgreSQL cannot store NUL, but SQLite can.

/** A text of several lines may contain tabs and line ends. */
function findControlCharacterFault(name: string, value: string, isMultiline: boolean): string | null {
  const text = isMultiline ? value.replace(/[\t\n\r]/g, '') : value;
  return /\p{Cc}/u.test(text) ? `${name} must not contain control characters` : null;
}

/** The types of the descriptions of routes, for the OpenAPI document and the API reference. */

export type ParameterLocation = 'path' | 'query' | 'body';

export interface Parameter {
  readonly name: string;
  readonly in: ParameterLocation;
  readonly type: 'string' | 'integer' | 'boolean';
  readonly required?: true;
  readonly description: string;
  /** The JSON Schema of the parameter. The default schema contains only `type`. */
  readonly schema?: object;
}

/** A successful response of a route. */
export interface Success {
  /** The status of the response, by default 200. */
  readonly status?: number;
  /** The media type of the response, by default JSON. */
  readonly type?: string;
  /** The JSON Schema of the body. It is a string schema for a text media type. */
  readonly schema: object;
  /** The JSON Schema of each line or of the data of each event, if the body is a sequence. */
  readonly item?: object;
}

/** The description of a route. */
export interface RouteDescription {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** The path relative to the base path of the API, with parameters in braces. */
  readonly path: string;
  /** True if the path is not relative to the base path of the API. */
  readonly isOutsideApi?: true;
  readonly operationId: string;
  readonly group: string;
  readonly summary: string;
  readonly parameters: readonly Parameter[];
  /** The credentials that a request needs. By default, a request needs the credentials of the API. */
  readonly access?: 'none' | 'token-or-password';
  /** The media type of the request body, if the body is not JSON. */
  readonly requestType?: string;
  /** A further description, with code in backticks. */
  readonly notes?: string;
  /** The successful responses, at least one. */
  readonly success: readonly Success[];
  /** The error statuses of the route, except those of errors that occur before routing. */
  readonly errors: readonly number[];
}

/** The error statuses of every route that requires authentication. */
export const AUTHENTICATION_ERRORS: readonly number[] = [400, 401, 403, 429, 503];
/** The error statuses of every route that reads a body. */
export const BODY_ERRORS: readonly number[] = [413, 415];

const ACCOUNT_PARAMETER: Parameter = {
  name: 'account',
  in: 'path',
  type: 'string',
  required: true,
  description: 'The name of the account.',
};
export const LIST_PARAMETER: Parameter = {
  ...ACCOUNT_PARAMETER,
  description: 'The name of the account, or `*` for the list of the whole service.',
};
export const MESSAGE_PARAMETER: Parameter = {
  name: 'id',
  in: 'path',
  type: 'string',
  required: true,
  description: 'The id of the message.',
};

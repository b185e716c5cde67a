/** The types of the descriptions of routes, for the OpenAPI document and the API reference. */

export type ParameterLocation = 'path' | 'query' | 'body';

export interface Parameter {
  readonly name: string;
  readonly in: ParameterLocation;
  readonly type: 'string' | 'integer' | 'boolean';
  readonly required?: true;
  readonly description: string;
  /** By default only `type`. */
  readonly schema?: object;
}

export interface Success {
  /** By default 200. */
  readonly status?: number;
  /** By default JSON. */
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
  readonly access?: 'none' | 'token-or-password';
  /** If the body is not JSON. */
  readonly requestType?: string;
  /** With code in backticks. */
  readonly notes?: string;
  /** At least one. */
  readonly success: readonly Success[];
  /** Without the errors that occur before routing. */
  readonly errors: readonly number[];
}

/** Of every route that requires authentication. */
export const AUTHENTICATION_ERRORS: readonly number[] = [400, 401, 403, 429, 503];
/** Of every route that reads a body. */
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

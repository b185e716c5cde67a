/** A route as the OpenAPI document and the API reference describe it. */

export type ParameterLocation = 'path' | 'query' | 'body';

export interface Parameter {
  readonly name: string;
  readonly in: ParameterLocation;
  readonly type: 'string' | 'integer' | 'boolean';
  readonly required?: true;
  readonly description: string;
  /** Its JSON Schema; `type` alone unless given. */
  readonly schema?: object;
}

/** One answer of a route that is no error. */
export interface Success {
  /** 200 unless given. */
  readonly status?: number;
  /** Media type; JSON unless given. */
  readonly type?: string;
  /** The JSON Schema of the body; a string where the media type is text. */
  readonly schema: object;
  /** Where the body is a sequence: the JSON Schema of the data of each event, or of each line. */
  readonly item?: object;
}

/** A route as the document and the reference describe it. */
export interface RouteDescription {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Below the base of the API, parameters in braces. */
  readonly path: string;
  /** The path stands alone, without the base of the API. */
  readonly outsideApi?: true;
  readonly operationId: string;
  readonly group: string;
  readonly summary: string;
  readonly parameters: readonly Parameter[];
  /** Credentials that a request needs; those of the API unless given. */
  readonly access?: 'none' | 'password';
  /** Media type of a body that is no JSON. */
  readonly takes?: string;
  /** What else there is to know; code between backticks. */
  readonly notes?: string;
  /** At least one. */
  readonly success: readonly Success[];
  /** The statuses of errors, besides those that any request can meet before it reaches a route. */
  readonly errors: readonly number[];
}

/** Errors of every route behind sign-in. */
export const SIGNED_IN_ERRORS: readonly number[] = [400, 401, 403, 429, 503];
/** Errors of every route that reads a body. */
export const BODY_ERRORS: readonly number[] = [413, 415];

const ACCOUNT: Parameter = {
  name: 'account',
  in: 'path',
  type: 'string',
  required: true,
  description: 'The account’s name.',
};
export const LIST_PARAMETER: Parameter = {
  ...ACCOUNT,
  description: 'The account’s name, or `*` for the list of the whole service.',
};
export const MESSAGE_PARAMETER: Parameter = {
  name: 'id',
  in: 'path',
  type: 'string',
  required: true,
  description: 'The message’s id.',
};

/** A route as the OpenAPI document and the API reference describe it. */

export type Place = 'path' | 'query' | 'body';

export interface Parameter {
  readonly name: string;
  readonly in: Place;
  readonly type: 'string' | 'integer' | 'boolean';
  readonly required?: true;
  readonly about: string;
  /** Its JSON Schema; `type` alone unless given. */
  readonly schema?: object;
}

/** A route as the document and the reference tell of it. */
export interface Described {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Parameters of the path in braces. */
  readonly path: string;
  readonly operation: string;
  readonly group: string;
  readonly summary: string;
  readonly parameters: readonly Parameter[];
  /** Media type of the answer; JSON unless given. */
  readonly answer?: string;
  /** Media type of a body that is no JSON. */
  readonly takes?: string;
  /** What else there is to know; code between backticks. */
  readonly notes?: string;
  /** The status of success and the JSON Schema of the answer, of a route that is an operation. */
  readonly status?: number;
  readonly result?: object;
}

/** The status of an answer that is no refusal. */
export function successOf({ status }: Described): number {
  return status ?? 200;
}

const ACCOUNT: Parameter = {
  name: 'account',
  in: 'path',
  type: 'string',
  required: true,
  about: 'The account’s name.',
};
export const LIST: Parameter = { ...ACCOUNT, about: 'The account’s name, or `*` for the list of the whole service.' };
export const MESSAGE: Parameter = {
  name: 'id',
  in: 'path',
  type: 'string',
  required: true,
  about: 'The mail request’s id.',
};

/** Client of the operator API. Every failure is an ApiError: with the message of the service, or `status` 0 without an answer. */
import type { ErrorBody } from '../../../src/operator/schemas.ts';
import { sessionHeader } from './session-secret';

const API = '/api/v1';

export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** HTTP status; 0 where there was no answer. */
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Query members that are empty are left out. */
export type Query = Readonly<Record<string, string | number | undefined>>;

/** The path with its values encoded: path`/accounts/${name}/keys`. */
export function path(parts: TemplateStringsArray, ...values: readonly (string | number)[]): string {
  return parts.reduce((made, part, at) => made + encodeURIComponent(String(values[at - 1])) + part);
}

export function get<T>(at: string, query: Query = {}): Promise<T> {
  return request<T>('GET', withQuery(at, query));
}

/** An answer that is not JSON, as text. */
export async function getText(at: string): Promise<string> {
  const response = await send('GET', at);
  return response.text();
}

export function post<T>(at: string, body: object = {}): Promise<T> {
  return request<T>('POST', at, body);
}

export function patch<T>(at: string, body: object): Promise<T> {
  return request<T>('PATCH', at, body);
}

export function remove<T>(at: string): Promise<T> {
  return request<T>('DELETE', at);
}

/** The URL of a file that the browser opens or downloads. */
export function url(at: string, query: Query = {}): string {
  return API + withQuery(at, query);
}

function withQuery(at: string, query: Query): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text === '' ? at : `${at}?${text}`;
}

async function request<T>(method: string, at: string, body?: object): Promise<T> {
  const response = await send(method, at, body);
  return (await response.json()) as T;
}

async function send(method: string, at: string, body?: object): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(API + at, {
      method,
      headers: { ...sessionHeader(), ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  } catch {
    throw new ApiError(0, 'The service does not answer. Check that it is running.');
  }
  if (response.ok) return response;
  throw apiErrorOf(response.status, await response.text().catch(() => ''));
}

/** The error of a refused request. */
export function apiErrorOf(status: number, body: string): ApiError {
  try {
    const { message } = JSON.parse(body) as Partial<ErrorBody>;
    if (typeof message === 'string') return new ApiError(status, message);
  } catch {
    // Not an answer of the service: a proxy answered.
  }
  return new ApiError(status, `The service answered with status ${status}`);
}

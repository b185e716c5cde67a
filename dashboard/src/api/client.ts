/** Talks to the operator API. Every failure is an ApiError with the service's own line, or one that says it cannot be reached. */
import type { ErrorBody } from '../../../src/operator/schemas.ts';
import { sessionHeader } from './secret';

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

/** The path with its segments encoded: path`/accounts/${name}/keys`. */
export function path(parts: TemplateStringsArray, ...values: readonly (string | number)[]): string {
  return parts.reduce((made, part, at) => made + encodeURIComponent(String(values[at - 1])) + part);
}

export function get<T>(at: string, query: Query = {}): Promise<T> {
  return ask<T>('GET', withQuery(at, query));
}

/** What is no JSON, as text. */
export async function getText(at: string): Promise<string> {
  const response = await answer('GET', at);
  return response.text();
}

export function post<T>(at: string, body: object = {}): Promise<T> {
  return ask<T>('POST', at, body);
}

export function patch<T>(at: string, body: object): Promise<T> {
  return ask<T>('PATCH', at, body);
}

export function remove<T>(at: string): Promise<T> {
  return ask<T>('DELETE', at);
}

/** The URL of something that is opened or downloaded rather than read here. */
export function url(at: string, query: Query = {}): string {
  return API + withQuery(at, query);
}

function withQuery(at: string, query: Query): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text === '' ? at : `${at}?${text}`;
}

async function ask<T>(method: string, at: string, body?: object): Promise<T> {
  const response = await answer(method, at, body);
  return (await response.json()) as T;
}

async function answer(method: string, at: string, body?: object): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(API + at, {
      method,
      headers: { ...sessionHeader(), ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  } catch {
    throw new ApiError(0, 'The service cannot be reached; is it running?');
  }
  if (response.ok) return response;
  throw errorOf(response.status, await response.text().catch(() => ''));
}

/** What a refused request was answered with. */
export function errorOf(status: number, body: string): ApiError {
  try {
    const { message } = JSON.parse(body) as Partial<ErrorBody>;
    if (typeof message === 'string') return new ApiError(status, message);
  } catch {
    // Not our JSON: a proxy in between has answered.
  }
  return new ApiError(status, `The service answered ${status}`);
}

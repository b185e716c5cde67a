/**
 * Client of the operator API. Every failure is an ApiError with the error text of the service. Its `status` is 0 if
 * there was no response.
 */
import type { ErrorBody } from '../../../src/operator/schemas.ts';
import { getSessionHeader } from './session-secret';

const API = '/api/v1';

export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** HTTP status; 0 if there was no response. */
  readonly status: number;
  /** The parameter that caused the error; null unless exactly one parameter caused it. */
  readonly field: string | null;

  constructor(status: number, message: string, field: string | null = null) {
    super(message);
    this.status = status;
    this.field = field;
  }
}

/** The error of a request that got no response within its time limit. The service may still complete the request. */
export class ApiTimeout extends ApiError {}

/** The time limits of requests that read data and of requests that change data. */
const MAX_READ_MS = 30_000;
const MAX_CHANGE_MS = 60_000;

/** Query parameters. Empty parameters are omitted. */
export type Query = Readonly<Record<string, string | number | undefined>>;

/** Returns the path with its values encoded: path`/accounts/${name}/keys`. */
export function path(parts: TemplateStringsArray, ...values: readonly (string | number)[]): string {
  return parts.reduce((result, part, index) => result + encodeURIComponent(String(values[index - 1])) + part);
}

export function get<T>(apiPath: string, query: Query = {}, maxMs: number = MAX_READ_MS): Promise<T> {
  return requestJson<T>('GET', withQuery(apiPath, query), undefined, maxMs);
}

/** Requests a response that is not JSON, and returns it as text. */
export async function getText(apiPath: string): Promise<string> {
  const response = await sendRequest('GET', apiPath);
  return response.text();
}

/** Requests a file with the session header. Rejects if the connection ends before the file is complete. */
export async function getBlob(apiPath: string, query: Query = {}): Promise<Blob> {
  const response = await sendRequest('GET', withQuery(apiPath, query));
  try {
    return await response.blob();
  } catch {
    throw new ApiError(
      0,
      'The download ended before the file was complete. Check that the service is running, and try again.',
    );
  }
}

export function post<T>(apiPath: string, body: object = {}): Promise<T> {
  return requestJson<T>('POST', apiPath, body);
}

export function patch<T>(apiPath: string, body: object): Promise<T> {
  return requestJson<T>('PATCH', apiPath, body);
}

export function remove<T>(apiPath: string): Promise<T> {
  return requestJson<T>('DELETE', apiPath);
}

/** Returns the URL of a route of the operator API. */
export function buildApiUrl(apiPath: string, query: Query = {}): string {
  return API + withQuery(apiPath, query);
}

function withQuery(apiPath: string, query: Query): string {
  const definedMembers = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  const text = new URLSearchParams(definedMembers.map(([name, value]) => [name, String(value)])).toString();
  return text === '' ? apiPath : `${apiPath}?${text}`;
}

async function requestJson<T>(method: string, apiPath: string, body?: object, maxMs?: number): Promise<T> {
  const response = await sendRequest(method, apiPath, body, maxMs);
  return (await response.json()) as T;
}

/** Sends a request. `maxMs` is the time limit for the arrival of the response headers. */
async function sendRequest(
  method: string,
  apiPath: string,
  body?: object,
  maxMs: number = method === 'GET' ? MAX_READ_MS : MAX_CHANGE_MS,
): Promise<Response> {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), maxMs);
  let response: Response;
  try {
    response = await fetch(API + apiPath, {
      method,
      headers: { ...getSessionHeader(), ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: controller.signal,
    });
  } catch {
    if (controller.signal.aborted) throw new ApiTimeout(0, describeTimeout(method, maxMs));
    throw new ApiError(0, 'The service does not answer. Check that it is running.');
  } finally {
    clearTimeout(timer);
  }
  if (response.ok) return response;
  throw toApiError(response.status, await response.text().catch(() => ''));
}

function describeTimeout(method: string, maxMs: number): string {
  const fault = `The service has not answered within ${maxMs / 1000} s. Check that it is running.`;
  return method === 'GET'
    ? fault
    : `${fault} The service may still make this change. Reload the page before you repeat the change.`;
}

/** Returns the error of a refused request. */
export function toApiError(status: number, body: string): ApiError {
  try {
    const { message, field } = JSON.parse(body) as Partial<ErrorBody>;
    if (typeof message === 'string') return new ApiError(status, message, field ?? null);
  } catch {
    // The response is not from the service but from a proxy.
  }
  return new ApiError(
    status,
    `The response with status ${status} is not from the service. Check the proxy in front of the service`,
  );
}

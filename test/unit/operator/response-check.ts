/** Sends requests to a listener and holds each answer against the OpenAPI document: status, headers, media type and body. */
import { type IncomingHttpHeaders, request } from 'node:http';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'vitest';

/** What a request gives beside its method. */
export interface RequestOptions {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  /** An object is sent as JSON. */
  readonly body?: object | string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The loopback address that asks; limits of wrong credentials are by address. */
  readonly localAddress?: string;
  /** How many Host headers there are; 1 unless given. */
  readonly hostHeaderCount?: number;
  /** The answer is read until this is in it; to its end unless given. */
  readonly readUntil?: string;
  /** Called with the first octets of the answer's body. */
  readonly onFirstBytes?: () => void;
}

export interface ReceivedResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

interface Media {
  readonly schema?: object;
  readonly 'x-item-schema'?: object;
}

interface Responses {
  readonly headers?: Readonly<Record<string, { readonly required?: boolean }>>;
  readonly content: Readonly<Record<string, Media>>;
}

export interface DocumentedOperation {
  readonly operationId: string;
  /** Absent where those of the whole document hold. */
  readonly security?: readonly object[];
  readonly responses: Readonly<Record<string, Responses | { readonly $ref: string }>>;
}

/** The parts of the document that are read here. */
export interface ApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, DocumentedOperation>>>>;
  readonly components: {
    readonly responses: Readonly<Record<string, Responses>>;
    readonly schemas: Readonly<Record<string, object>>;
  };
}

/** One request over a connection of its own. */
export function sendRequest(
  url: string,
  method: string,
  target: string,
  given: RequestOptions = {},
): Promise<ReceivedResponse> {
  const { hostname, port, host } = new URL(url);
  const { body, localAddress: from, hostHeaderCount: hosts = 1, readUntil: until, onFirstBytes: began } = given;
  const text = typeof body === 'object' ? JSON.stringify(body) : body;
  const headers: Record<string, string> = { Connection: 'close' };
  if (method !== 'GET' && method !== 'HEAD') headers['Content-Length'] = '0';
  if (text !== undefined) {
    headers['Content-Length'] = String(Buffer.byteLength(text));
    headers['Content-Type'] = 'application/json';
  }
  const lines = Object.entries({ ...headers, ...given.headers }).flat();
  for (let n = 0; n < hosts; n += 1) lines.push('Host', host);
  const { promise, resolve, reject } = Promise.withResolvers<ReceivedResponse>();
  const where = { hostname, port, method, path: target, headers: lines, agent: false };
  const asked = request(from === undefined ? where : { ...where, localAddress: from }, (answer) => {
    let received = '';
    const end = () => {
      resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text: received });
      asked.destroy();
    };
    answer.setEncoding('utf8');
    answer.on('data', (chunk: string) => {
      if (received === '') began?.();
      received += chunk;
      if (until !== undefined && received.includes(until)) end();
    });
    answer.on('end', end);
  });
  asked.on('error', reject);
  asked.end(text);
  return promise;
}

/** The path with its parameters filled in, and the query. */
export function targetOf(path: string, { path: parameters = {}, query = {} }: RequestOptions): string {
  const filled = path.replace(/\{([^}]+)\}/g, (_whole, name: string) => encodeURIComponent(parameters[name] ?? 'x'));
  const text = new URLSearchParams(query).toString();
  return text === '' ? filled : `${filled}?${text}`;
}

const FORMATS = {
  'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/,
  uuid: /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/,
};

/** Holds answers against one document. */
export function createResponseCheck(document: ApiDocument) {
  const ajv = new Ajv2020({ strict: false, formats: FORMATS });

  function expectValid(what: string, schema: object, value: unknown): void {
    const isValid = ajv.compile(closed(schema, document.components.schemas) as object);
    if (isValid(value)) return;
    const faults = (isValid.errors ?? []).map(({ instancePath, message, params }) => ({
      instancePath,
      message,
      params,
    }));
    throw new Error(`${what} is not as its schema says: ${JSON.stringify(faults)} in ${JSON.stringify(value)}`);
  }

  /** Fails where the document does not have the answer, or has it otherwise. `isHead`: it has no body. */
  return ({ operationId, responses }: DocumentedOperation, got: ReceivedResponse, isHead = false): void => {
    const what = `${operationId} ${got.status}`;
    const written = responses[got.status];
    if (written === undefined) throw new Error(`${what} is not in the document: ${got.text}`);
    const response = '$ref' in written ? document.components.responses[written.$ref.split('/').at(-1) ?? ''] : written;
    if (response === undefined) throw new Error(`${what} refers to nothing`);
    for (const [name, { required }] of Object.entries(response.headers ?? {})) {
      if (required) expect([what, name, typeof got.headers[name.toLowerCase()]]).toEqual([what, name, 'string']);
    }
    const [essence = ''] = (got.headers['content-type'] ?? '').split(';');
    const media = response.content[essence];
    if (media?.schema === undefined) throw new Error(`${what} has no schema for the media type "${essence}"`);
    if (isHead) {
      expect([what, got.text]).toEqual([what, '']);
      return;
    }
    // Every answer says what it is: a schema that takes anything is none.
    expect([what, Object.keys(media.schema).length > 0]).toEqual([what, true]);
    expectValid(what, media.schema, essence === 'application/json' ? JSON.parse(got.text) : got.text);
    const item = media['x-item-schema'];
    if (item !== undefined) for (const one of itemsOf(essence, got.text)) expectValid(`${what} item`, item, one);
  };
}

/** The data of each event, or each line. */
function itemsOf(type: string, text: string): readonly unknown[] {
  const lines = text.split('\n').filter((line) => line !== '');
  const data =
    type === 'text/event-stream'
      ? lines.filter((line) => line.startsWith('data: ')).map((line) => line.slice('data: '.length))
      : lines;
  expect(data.length).toBeGreaterThan(0);
  return data.map((one) => JSON.parse(one) as unknown);
}

/** The schema with its references resolved and every object closed, so that a member which it does not name is found. */
function closed(schema: unknown, named: Readonly<Record<string, object>>): unknown {
  if (Array.isArray(schema)) return schema.map((one) => closed(one, named));
  if (typeof schema !== 'object' || schema === null) return schema;
  if ('$ref' in schema) return closed(named[String(schema.$ref).split('/').at(-1) ?? ''] ?? false, named);
  const inner = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, closed(value, named)]));
  return 'properties' in schema ? { ...inner, additionalProperties: false } : inner;
}

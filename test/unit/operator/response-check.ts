import { type IncomingHttpHeaders, request } from 'node:http';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'vitest';

export interface RequestOptions {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: object | string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The loopback address of the client. Limits for wrong credentials apply per address. */
  readonly localAddress?: string;
  /** The number of Host headers. The default is 1. */
  readonly hostHeaderCount?: number;
  /** The response is read until it contains this text. By default it is read to its end. */
  readonly readUntil?: string;
  /** Runs when the first bytes of the response body arrive. */
  readonly onFirstBytes?: () => void;
}

export interface ReceivedResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

interface MediaTypeObject {
  readonly schema?: object;
  readonly 'x-item-schema'?: object;
}

interface DocumentedResponse {
  readonly headers?: Readonly<Record<string, { readonly required?: boolean }>>;
  readonly content: Readonly<Record<string, MediaTypeObject>>;
}

export interface DocumentedOperation {
  readonly operationId: string;
  /** The security requirements of the operation; absent if those of the document apply. */
  readonly security?: readonly object[];
  readonly responses: Readonly<Record<string, DocumentedResponse | { readonly $ref: string }>>;
}

export interface ApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, DocumentedOperation>>>>;
  readonly components: {
    readonly responses: Readonly<Record<string, DocumentedResponse>>;
    readonly schemas: Readonly<Record<string, object>>;
  };
}

export function sendRequest(
  url: string,
  method: string,
  target: string,
  options: RequestOptions = {},
): Promise<ReceivedResponse> {
  const { hostname, port, host } = new URL(url);
  const { body, localAddress, hostHeaderCount = 1, readUntil, onFirstBytes } = options;
  const text = typeof body === 'object' ? JSON.stringify(body) : body;
  const headers: Record<string, string> = { Connection: 'close' };
  if (method !== 'GET' && method !== 'HEAD') headers['Content-Length'] = '0';
  if (text !== undefined) {
    headers['Content-Length'] = String(Buffer.byteLength(text));
    headers['Content-Type'] = 'application/json';
  }
  const lines = Object.entries({ ...headers, ...options.headers }).flat();
  for (let n = 0; n < hostHeaderCount; n += 1) lines.push('Host', host);
  const { promise, resolve, reject } = Promise.withResolvers<ReceivedResponse>();
  const requestOptions = { hostname, port, method, path: target, headers: lines, agent: false };
  const outgoingRequest = request(
    localAddress === undefined ? requestOptions : { ...requestOptions, localAddress },
    (answer) => {
      let receivedText = '';
      const end = () => {
        resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text: receivedText });
        outgoingRequest.destroy();
      };
      answer.setEncoding('utf8');
      answer.on('data', (chunk: string) => {
        if (receivedText === '') onFirstBytes?.();
        receivedText += chunk;
        if (readUntil !== undefined && receivedText.includes(readUntil)) end();
      });
      answer.on('end', end);
    },
  );
  outgoingRequest.on('error', reject);
  outgoingRequest.end(text);
  return promise;
}

export function createTarget(path: string, { path: parameters = {}, query = {} }: RequestOptions): string {
  const filledPath = path.replace(/\{([^}]+)\}/g, (_whole, name: string) =>
    encodeURIComponent(parameters[name] ?? 'x'),
  );
  const text = new URLSearchParams(query).toString();
  return text === '' ? filledPath : `${filledPath}?${text}`;
}

const FORMATS = {
  'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/,
  uuid: /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/,
};

export function createResponseCheck(document: ApiDocument) {
  const ajv = new Ajv2020({ strict: false, formats: FORMATS });

  function expectValid(label: string, schema: object, value: unknown): void {
    const isValid = ajv.compile(closeSchema(schema, document.components.schemas) as object);
    if (isValid(value)) return;
    const faults = (isValid.errors ?? []).map(({ instancePath, message, params }) => ({
      instancePath,
      message,
      params,
    }));
    throw new Error(`${label} does not match its schema: ${JSON.stringify(faults)} in ${JSON.stringify(value)}`);
  }

  /**
   * Throws if the document does not contain the response or describes it differently. `isHead` is true for a response
   * without a body.
   */
  return ({ operationId, responses }: DocumentedOperation, received: ReceivedResponse, isHead = false): void => {
    const label = `${operationId} ${received.status}`;
    const documentedResponse = responses[received.status];
    if (documentedResponse === undefined) throw new Error(`${label} is not in the document: ${received.text}`);
    const response =
      '$ref' in documentedResponse
        ? document.components.responses[documentedResponse.$ref.split('/').at(-1) ?? '']
        : documentedResponse;
    if (response === undefined) throw new Error(`${label} has a reference that does not resolve`);
    for (const [name, { required }] of Object.entries(response.headers ?? {})) {
      if (required) expect([label, name, typeof received.headers[name.toLowerCase()]]).toEqual([label, name, 'string']);
    }
    const [mediaType = ''] = (received.headers['content-type'] ?? '').split(';');
    const media = response.content[mediaType];
    if (media?.schema === undefined) throw new Error(`${label} has no schema for the media type "${mediaType}"`);
    if (isHead) {
      expect([label, received.text]).toEqual([label, '']);
      return;
    }
    // An empty schema accepts any value, so it is not allowed.
    expect([label, Object.keys(media.schema).length > 0]).toEqual([label, true]);
    expectValid(label, media.schema, mediaType === 'application/json' ? JSON.parse(received.text) : received.text);
    const item = media['x-item-schema'];
    if (item !== undefined)
      for (const value of parseItems(mediaType, received.text)) expectValid(`${label} item`, item, value);
  };
}

function parseItems(type: string, text: string): readonly unknown[] {
  const lines = text.split('\n').filter((line) => line !== '');
  const data =
    type === 'text/event-stream'
      ? lines.filter((line) => line.startsWith('data: ')).map((line) => line.slice('data: '.length))
      : lines;
  expect(data.length).toBeGreaterThan(0);
  return data.map((value) => JSON.parse(value) as unknown);
}

/**
 * Resolves the references of a schema and disallows unknown members in each object, so undocumented members are
 * detected.
 */
export function closeSchema(schema: unknown, schemas: Readonly<Record<string, object>>): unknown {
  if (Array.isArray(schema)) return schema.map((value) => closeSchema(value, schemas));
  if (typeof schema !== 'object' || schema === null) return schema;
  if ('$ref' in schema) return closeSchema(schemas[String(schema.$ref).split('/').at(-1) ?? ''] ?? false, schemas);
  const closedMembers = Object.fromEntries(
    Object.entries(schema).map(([name, value]) => [name, closeSchema(value, schemas)]),
  );
  return 'properties' in schema ? { ...closedMembers, additionalProperties: false } : closedMembers;
}

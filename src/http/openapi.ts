/** A test compares it with openapi.json. */
import type { Static } from 'typebox';
import { SEND_MAIL_PATH } from '../model/outcome.ts';
import { Type } from '../model/schema.ts';
import { ERROR_CODES, type ErrorCode, formatErrorMessage, getErrorEntry } from './errors.ts';

// A test compares these with `validateSubmission`, which alone has the rules that JSON Schema lacks.

export const MailRequest = Type.Object(
  {
    to: Type.String({
      minLength: 1,
      maxLength: 254,
      format: 'email',
      description: 'Recipient email address: one bare address without a display name.',
    }),
    from: Type.String({
      minLength: 1,
      maxLength: 254,
      format: 'email',
      description: 'Sender email address. Its domain must be authenticated for the account.',
    }),
    subject: Type.String({
      minLength: 1,
      maxLength: 998,
      description: 'Subject line: at most 998 bytes in UTF-8, without line breaks.',
    }),
    message: Type.String({
      minLength: 1,
      description:
        'Message body. It is sent as HTML if it begins with `<!doctype html` or `<html`, and otherwise as plain text.',
    }),
  },
  {
    description:
      'One message. Unknown members are ignored. A response with status 201 lists them in Postrider-Ignored-Fields.',
  },
);
export type MailRequest = Static<typeof MailRequest>;

export const MailCreated = Type.Object(
  {
    result: Type.Object(
      { id: Type.String({ format: 'uuid', description: 'Unique identifier of the mail request.' }) },
      { additionalProperties: false },
    ),
  },
  {
    additionalProperties: false,
    description: 'The mail request is stored durably and will end in exactly one terminal state.',
  },
);
export type MailCreated = Static<typeof MailCreated>;

export const ErrorResponse = Type.Object(
  {
    result: Type.Literal('error'),
    message: Type.String({ description: 'Error message for humans.' }),
  },
  { additionalProperties: false, description: 'The body of every error response.' },
);
export type ErrorResponse = Static<typeof ErrorResponse>;

export const HealthResponse = Type.Object(
  { result: Type.Literal('ok'), message: Type.String() },
  { additionalProperties: false, description: 'The result of a health check.' },
);
export type HealthResponse = Static<typeof HealthResponse>;

export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json };
type JsonObject = { readonly [name: string]: Json };

const EXAMPLE_ID = '01936f2e-7c4b-7a10-9b1e-5d0c3a9f4e21';

const HEADERS: Readonly<
  Record<string, { readonly description: string; readonly schema: JsonObject; readonly example: Json }>
> = {
  Allow: { description: 'The methods of this path.', schema: { type: 'string' }, example: 'POST' },
  'Idempotency-Replayed': {
    description:
      'Present if the same Idempotency-Key and payload were accepted before. The id is that of the first request.',
    schema: { type: 'string', const: 'true' },
    example: 'true',
  },
  'Postrider-Ignored-Fields': {
    description:
      'Names of unknown members of the body, which are ignored. At most 10 names, in the order of the body. Only names of 1 to 64 ASCII letters, digits, hyphens and underscores are listed. Absent if there are none.',
    schema: { type: 'string' },
    example: 'cc, attachments',
  },
  'Postrider-Reason': {
    description: 'The reason why the request is refused.',
    schema: {
      type: 'string',
      enum: ['volume-exhausted', 'volume-expired', 'rate-limit-exceeded', 'sender-not-authenticated'],
    },
    example: 'volume-exhausted',
  },
  RateLimit: {
    description: 'The remaining quota of each configured limit (draft-ietf-httpapi-ratelimit-headers).',
    schema: { type: 'string' },
    example: '"throttle";r=199;t=1, "rate";r=999;t=3600',
  },
  'RateLimit-Policy': {
    description: 'The configured limits (draft-ietf-httpapi-ratelimit-headers).',
    schema: { type: 'string' },
    example: '"throttle";q=200;w=4, "rate";q=1000;w=3600',
  },
  'Retry-After': {
    description: 'The number of seconds after which the client can retry. At least 1.',
    schema: { type: 'integer', minimum: 1 },
    example: 1,
  },
};

const STATUS_SUMMARIES: Readonly<Record<number, string>> = {
  400: 'Validation errors',
  401: 'Authentication errors',
  403: 'Forbidden: invalid tokens, volume expired or used up, or rate limit exceeded',
  404: 'Not found',
  405: 'Method not allowed',
  408: 'Request timeout',
  417: 'Expectation failed',
  429: 'Too many requests (throttling)',
  431: 'Request header fields too large',
  500: 'Internal server error',
  503: 'Not ready',
};

const OTHER_ROUTE_CODES: ReadonlySet<ErrorCode> = new Set(['not-found', 'method-not-allowed', 'not-ready']);

export function createOpenApiDocument(): JsonObject {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Transactional Email Sending Service',
      version: '1.0.0',
      description: 'Submits one transactional email message per request.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: 'http://127.0.0.1:8080', description: 'The default address of the public listener' }],
    tags: [
      { name: 'mail', description: 'Submission of messages' },
      { name: 'health', description: 'Health checks for load balancers and process supervisors' },
    ],
    security: [{ apiKey: [] }],
    paths: {
      [SEND_MAIL_PATH]: { post: createSendMailOperation() },
      '/healthz': { get: createHealthOperation('getHealth', 'Check that the process responds', []) },
      '/readyz': {
        get: createHealthOperation('getReadiness', 'Check that the node accepts messages now', ['not-ready']),
      },
    },
    components: {
      securitySchemes: {
        apiKey: {
          type: 'apiKey',
          in: 'header',
          name: 'Authorization',
          description: 'The API key as the raw header value, without a scheme word.',
        },
      },
      schemas: {
        MailRequest: toPlainJson(MailRequest),
        MailCreated: toPlainJson(MailCreated),
        Error: toPlainJson(ErrorResponse),
        Health: toPlainJson(HealthResponse),
      },
      headers: Object.fromEntries(Object.entries(HEADERS).map(([name, header]) => [name, { ...header }])),
    },
  };
}

function createSendMailOperation(): JsonObject {
  return {
    operationId: 'sendMail',
    tags: ['mail'],
    summary: 'Send mail',
    description:
      'Accepts one message. Status 201 means that the mail request is stored durably and will end in exactly one terminal state.',
    parameters: [
      {
        name: 'Idempotency-Key',
        in: 'header',
        required: false,
        description:
          'Makes a retry safe: within 24 hours, the same key and payload return the original response, and no second message is sent.',
        schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[!-~]+$' },
        example: 'order-1001-receipt',
      },
    ],
    requestBody: {
      required: true,
      content: {
        'application/json': {
          schema: { $ref: '#/components/schemas/MailRequest' },
          example: {
            to: 'ada@example.com',
            from: 'shop@example.org',
            subject: 'Your receipt',
            message: 'Thank you for your order.',
          },
        },
      },
    },
    responses: {
      '201': {
        description: 'Mail request successful',
        headers: createHeaderReferences([
          'Idempotency-Replayed',
          'Postrider-Ignored-Fields',
          'RateLimit',
          'RateLimit-Policy',
        ]),
        content: {
          'application/json': {
            schema: { $ref: '#/components/schemas/MailCreated' },
            example: { result: { id: EXAMPLE_ID } },
          },
        },
      },
      ...createErrorResponses(ERROR_CODES.filter((code) => !OTHER_ROUTE_CODES.has(code))),
    },
  };
}

function createHealthOperation(operationId: string, summary: string, codes: readonly ErrorCode[]): JsonObject {
  return {
    operationId,
    tags: ['health'],
    summary,
    security: [],
    responses: {
      '200': {
        description: 'The check succeeded',
        content: {
          'application/json': {
            schema: { $ref: '#/components/schemas/Health' },
            example: { result: 'ok', message: operationId === 'getHealth' ? 'alive' : 'ready' },
          },
        },
      },
      ...createErrorResponses(codes),
    },
  };
}

function createErrorResponses(codes: readonly ErrorCode[]): JsonObject {
  const codesByStatus = new Map<number, ErrorCode[]>();
  for (const code of codes) {
    const { status } = getErrorEntry(code);
    codesByStatus.set(status, [...(codesByStatus.get(status) ?? []), code]);
  }
  return Object.fromEntries(
    Array.from(codesByStatus, ([status, statusCodes]) => [String(status), createErrorResponse(status, statusCodes)]),
  );
}

function createErrorResponse(status: number, codes: readonly ErrorCode[]): JsonObject {
  const headers = [...new Set(codes.flatMap((code) => getErrorEntry(code).headers ?? []))];
  return {
    description: STATUS_SUMMARIES[status] ?? '',
    ...(headers.length > 0 ? { headers: createHeaderReferences(headers) } : {}),
    content: {
      'application/json': {
        schema: { $ref: '#/components/schemas/Error' },
        examples: Object.fromEntries(codes.map((code) => [code, createErrorExample(code)])),
      },
    },
  };
}

function createErrorExample(code: ErrorCode): JsonObject {
  const { condition, remedy, example } = getErrorEntry(code);
  return {
    summary: condition,
    description: remedy,
    value: { result: 'error', message: formatErrorMessage(code, example ?? null) },
  };
}

function createHeaderReferences(names: readonly string[]): JsonObject {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

function toPlainJson(schema: object): JsonObject {
  return JSON.parse(JSON.stringify(schema));
}

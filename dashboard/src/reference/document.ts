/**
 * Reads OpenAPI documents of the service for the API reference: operations, fields, responses and errors. The functions
 * have no side effects. The texts come from the documents, which the service generates from its schemas.
 */

/** The keywords of JSON Schema that the documents use. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly format?: string;
  readonly description?: string;
  readonly enum?: readonly (string | number)[];
  readonly const?: string | number | boolean;
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
}

interface Example {
  readonly summary?: string;
  readonly description?: string;
  readonly value?: unknown;
}

interface Media {
  readonly schema?: Schema;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, Example>>;
}

interface Header {
  readonly $ref?: string;
  readonly description?: string;
  readonly example?: unknown;
}

interface Response {
  readonly $ref?: string;
  readonly description?: string;
  readonly headers?: Readonly<Record<string, Header>>;
  readonly content?: Readonly<Record<string, Media>>;
}

interface DocumentParameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema?: Schema;
}

interface DocumentOperation {
  readonly operationId?: string;
  readonly tags?: readonly string[];
  readonly summary?: string;
  readonly description?: string;
  readonly parameters?: readonly DocumentParameter[];
  readonly requestBody?: { readonly required?: boolean; readonly content?: Readonly<Record<string, Media>> };
  readonly responses?: Readonly<Record<string, Response>>;
}

export interface ApiDocument {
  readonly info: { readonly version: string; readonly description?: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, DocumentOperation>>>>;
  /** The webhook requests that the service sends, by event type. */
  readonly webhooks?: Readonly<Record<string, Readonly<Record<string, DocumentOperation>>>>;
  readonly components?: {
    readonly schemas?: Readonly<Record<string, Schema>>;
    readonly responses?: Readonly<Record<string, Response>>;
    readonly headers?: Readonly<Record<string, Header>>;
    readonly securitySchemes?: Readonly<Record<string, { readonly name?: string; readonly description?: string }>>;
  };
}

export interface Field {
  /** The path of the member, such as `messages[].id`. */
  readonly name: string;
  readonly type: string;
  readonly isRequired: boolean;
  readonly description: string;
  /** The limits and the default, such as `at most 998 characters`. */
  readonly limits: readonly string[];
}

export interface Input extends Field {
  /** `path`, `query`, `header` or `body`. */
  readonly location: string;
}

export interface OperationError {
  readonly status: number;
  readonly description: string;
}

/** One operation with its input, its result and its errors. */
export interface ReferenceOperation {
  readonly id: string;
  readonly group: string;
  readonly method: string;
  readonly path: string;
  readonly summary: string;
  readonly notes: string;
  readonly inputs: readonly Input[];
  /** The media type of the body; null if the request has no body. */
  readonly bodyType: string | null;
  readonly results: readonly { readonly status: string; readonly mediaType: string; readonly schema: Schema }[];
  readonly errors: readonly OperationError[];
}

/** The number of levels of nested members that a field table shows. */
export const FIELD_DEPTH = 4;

/** An error of the public listener. */
export interface PublicError {
  readonly code: string;
  readonly status: number;
  readonly message: string;
  readonly condition: string;
  readonly remedy: string;
}

/** Returns the operations in the order of the document. */
export function listOperations(document: ApiDocument): readonly ReferenceOperation[] {
  return listRequests(document, document.paths);
}

/** Returns the webhooks in the order of the document. The member `path` of a webhook is its event type. */
export function listWebhooks(document: ApiDocument): readonly ReferenceOperation[] {
  return listRequests(document, document.webhooks ?? {});
}

function listRequests(document: ApiDocument, requests: ApiDocument['paths']): readonly ReferenceOperation[] {
  return Object.entries(requests).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) =>
      toReferenceOperation(document, path, method.toUpperCase(), operation),
    ),
  );
}

function toReferenceOperation(
  document: ApiDocument,
  path: string,
  method: string,
  operation: DocumentOperation,
): ReferenceOperation {
  const body = Object.entries(operation.requestBody?.content ?? {})[0];
  const bodySchema = resolveSchema(document, body?.[1].schema ?? {});
  const responses = Object.entries(operation.responses ?? {}).map(
    ([status, response]) => [status, resolveResponse(document, response)] as const,
  );
  return {
    id: operation.operationId ?? `${method} ${path}`,
    group: operation.tags?.[0] ?? '',
    method,
    path,
    summary: operation.summary ?? '',
    notes: operation.description ?? '',
    inputs: [
      ...(operation.parameters ?? []).map((parameter) => toInput(document, parameter)),
      ...listFields(document, bodySchema, FIELD_DEPTH).map((field): Input => ({ ...field, location: 'body' })),
    ],
    bodyType: body?.[0] ?? null,
    results: responses
      .filter(([status]) => status.startsWith('2'))
      .flatMap(([status, { content = {} }]) =>
        Object.entries(content).map(([mediaType, { schema = {} }]) => ({ status, mediaType, schema })),
      ),
    errors: responses
      .filter(([status]) => /^[45]/.test(status))
      .map(([status, { description = '' }]) => ({ status: Number(status), description })),
  };
}

function toInput(
  document: ApiDocument,
  { name, in: location, required = false, description, schema = {} }: DocumentParameter,
): Input {
  const [field] = listFields(document, { properties: { [name]: schema }, required: required ? [name] : [] }, 1);
  return {
    ...(field ?? { name, type: '', isRequired: required, limits: [] }),
    description: description ?? field?.description ?? '',
    location,
  };
}

/** Returns the headers of each request to the public listener: the API key and the media type. */
export function listRequestHeaders(document: ApiDocument, { bodyType }: ReferenceOperation): readonly Input[] {
  const { name = 'Authorization', description = '' } = document.components?.securitySchemes?.apiKey ?? {};
  const header = { type: 'string', isRequired: true, limits: [], location: 'header' } as const;
  return [
    { ...header, name, description },
    { ...header, name: 'Content-Type', description: `\`${bodyType ?? ''}\`` },
  ];
}

/** Returns the errors of an operation of the public listener, one for each error code. */
export function listPublicErrors(document: ApiDocument, path: string): readonly PublicError[] {
  const responses = Object.entries(document.paths[path]?.post?.responses ?? {});
  return responses.flatMap(([status, response]) =>
    Object.entries(response.content?.['application/json']?.examples ?? {}).map(([code, example]) => ({
      code,
      status: Number(status),
      message: readMessage(example.value),
      condition: example.summary ?? '',
      remedy: example.description ?? '',
    })),
  );
}

function readMessage(value: unknown): string {
  if (typeof value !== 'object' || value === null || !('message' in value)) return '';
  return String(value.message);
}

/** Returns the response headers, each with its description. */
export function listHeaders(document: ApiDocument): readonly (readonly [name: string, description: string])[] {
  return Object.entries(document.components?.headers ?? {}).map(([name, { description = '' }]) => [name, description]);
}

/**
 * Returns the documented error that a response reports, or null. For some errors, the header `Postrider-Reason` of the
 * response contains the error code. The other errors are recognized by the message, or by the part of the message
 * before the colon.
 */
export function findPublicError(
  errors: readonly PublicError[],
  status: number,
  message: string,
  reason: string | null,
): PublicError | null {
  const candidates = errors.filter((error) => error.status === status);
  const errorWithReason = candidates.find(({ code }) => code === reason);
  if (errorWithReason !== undefined) return errorWithReason;
  const getFixedPart = (text: string) => text.split(':')[0];
  return (
    candidates.find((error) => error.message === message) ??
    candidates.find((error) => getFixedPart(error.message) === getFixedPart(message)) ??
    null
  );
}

/** Returns the members of a schema, with nested members up to `depth` levels. */
export function listFields(document: ApiDocument, schema: Schema, depth: number, prefix = ''): readonly Field[] {
  const object = findObjectSchema(document, schema);
  const requiredNames = object.schema.required ?? [];
  return Object.entries(object.schema.properties ?? {}).flatMap(([name, memberSchema]) => {
    const path = `${prefix}${object.suffix}${prefix === '' && object.suffix === '' ? '' : '.'}${name}`;
    const member = resolveSchema(document, memberSchema);
    const field: Field = {
      name: path,
      type: formatType(document, member),
      isRequired: requiredNames.includes(name),
      description: member.description ?? '',
      limits: listLimits(member),
    };
    return [field, ...(depth <= 1 ? [] : listFields(document, member, depth - 1, path))];
  });
}

/**
 * Returns the schema of the object that a schema describes: the schema itself, the items of an array, or the variant
 * that is not null. `suffix` contains `[]` for each array.
 */
function findObjectSchema(document: ApiDocument, schema: Schema): { readonly schema: Schema; readonly suffix: string } {
  const resolvedSchema = resolveSchema(document, schema);
  if (resolvedSchema.type === 'array' && resolvedSchema.items !== undefined) {
    const itemObject = findObjectSchema(document, resolvedSchema.items);
    return { schema: itemObject.schema, suffix: `[]${itemObject.suffix}` };
  }
  const variant = (resolvedSchema.anyOf ?? resolvedSchema.oneOf)?.find(({ type }) => type !== 'null');
  return variant === undefined ? { schema: resolvedSchema, suffix: '' } : findObjectSchema(document, variant);
}

/** Returns the type in words, such as `string (uuid) or null`. */
export function formatType(document: ApiDocument, schema: Schema): string {
  const { type, format, items, anyOf, oneOf, const: constant, enum: values } = resolveSchema(document, schema);
  const variants = anyOf ?? oneOf;
  if (variants !== undefined)
    return [...new Set(variants.map((variant) => formatType(document, variant)))].join(' or ');
  if (constant !== undefined) return JSON.stringify(constant);
  if (values !== undefined) return values.map(String).join(' | ');
  if (type === 'array') return `array of ${items === undefined ? 'values' : formatType(document, items)}`;
  return `${type ?? 'any value'}${format === undefined ? '' : ` (${format})`}`;
}

function listLimits({ minimum, maximum, minLength, maxLength, default: defaultValue }: Schema): readonly string[] {
  return [
    ...(minimum === undefined ? [] : [`at least ${minimum}`]),
    ...(maximum === undefined ? [] : [`at most ${maximum}`]),
    ...(minLength === undefined || minLength === 0
      ? []
      : [`at least ${minLength} ${minLength === 1 ? 'character' : 'characters'}`]),
    ...(maxLength === undefined ? [] : [`at most ${maxLength} characters`]),
    ...(defaultValue === undefined ? [] : [`default ${JSON.stringify(defaultValue)}`]),
  ];
}

function resolveSchema(document: ApiDocument, schema: Schema): Schema {
  const name = schema.$ref?.split('/').at(-1);
  return name === undefined ? schema : (document.components?.schemas?.[name] ?? schema);
}

function resolveResponse(document: ApiDocument, response: Response): Response {
  const name = response.$ref?.split('/').at(-1);
  return name === undefined ? response : (document.components?.responses?.[name] ?? response);
}

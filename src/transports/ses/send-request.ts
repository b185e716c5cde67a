/**
 * Sends messages with the operation SendEmail of the SESv2 API. This module builds the request, because the middleware
 * of the SDK uses about 40 % of the processor time of the transport (docs/decisions/ses.md). The SDK determines the
 * endpoint and the header fields of the request, finds the credentials, and computes the signature.
 *
 * Guarantees: the request contains the same members as a request that the SDK builds (a test compares them). The time
 * of the signature follows the clock of the provider. Therefore, a wrong clock of this machine can only cause failures
 * of the requests before the first response.
 *
 * A call rejects with an error whose `name`, `message` and `$metadata.httpStatusCode` are those of an error of the SDK.
 */
import type { Clock } from '../../clock.ts';
import { MESSAGE_ID_TAG } from '../../model/feedback.ts';
import type { HandlerOptions, HandlerRequest, HandlerResponse, HttpHandler } from './http-handler.ts';

export interface SesMessage {
  readonly id: string;
  readonly to: string;
  /** The complete message. */
  readonly data: Uint8Array;
  readonly configurationSet: string | null;
}

/** A request that can be signed. */
export interface UnsignedRequest extends Omit<HandlerRequest, 'port'> {
  readonly port?: number;
  readonly headers: Record<string, string>;
  readonly query: Record<string, string>;
}

export interface SendRequestParts {
  /** A request that the SDK has built for an arbitrary message. */
  readonly template: HandlerRequest;
  /** Signs a request (Signature Version 4). Rejects if there are no credentials. */
  readonly sign: (request: UnsignedRequest, signedAt: Date) => Promise<HandlerRequest>;
  readonly handler: Pick<HttpHandler, 'handle'>;
  readonly clock: Pick<Clock, 'now'>;
}

/** Sends a message. Resolves to the provider's message id, or to null if the response contains none. */
export type SendRequest = (message: SesMessage, options: HandlerOptions) => Promise<string | null>;

/** The header fields whose values the SDK computes for each request. */
const REQUEST_FIELDS = [
  'authorization',
  'content-length',
  'x-amz-content-sha256',
  'x-amz-date',
  'x-amz-security-token',
  'amz-sdk-invocation-id',
  'amz-sdk-request',
];

export function createSendRequest({ template, sign, handler, clock }: SendRequestParts): SendRequest {
  const fields = Object.entries(template.headers).filter(([name]) => !REQUEST_FIELDS.includes(name.toLowerCase()));
  /** The difference between the clock of the provider and the clock of this service. */
  let clockOffsetMs = 0;

  return async function send(message, options) {
    const body = formatBody(message);
    const unsignedRequest: UnsignedRequest = {
      protocol: template.protocol,
      hostname: template.hostname,
      ...(template.port === undefined ? {} : { port: template.port }),
      method: template.method,
      path: template.path,
      query: {},
      headers: { ...Object.fromEntries(fields), 'content-length': String(body.length) },
      body,
    };
    const signedRequest = await sign(unsignedRequest, new Date(clock.now() + clockOffsetMs));
    const { response } = await handler.handle(signedRequest, options);
    const providerTime = Date.parse(response.headers.date ?? '');
    if (!Number.isNaN(providerTime)) clockOffsetMs = providerTime - clock.now();
    if (response.statusCode >= 300) throw createError(response);
    const { MessageId: id } = parseObject(response);
    return typeof id === 'string' ? id : null;
  };
}

/**
 * Formats the body of the request. Without FromEmailAddress the provider uses the From field. The provider always sets
 * its own envelope sender. Base64 text needs no escaping in JSON.
 */
function formatBody({ id, to, data, configurationSet }: SesMessage): Buffer {
  const content = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64');
  const tags = JSON.stringify([{ Name: MESSAGE_ID_TAG, Value: id }]);
  const configurationSetMember =
    configurationSet === null ? '' : `,"ConfigurationSetName":${JSON.stringify(configurationSet)}`;
  return Buffer.from(
    `{"Destination":{"ToAddresses":[${JSON.stringify(to)}]},"Content":{"Raw":{"Data":"${content}"}},"EmailTags":${tags}${configurationSetMember}}`,
  );
}

/** The maximum number of bytes of the response body in an error message, if the body itself contains no message. */
const MAX_TEXT_LENGTH = 200;

/**
 * Creates the error of a response. The name of the error is in the field X-Amzn-Errortype or in the body, with a
 * namespace before `#` or a URL after `:`.
 */
function createError(response: HandlerResponse): Error {
  const members = parseObject(response);
  const code = [response.headers['x-amzn-errortype'], members.code, members.__type].find(
    (value) => typeof value === 'string' && value !== '',
  );
  const text = [members.message, members.Message].find((value) => typeof value === 'string');
  const error = new Error(typeof text === 'string' ? text : response.body.toString('utf8', 0, MAX_TEXT_LENGTH));
  error.name = typeof code === 'string' ? toErrorName(code) : 'UnknownError';
  return Object.assign(error, { $metadata: { httpStatusCode: response.statusCode } });
}

function toErrorName(code: string): string {
  const withoutUrl = code.split(':', 1)[0] ?? '';
  return withoutUrl.slice(withoutUrl.lastIndexOf('#') + 1);
}

/** Parses the body of a response. Returns an empty object if the body is not a JSON object. */
function parseObject({ body }: HandlerResponse): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

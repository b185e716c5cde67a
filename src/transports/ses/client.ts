/** Builds the requests itself: the SDK’s middleware takes 40 % of the processor time (docs/decisions/ses.md). */
import type * as http from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../../clock.ts';
import { MESSAGE_ID_TAG } from '../../model/feedback.ts';
import { Agent, getHttps, request as requestHttp } from '../../node-http.ts';

export interface SesSetting {
  readonly region: string;
  readonly endpoint: string | null;
  readonly configurationSet: string | null;
}

export interface SesAccount {
  readonly sendingEnabled: boolean;
  readonly production: boolean;
  readonly enforcementStatus: string;
  readonly maxSendRate: number | null;
  readonly quota: { readonly max: number; readonly sent: number } | null;
}

export interface SesMessage {
  readonly id: string;
  readonly to: string;
  readonly data: Uint8Array;
  readonly configurationSet: string | null;
}

export interface SesClient {
  /** Null without an id. Rejects like the SDK; `wasSent`: the whole request was sent. */
  send(message: SesMessage, signal: AbortSignal): Promise<string | null>;
  getAccount(signal: AbortSignal): Promise<SesAccount>;
  close(): void;
}

export function getSesHost({ region, endpoint }: SesSetting): string {
  return endpoint === null ? `email.${region}.amazonaws.com` : new URL(endpoint).host;
}

/** The SDK finds the credentials in the environment, in files, or in the role of the machine. */
export async function createSesClient(setting: SesSetting, connections: number, clock: Clock): Promise<SesClient> {
  const { SESv2Client, SendEmailCommand, GetAccountCommand } = await import('@aws-sdk/client-sesv2');
  const endpointOptions = {
    region: setting.region,
    ...(setting.endpoint === null ? {} : { endpoint: setting.endpoint }),
  };
  const handler = createHttpHandler(connections, clock);
  const client = new SESv2Client({ ...endpointOptions, maxAttempts: 1, requestHandler: { ...handler } });
  const signer = await client.config.signer({
    name: 'sigv4',
    signingName: 'ses',
    signingRegion: setting.region,
    properties: {},
  });

  async function createTemplate(): Promise<HandlerRequest> {
    let template: HandlerRequest | null = null;
    const localClient = new SESv2Client({
      ...endpointOptions,
      maxAttempts: 1,
      credentials: { accessKeyId: 'template', secretAccessKey: 'template' },
      requestHandler: {
        async handle(request: HandlerRequest) {
          template = request;
          return { response: { statusCode: 200, headers: {}, body: Buffer.from('{}') } };
        },
      },
    });
    await localClient.send(new SendEmailCommand({ Content: { Raw: { Data: new Uint8Array() } } }));
    localClient.destroy();
    if (template === null) throw new Error('the SDK of Amazon created no request');
    return template;
  }

  const { headers: templateFields, port, ...template } = await createTemplate();
  const fields = Object.entries(templateFields).filter(([name]) => !REQUEST_FIELDS.includes(name.toLowerCase()));
  /** The signature follows the clock of the provider, so that a wrong clock fails only the first requests. */
  let clockOffsetMs = 0;

  async function sendRequest(message: SesMessage, options: HandlerOptions): Promise<string | null> {
    const body = formatBody(message);
    const headers = { ...Object.fromEntries(fields), 'content-length': String(body.length) };
    const unsignedRequest = { ...template, ...(port === undefined ? {} : { port }), query: {}, headers, body };
    const signingDate = new Date(clock.now() + clockOffsetMs);
    const { response } = await handler.handle(await signer.sign(unsignedRequest, { signingDate }), options);
    const providerTime = Date.parse(response.headers.date ?? '');
    if (!Number.isNaN(providerTime)) clockOffsetMs = providerTime - clock.now();
    if (response.statusCode >= 300) throw createError(response);
    const { MessageId: id } = parseObject(response);
    return typeof id === 'string' ? id : null;
  }

  return {
    async send(message, abortSignal) {
      let wasSent = false;
      const onSent = () => {
        wasSent = true;
      };
      try {
        return await sendRequest(message, { abortSignal, onSent });
      } catch (error) {
        throw Object.assign(error instanceof Error ? error : new Error(String(error)), { wasSent });
      }
    },
    async getAccount(abortSignal) {
      const accountResponse = await client.send(new GetAccountCommand({}), { abortSignal });
      const { SendQuota: quota } = accountResponse;
      return {
        sendingEnabled: accountResponse.SendingEnabled !== false,
        production: accountResponse.ProductionAccessEnabled !== false,
        enforcementStatus: accountResponse.EnforcementStatus ?? 'HEALTHY',
        maxSendRate: quota?.MaxSendRate ?? null,
        quota:
          quota?.Max24HourSend === undefined ? null : { max: quota.Max24HourSend, sent: quota.SentLast24Hours ?? 0 },
      };
    },
    close: () => client.destroy(),
  };
}

const REQUEST_FIELDS = [
  'authorization',
  'content-length',
  'x-amz-content-sha256',
  'x-amz-date',
  'x-amz-security-token',
  'amz-sdk-invocation-id',
  'amz-sdk-request',
];

/** Without FromEmailAddress the From field applies. Base64 needs no escaping. */
function formatBody({ id, to, data, configurationSet }: SesMessage): Buffer {
  const content = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64');
  const tags = JSON.stringify([{ Name: MESSAGE_ID_TAG, Value: id }]);
  const configurationSetMember =
    configurationSet === null ? '' : `,"ConfigurationSetName":${JSON.stringify(configurationSet)}`;
  return Buffer.from(
    `{"Destination":{"ToAddresses":[${JSON.stringify(to)}]},"Content":{"Raw":{"Data":"${content}"}},"EmailTags":${tags}${configurationSetMember}}`,
  );
}

const MAX_TEXT_LENGTH = 200;

/** The name is in X-Amzn-Errortype or in the body, with a namespace before `#` or a URL after `:`. */
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

function parseObject({ body }: HandlerResponse): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** Unlike the SDK’s, it reports whether a request was sent completely (`unanswered`) or not (`deferred`). */

export interface HandlerRequest {
  readonly protocol: string;
  readonly hostname: string;
  readonly port?: number | undefined;
  readonly method: string;
  readonly path: string;
  readonly query?: Readonly<Record<string, string | readonly string[] | null>> | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | undefined;
}

interface HandlerResponse {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

interface HandlerOptions {
  readonly abortSignal?: AbortSignal;
  /** The operating system has accepted the whole request, or a response arrives. */
  readonly onSent?: () => void;
}

interface HttpHandler {
  handle(request: HandlerRequest, options?: HandlerOptions): Promise<{ readonly response: HandlerResponse }>;
  destroy(): void;
}

export const HANDLER_LIMITS = {
  connectMs: 10_000,
  /** From the first byte of the request to the last of the response. Afterwards the outcome is unknown. */
  responseMs: 60_000,
  maxResponseBytes: 65_536,
  /** Without this limit, the peer could close the connection while the next request uses it. */
  idleMs: 20_000,
};
export type HandlerLimits = Readonly<typeof HANDLER_LIMITS>;

class HttpHandlerError extends Error {
  override readonly name = 'HttpHandlerError';
}

export function createHttpHandler(
  connections: number,
  clock: Clock,
  limits: HandlerLimits = HANDLER_LIMITS,
): HttpHandler {
  // The global agents have the proxy settings of the environment (NODE_USE_ENV_PROXY).
  const https = getHttps();
  const { proxyEnv } = https.globalAgent.options;
  const options = {
    keepAlive: true,
    maxSockets: connections,
    // By default the agent leaves at most 256 idle connections open.
    maxFreeSockets: connections,
    timeout: limits.idleMs,
    proxyEnv,
  } as const;
  const httpAgent = new Agent(options);
  const httpsAgent = new https.Agent(options);

  return {
    handle(request, { abortSignal, onSent } = {}) {
      return new Promise((resolve, reject) => {
        const tls = request.protocol !== 'http:';
        const outgoingRequest = (tls ? https.request : requestHttp)({
          agent: tls ? httpsAgent : httpAgent,
          host: request.hostname.startsWith('[') ? request.hostname.slice(1, -1) : request.hostname,
          port: request.port,
          method: request.method,
          path: `${request.path}${formatQuery(request.query)}`,
          headers: request.headers,
        });
        let cancel = clock.after(limits.connectMs, () =>
          outgoingRequest.destroy(new HttpHandlerError(`no connection within ${limits.connectMs / 1_000} seconds`)),
        );
        const onAborted = (): void =>
          void outgoingRequest.destroy(new HttpHandlerError('aborted, because the service is stopping'));
        const stopListening = (): void => {
          cancel();
          abortSignal?.removeEventListener('abort', onAborted);
        };
        const rejectRequest = (error: Error): void => {
          stopListening();
          reject(error);
        };
        const onConnected = (): void => {
          cancel();
          cancel = clock.after(limits.responseMs, () =>
            outgoingRequest.destroy(new HttpHandlerError(`no response within ${limits.responseMs / 1_000} seconds`)),
          );
        };
        abortSignal?.addEventListener('abort', onAborted, { once: true });
        outgoingRequest.on('socket', (socket) => {
          if (isReady(socket)) onConnected();
          else socket.once(tls ? 'secureConnect' : 'connect', onConnected);
        });
        outgoingRequest.on('finish', () => onSent?.());
        outgoingRequest.on('error', rejectRequest);
        outgoingRequest.on('response', (response) => {
          // A response may arrive before the server has read the whole request.
          onSent?.();
          readBody(response, limits.maxResponseBytes).then(
            (body) => {
              stopListening();
              resolve({ response: { statusCode: response.statusCode ?? 0, headers: flattenHeaders(response), body } });
            },
            (error: Error) => {
              outgoingRequest.destroy();
              rejectRequest(error);
            },
          );
        });
        if (abortSignal?.aborted) onAborted();
        outgoingRequest.end(request.body);
      });
    },
    destroy() {
      httpAgent.destroy();
      httpsAgent.destroy();
    },
  };
}

function isReady(socket: Socket): boolean {
  const isHandshaking = 'secureConnecting' in socket && socket.secureConnecting === true;
  return !socket.connecting && !isHandshaking;
}

async function readBody(response: http.IncomingMessage, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    sizeBytes += chunk.length;
    if (sizeBytes > maxBytes) throw new HttpHandlerError(`the response has more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function flattenHeaders({ headers }: http.IncomingMessage): Record<string, string> {
  const flatHeaders: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) flatHeaders[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return flatHeaders;
}

function formatQuery(query: HandlerRequest['query']): string {
  const parameters = Object.entries(query ?? {}).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((item: string | null) =>
      item === null ? encodeURIComponent(name) : `${encodeURIComponent(name)}=${encodeURIComponent(item)}`,
    ),
  );
  return parameters.length === 0 ? '' : `?${parameters.join('&')}`;
}

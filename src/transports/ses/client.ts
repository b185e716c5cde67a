/**
 * The SDK finds endpoint, header fields and credentials, and signs; this file builds the requests of SendEmail, because
 * the middleware of the SDK takes about 40 % of the processor time (docs/decisions/ses.md). It is loaded at the first
 * use.
 */
import type { Clock } from '../../clock.ts';
import { MESSAGE_ID_TAG } from '../../model/feedback.ts';
import { createHttpHandler, type HandlerOptions, type HandlerRequest, type HandlerResponse } from './http-handler.ts';

export interface SesSetting {
  readonly region: string;
  readonly endpoint: string | null;
  readonly configurationSet: string | null;
}

export interface SesAccount {
  readonly sendingEnabled: boolean;
  readonly production: boolean;
  /** `HEALTHY`, `PROBATION` or `SHUTDOWN`. */
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

  /** The request that the SDK creates for an empty message. It is not sent and needs no credentials. */
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

/** The SDK computes these for each request. */
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

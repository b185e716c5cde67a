/**
 * Creates a client for two operations of the SESv2 API. The SDK is loaded at the first use, so other transports need no
 * memory for the SDK. The SDK does not retry failed requests, because the queue retries them.
 */

import type { Clock } from '../../clock.ts';
import { createHttpHandler, type HandlerOptions, type HandlerRequest } from './http-handler.ts';
import { createSendRequest, type SesMessage } from './send-request.ts';

export interface SesSetting {
  readonly region: string;
  /** The URL of an API endpoint. If null, the client uses the endpoint of the region. */
  readonly endpoint: string | null;
  readonly configurationSet: string | null;
}

/** The response to GetAccount. */
export interface SesAccount {
  readonly sendingEnabled: boolean;
  /** False in the sandbox, which accepts only verified recipients. */
  readonly production: boolean;
  /** The enforcement status of the account: `HEALTHY`, `PROBATION` or `SHUTDOWN`. */
  readonly enforcementStatus: string;
  readonly maxSendRate: number | null;
  readonly quota: { readonly max: number; readonly sent: number } | null;
}

export interface SesClient {
  /**
   * Sends a message. Resolves to the provider's message id, or to null if the response has none. Rejects with an error
   * like those of the SDK (send-request.ts). The member `wasSent` of the error is true if the whole request was sent.
   */
  send(message: SesMessage, signal: AbortSignal): Promise<string | null>;
  getAccount(signal: AbortSignal): Promise<SesAccount>;
  close(): void;
}

/** Returns the host name of the endpoint, which transcripts and pages contain. */
export function getSesHost({ region, endpoint }: SesSetting): string {
  return endpoint === null ? `email.${region}.amazonaws.com` : new URL(endpoint).host;
}

/**
 * Creates the client with at most `connections` connections. The SDK finds the credentials in the environment, in
 * files, or in the role of the machine.
 */
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

  /**
   * Returns the request that the SDK creates for an empty message. The request is not sent and needs no credentials.
   */
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

  const sendRequest = createSendRequest({
    template: await createTemplate(),
    sign: async (request, signingDate) => signer.sign(request, { signingDate }),
    handler,
    clock,
  });
  return {
    async send(message, abortSignal) {
      let wasSent = false;
      const options: HandlerOptions = {
        abortSignal,
        onSent: () => {
          wasSent = true;
        },
      };
      try {
        return await sendRequest(message, options);
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

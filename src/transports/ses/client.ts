/**
 * The provider's own client of the SESv2 API, kept behind the three calls that are needed. It is loaded when first used:
 * a service with another transport does not pay for it. The SDK's retries are off; the queue is the one place that retries.
 */

import type { Clock } from '../../clock.ts';
import { MESSAGE_ID_TAG } from '../../model/feedback.ts';
import { createHttpHandler, type HandlerOptions } from './http-handler.ts';

export interface SesSetting {
  readonly region: string;
  /** Another address of the API, such as a local one; null for the region's own. */
  readonly endpoint: string | null;
  readonly configurationSet: string | null;
}

/** What the account says of itself (GetAccount). */
export interface SesAccount {
  readonly sendingEnabled: boolean;
  /** False in the sandbox, where only verified recipients are taken. */
  readonly production: boolean;
  /** `HEALTHY`, `PROBATION`, `SHUTDOWN`. */
  readonly enforcement: string;
  readonly maxSendRate: number | null;
  readonly quota: { readonly max: number; readonly sent: number } | null;
}

export interface SesClient {
  /**
   * Hands a message over; resolves to the provider's id, or null where the answer names none. Rejects with the SDK's error,
   * which has `sent` then: whether the request had left whole.
   */
  send(
    message: { readonly id: string; readonly to: string; readonly data: Uint8Array },
    signal: AbortSignal,
  ): Promise<string | null>;
  getAccount(signal: AbortSignal): Promise<SesAccount>;
  close(): void;
}

/** The host that an operator knows it by. */
export function sesHost({ region, endpoint }: SesSetting): string {
  return endpoint === null ? `email.${region}.amazonaws.com` : new URL(endpoint).host;
}

/** Makes the client; `connections` are kept open at most. Credentials are the SDK's own: environment, files, the machine's role. */
export async function createSesClient(setting: SesSetting, connections: number, clock: Clock): Promise<SesClient> {
  const { SESv2Client, SendEmailCommand, GetAccountCommand } = await import('@aws-sdk/client-sesv2');
  const client = new SESv2Client({
    region: setting.region,
    ...(setting.endpoint === null ? {} : { endpoint: setting.endpoint }),
    maxAttempts: 1,
    requestHandler: { ...createHttpHandler(connections, clock) },
  });
  return {
    async send({ id, to, data }, abortSignal) {
      // Without FromEmailAddress the From field counts: the envelope sender is the provider's own in any case.
      const command = new SendEmailCommand({
        Destination: { ToAddresses: [to] },
        Content: { Raw: { Data: data } },
        EmailTags: [{ Name: MESSAGE_ID_TAG, Value: id }],
        ...(setting.configurationSet === null ? {} : { ConfigurationSetName: setting.configurationSet }),
      });
      let sent = false;
      const options: HandlerOptions = {
        abortSignal,
        onSent: () => {
          sent = true;
        },
      };
      try {
        return (await client.send(command, options)).MessageId ?? null;
      } catch (error) {
        throw Object.assign(error instanceof Error ? error : new Error(String(error)), { sent });
      }
    },
    async getAccount(abortSignal) {
      const answer = await client.send(new GetAccountCommand({}), { abortSignal });
      const { SendQuota: quota } = answer;
      return {
        sendingEnabled: answer.SendingEnabled !== false,
        production: answer.ProductionAccessEnabled !== false,
        enforcement: answer.EnforcementStatus ?? 'HEALTHY',
        maxSendRate: quota?.MaxSendRate ?? null,
        quota:
          quota?.Max24HourSend === undefined ? null : { max: quota.Max24HourSend, sent: quota.SentLast24Hours ?? 0 },
      };
    },
    close: () => client.destroy(),
  };
}

/**
 * Delivers one notification to one target: a signed request to a URL, or a message in the normal queue. All attempts have
 * the same `webhook-id` and body. At most one message is accepted for each notification and address, because its
 * idempotency key contains both.
 */
import { createHash } from 'node:crypto';
import type { Clock } from '../clock.ts';
import type { Account } from '../model/account.ts';
import { parseAddress, toCanonicalAddress } from '../model/address.ts';
import type { SendingDomain } from '../model/domain.ts';
import type { PublishOf } from '../model/events.ts';
import { type AcceptResult, type NewMessage, NOTIFICATION_KEY_ID } from '../model/message.ts';
import {
  findSenderDomain,
  findSenderFault,
  type LeasedNotification,
  type MailPayload,
  type NotificationTarget,
} from '../model/notification.ts';
import { signWebhook } from '../model/webhook-target.ts';
import type { WebhookClient } from '../webhooks/attempt.ts';

export type TargetResult =
  | { readonly kind: 'delivered'; readonly status: number | null; readonly messageId: string | null }
  | {
      readonly kind: 'refused';
      readonly status: number | null;
      readonly error: string;
      readonly retryAfterMs: number | null;
      readonly isFinal: boolean;
    };

export type DeliverNotification = (
  target: NotificationTarget,
  notification: Pick<LeasedNotification, 'id' | 'payload'>,
) => Promise<TargetResult>;

export interface TargetParts {
  readonly clock: Clock;
  readonly attempt: WebhookClient['attempt'];
  readonly getSecrets: () => readonly string[];
  readonly from: string | null;
  readonly requiresAuthentication: boolean;
  readonly findDomain: (name: string) => SendingDomain | null;
  readonly findAccount: (accountId: number) => Account | null;
  readonly nextId: (now: number) => string;
  readonly accept: (batch: readonly NewMessage[]) => Promise<readonly AcceptResult[]>;
  readonly publish: PublishOf<'message.accepted' | 'message.suppressed'>;
}

const STATUS_GONE = 410;

export function createNotificationDelivery(parts: TargetParts): DeliverNotification {
  const { clock, attempt, getSecrets, from, requiresAuthentication, findDomain, findAccount, publish } = parts;

  return async function deliver(target, notification) {
    try {
      switch (target.kind) {
        case 'https':
          return await sendRequest(target.url, notification);
        case 'mail':
          return await submitMessage(target.address, notification);
      }
    } catch (error) {
      return createRefusal(error instanceof Error ? error.message : String(error));
    }
  };

  async function sendRequest(
    url: string,
    { id, payload }: Pick<LeasedNotification, 'id' | 'payload'>,
  ): Promise<TargetResult> {
    const body = Buffer.from(payload);
    const headers = { ...signWebhook(id, clock.now(), body, getSecrets()) };
    const { status, error, retryAfterMs } = await attempt({ url, headers, body });
    if (error === null) return { kind: 'delivered', status, messageId: null };
    return { kind: 'refused', status, error, retryAfterMs, isFinal: status === STATUS_GONE };
  }

  async function submitMessage(
    to: string,
    { id, payload }: Pick<LeasedNotification, 'id' | 'payload'>,
  ): Promise<TargetResult> {
    const [fromAddress, toAddress] = [parseAddress(from ?? ''), parseAddress(to)];
    if (from === null || fromAddress === null || toAddress === null)
      return createRefusal('POSTRIDER_NOTIFY_FROM is not set');
    const name = fromAddress.domain;
    const domain = findSenderDomain(name, findDomain);
    const account = domain === null ? null : findAccount(domain.accountId);
    const fault = findSenderFault(name, domain, account, requiresAuthentication);
    if (account === null || fault?.kind === 'refused')
      return createRefusal(fault?.text ?? 'no account can send the mail');
    const { subject, text } = JSON.parse(payload) as MailPayload;
    const now = clock.now();
    const message: NewMessage = {
      id: parts.nextId(now),
      accountId: account.id,
      keyId: NOTIFICATION_KEY_ID,
      acceptedAt: now,
      to,
      recipient: toCanonicalAddress(toAddress),
      from,
      subject,
      message: text,
      // The idempotency key of a client contains no space. This key contains a space, so it differs from every key of a
      // client.
      idempotency: { key: `notification ${id} ${to}`, fingerprint: createHash('sha256').update(id).digest('hex') },
      lease: null,
      suppressedBy: null,
    };
    const [result] = await parts.accept([message]);
    switch (result?.kind) {
      case 'accepted':
        publishAccepted(message, result.state);
        return result.state === 'suppressed'
          ? createRefusal(`${to} is on a suppression list of account ${account.name}`, true)
          : { kind: 'delivered', status: null, messageId: message.id };
      case 'replayed':
        return { kind: 'delivered', status: null, messageId: result.id };
      default:
        return createRefusal(`the message was not accepted (${result?.kind ?? 'no result'})`);
    }
  }

  function publishAccepted(message: NewMessage, state: 'queued' | 'sending' | 'suppressed'): void {
    const { id, accountId, keyId, to, from, acceptedAt } = message;
    const at = clock.now();
    const members = { id, accountId, keyId, to, from, state, acceptedAt, tookMs: at - acceptedAt };
    publish({ type: 'message.accepted', at, ...members });
    if (state === 'suppressed') publish({ type: 'message.suppressed', at, id, accountId, to });
  }
}

function createRefusal(error: string, isFinal = false): TargetResult {
  return { kind: 'refused', status: null, error, retryAfterMs: null, isFinal };
}

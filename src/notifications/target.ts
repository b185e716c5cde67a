/**
 * The lane of notifications: sends one to one target, as a signed request to a URL or as a message in the normal queue.
 * All attempts have the same `webhook-id` and body. At most one message is accepted for each notification and address,
 * because its idempotency key contains both.
 */
import { createHash } from 'node:crypto';
import type { MonotonicClock } from '../clock.ts';
import type { Account } from '../model/account.ts';
import { parseAddress, toCanonicalAddress } from '../model/address.ts';
import type { SendingDomain } from '../model/domain.ts';
import type { PublishOf } from '../model/events.ts';
import { type AcceptResult, type NewMessage, NOTIFICATION_KEY_ID } from '../model/message.ts';
import {
  findSenderDomain,
  findSenderFault,
  formatTarget,
  type MailPayload,
  type NotificationTarget,
} from '../model/notification.ts';
import type { LeasedDelivery, RecordedResourceEvent } from '../model/webhook.ts';
import { signWebhook } from '../model/webhook-target.ts';
import type { WebhookClient } from '../webhooks/attempt.ts';
import { buildBody } from '../webhooks/lane.ts';
import type { Lane, SendResult } from '../webhooks/worker.ts';

export interface Notification extends Pick<LeasedDelivery, 'id'> {
  readonly event: RecordedResourceEvent;
}

/** Never rejects. */
export type DeliverNotification = (target: NotificationTarget, notification: Notification) => Promise<SendResult>;

export interface TargetParts {
  readonly clock: MonotonicClock;
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
const MINUTE_MS = 60_000;
/** Shorter than for webhooks, because `postrider overview` also shows the items. */
const RETRY_DELAYS_MS = [5_000, 30_000, ...[2, 10, 30, 60, 120, 240].map((minutes) => minutes * MINUTE_MS)];

export interface NotificationLaneParts {
  readonly clock: MonotonicClock;
  readonly targets: readonly NotificationTarget[];
  readonly deliver: DeliverNotification;
  readonly publish: PublishOf<'notification.delivered' | 'notification.attempt_failed' | 'notification.failed'>;
}

export function createNotificationLane({ clock, targets, deliver, publish }: NotificationLaneParts): Lane {
  return {
    name: 'notification',
    targets: targets.map(({ text }) => text),
    retryDelaysMs: RETRY_DELAYS_MS,
    getPauseMs: () => 0,
    async send({ id, sealedUrl, event }) {
      const target = targets.find(({ text }) => text === sealedUrl);
      return target === undefined || event.kind !== 'resource'
        ? createRefusal('the notification has no target', true)
        : deliver(target, { id, event });
    },
    publishResult({ id, sealedUrl }, { attempt, result }) {
      const members = { at: clock.now(), notificationId: id, target: formatTarget(sealedUrl) };
      const error = attempt.error ?? '';
      switch (result.kind) {
        case 'delivered':
          publish({
            ...{ type: 'notification.delivered', ...members },
            ...{ messageId: result.messageId ?? null, tookMs: attempt.durationMs },
          });
          break;
        case 'retry':
          publish({ type: 'notification.attempt_failed', ...members, error, retryAt: result.dueAt });
          break;
        case 'failed':
          publish({ type: 'notification.failed', ...members, error });
          break;
      }
    },
  };
}

export function createNotificationDelivery(parts: TargetParts): DeliverNotification {
  const { clock, attempt, getSecrets, from, requiresAuthentication, findDomain, findAccount, publish } = parts;

  return async function deliver(target, notification) {
    const startedAt = clock.monotonic();
    try {
      switch (target.kind) {
        case 'https':
          return await sendRequest(target.url, notification);
        case 'mail': {
          const result = await submitMessage(target.address, notification);
          return { ...result, durationMs: Math.round(clock.monotonic() - startedAt) };
        }
      }
    } catch (error) {
      return createRefusal(error instanceof Error ? error.message : String(error));
    }
  };

  async function sendRequest(url: string, { id, event }: Notification): Promise<SendResult> {
    const body = Buffer.from(buildBody(event));
    const headers = { ...signWebhook(id, clock.now(), body, getSecrets()) };
    const result = await attempt({ url, headers, body });
    return { ...result, isFinal: result.status === STATUS_GONE, isInstallationFault: false };
  }

  async function submitMessage(to: string, { id, event }: Notification): Promise<SendResult> {
    const [fromAddress, toAddress] = [parseAddress(from ?? ''), parseAddress(to)];
    if (from === null || fromAddress === null || toAddress === null)
      return createRefusal('POSTRIDER_NOTIFY_FROM is not set');
    const name = fromAddress.domain;
    const domain = findSenderDomain(name, findDomain);
    const account = domain === null ? null : findAccount(domain.accountId);
    const fault = findSenderFault(name, domain, account, requiresAuthentication);
    if (account === null || fault?.kind === 'refused')
      return createRefusal(fault?.text ?? 'no account can send the mail');
    const { subject, text } = event.data as unknown as MailPayload;
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
          : createSuccess(message.id);
      case 'replayed':
        return createSuccess(result.id);
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

const NO_RESPONSE = { durationMs: 0, status: null, body: null, retryAfterMs: null, isInstallationFault: false };

function createSuccess(messageId: string): SendResult {
  return { ...NO_RESPONSE, error: null, isFinal: true, messageId };
}

function createRefusal(error: string, isFinal = false): SendResult {
  return { ...NO_RESPONSE, error, isFinal };
}

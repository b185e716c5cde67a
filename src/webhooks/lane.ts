/** The lane of webhooks: moves events from the outbox to deliveries, builds, signs and sends requests. */
import type { KeyObject } from 'node:crypto';
import { classifyEntry } from '../classify/classify.ts';
import type { Clock } from '../clock.ts';
import type { PublishOf } from '../model/events.ts';
import { type LeasedDelivery, type RecordedWebhookEvent, WEBHOOK_TEST_TYPE, type Webhook } from '../model/webhook.ts';
import { buildWebhookPayload } from '../model/webhook-payload.ts';
import { signWebhook } from '../model/webhook-target.ts';
import type { WebhookWorkerStore } from '../store/contract.ts';
import type { WebhookClient } from './attempt.ts';
import type { Lane, SendResult } from './worker.ts';

const INSTALLATION_FAULTS = {
  'build a webhook': 'the body cannot be built from the stored event; report the cause shown in the log as a bug',
  'sign a webhook':
    'the webhook cannot be signed; restore POSTRIDER_SECRET, or rotate the signing secret of the endpoint and give its URL again',
  'send a webhook': 'the request cannot be made; report the cause shown in the log as a bug',
} as const;

export interface WebhookLaneParts extends Pick<Lane, 'getPauseMs'> {
  readonly clock: Clock;
  readonly createSeed: () => string;
  /** Events that were recorded before are not sent. */
  readonly getRetentionStart: () => number;
  readonly store: Pick<WebhookWorkerStore, 'fanOutEvents'> & {
    listWebhooks(): Promise<readonly Pick<Webhook, 'id' | 'failingSince'>[]>;
  };
  readonly attempt: WebhookClient['attempt'];
  /** Throws if the secret of the installation is lost or has changed. */
  readonly openSecret: (sealed: string) => KeyObject;
  readonly openUrl: (sealedUrl: string) => string;
  readonly publish: PublishOf<
    | 'webhook.attempt_succeeded'
    | 'webhook.attempt_failed'
    | 'webhook.delivery_failed'
    | 'webhook.disabled'
    | 'node.operation_failed'
  >;
}

export function createWebhookLane(parts: WebhookLaneParts): Lane {
  const { clock, createSeed, getRetentionStart, store, attempt, getPauseMs, openSecret, openUrl, publish } = parts;

  /** The current secret first, which must be readable. An earlier one that is not is skipped. */
  function openSecrets([current, ...previous]: readonly string[]): readonly KeyObject[] {
    const openedKeys = current === undefined ? [] : [openSecret(current)];
    for (const sealedSecret of previous) {
      try {
        openedKeys.push(openSecret(sealedSecret));
      } catch {
        // No signature for this secret is necessary: the receiver can verify the signature for the current secret.
      }
    }
    return openedKeys;
  }

  async function send({ id, sealedUrl, sealed, event }: LeasedDelivery, at: number): Promise<SendResult> {
    if (event.kind === 'missing') return createInstallationFault('the message of the event is no longer stored', true);
    const isFinal = event.type === WEBHOOK_TEST_TYPE;
    let operation: keyof typeof INSTALLATION_FAULTS = 'build a webhook';
    try {
      const body = Buffer.from(buildBody(event));
      operation = 'sign a webhook';
      const headers = { ...signWebhook(id, at, body, openSecrets(sealed)) };
      const url = openUrl(sealedUrl);
      operation = 'send a webhook';
      return { ...(await attempt({ url, headers, body })), isFinal, isInstallationFault: false };
    } catch (error) {
      publish({ type: 'node.operation_failed', at: clock.now(), operation, error });
      return createInstallationFault(INSTALLATION_FAULTS[operation], isFinal);
    }
  }

  return {
    name: 'webhook',
    getPauseMs,
    moveEvents: (maxEvents) => store.fanOutEvents(clock.now(), createSeed(), maxEvents, getRetentionStart()),
    async listFailing() {
      return (await store.listWebhooks()).flatMap(({ id, failingSince }) => (failingSince === null ? [] : [id]));
    },
    send,
    publishResult({ id, webhookId, event }, { attempt: { durationMs, status, error }, result }, disabled) {
      const at = clock.now();
      const members = { at, webhookId, deliveryId: id, eventType: event.type, status, tookMs: durationMs };
      switch (result.kind) {
        case 'delivered':
          publish({ type: 'webhook.attempt_succeeded', ...members });
          break;
        case 'retry':
          publish({ type: 'webhook.attempt_failed', ...members, error: error ?? '', retryAt: result.dueAt });
          break;
        case 'failed':
          publish({ type: 'webhook.delivery_failed', ...members, error: error ?? '' });
          break;
      }
      if (disabled !== null) publish({ type: 'webhook.disabled', at, webhookId, reason: disabled });
    },
  };
}

function createInstallationFault(error: string, isFinal: boolean): SendResult {
  return { durationMs: 0, status: null, error, body: null, retryAfterMs: null, isFinal, isInstallationFault: true };
}

/** The same event always has the same body. */
export function buildBody(event: RecordedWebhookEvent): string {
  return JSON.stringify(buildWebhookPayload(event, event.kind === 'message' ? classifyEntry(event.entry) : null));
}

import { randomBytes } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import type { Settings } from '../config/settings.ts';
import { createHostLookup } from '../domains/dns.ts';
import { loadWebhookKey } from '../domains/setup.ts';
import { DELIVERY_RETENTION_MS, type DeliverySettlement, type DeliverySettleResult } from '../model/webhook.ts';
import type { Events } from '../observability/events.ts';
import { createGroupCommit } from '../store/commits.ts';
import type { WebhookStore, WebhookWorkerStore } from '../store/contract.ts';
import { createWebhookClient } from '../webhooks/attempt.ts';
import { createWebhookPace } from '../webhooks/pace.ts';
import { createSigningKeyCache, openTargetUrl } from '../webhooks/sealing.ts';
import { startWebhookWorker } from '../webhooks/worker.ts';
import type { ClusterNode } from './node.ts';

const MAX_BATCH_SETTLEMENTS = 128;
/** Then the leases of the deliveries without a recorded result are released. */
const MAX_DRAIN_MS = 5_000;

export interface WebhookParts {
  readonly settings: Settings;
  readonly version: string;
  readonly node: ClusterNode;
  readonly store: WebhookWorkerStore & Pick<WebhookStore, 'listWebhooks'>;
  readonly events: Events;
  readonly drainMs: number;
}

export function startWebhooks({ settings, version, node, store, events, drainMs }: WebhookParts): AsyncDisposable {
  const stack = new AsyncDisposableStack();
  const { clock } = node;
  const { webhookTargets: targets } = settings;
  const { publish } = events;
  const client = createWebhookClient({
    clock,
    targets,
    lookUp: createHostLookup(settings.dns, targets === 'any'),
    userAgent: version === '' ? 'Postrider' : `Postrider/${version}`,
  });
  stack.defer(() => client.close());
  const settleCommits = createGroupCommit<DeliverySettlement, DeliverySettleResult>(
    (batch) => store.settleDeliveries(batch, clock.now()),
    { maxBatch: MAX_BATCH_SETTLEMENTS, now: clock.monotonic },
  );
  let utilization = performance.eventLoopUtilization();
  const pace = createWebhookPace(clock.monotonic, () => {
    const previousUtilization = utilization;
    utilization = performance.eventLoopUtilization();
    return performance.eventLoopUtilization(utilization, previousUtilization).utilization;
  });
  let key: Buffer | null = null;
  // The key is derived at the first use, so that an installation without endpoints needs no secret.
  const getKey = () => {
    key ??= loadWebhookKey(settings);
    return key;
  };
  const worker = startWebhookWorker({
    node: node.name,
    clock,
    random: Math.random,
    createSeed: () => randomBytes(8).toString('hex'),
    getRetentionStart: () => node.ages.getCutoff(DELIVERY_RETENTION_MS),
    store,
    settle: settleCommits.submit,
    attempt: client.attempt,
    pace,
    openSecret: createSigningKeyCache(getKey),
    openUrl: (sealedUrl) => openTargetUrl(getKey(), sealedUrl),
    publish,
  });
  stack.defer(() => worker.drain(Math.min(MAX_DRAIN_MS, drainMs)));
  // These events follow commits of this process and wake the worker at once. The poll of the worker finds the events of
  // other processes.
  const wake = () => worker.wake();
  stack.defer(
    events.subscribe({
      'store.committed': ({ size }) => {
        pace.countMessages(size);
        wake();
      },
      'message.confirmed': wake,
      'message.bounced': wake,
      'message.complained': wake,
      'message.suppressed': wake,
      'message.cancelled': wake,
      'operator.changed': wake,
    }),
  );
  return { [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

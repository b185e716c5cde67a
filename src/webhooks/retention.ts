/**
 * Purges deliveries at the end of their retention: delivered ones after 7 days, all others after 30 days, and those of
 * deleted endpoints.
 *
 * Guarantees: one transaction purges a limited number of rows, so that it does not delay other work. A failed round is
 * published as an event and repeated after the interval.
 */
import type { Clock } from '../clock.ts';
import type { PublishOf } from '../model/events.ts';
import type { WebhookWorkerStore } from '../store/webhook-store.ts';

const DAY_MS = 24 * 3_600_000;
const DELIVERED_RETENTION_MS = 7 * DAY_MS;
const RETENTION_MS = 30 * DAY_MS;
const INTERVAL_MS = 600_000;
const MAX_ROWS_PER_STEP = 500;

/** Starts the purge. The returned function stops it and resolves when the running round has ended. */
export function startDeliveryPurge({
  clock,
  store,
  publish,
}: {
  readonly clock: Clock;
  readonly store: Pick<WebhookWorkerStore, 'purgeDeliveries'>;
  readonly publish: PublishOf<'node.operation_failed'>;
}): () => Promise<void> {
  let isStopped = false;
  let cancel: () => void = () => undefined;
  let currentRound: Promise<void> = Promise.resolve();

  async function runRound(): Promise<void> {
    try {
      for (let count = MAX_ROWS_PER_STEP; !isStopped && count >= MAX_ROWS_PER_STEP; ) {
        const now = clock.now();
        count = await store.purgeDeliveries(now - DELIVERED_RETENTION_MS, now - RETENTION_MS, MAX_ROWS_PER_STEP);
      }
    } catch (error) {
      publish({ type: 'node.operation_failed', at: clock.now(), operation: 'purge webhooks', error });
    }
    if (!isStopped) cancel = clock.after(INTERVAL_MS, startRound);
  }

  function startRound(): void {
    currentRound = runRound();
  }

  startRound();
  return () => {
    isStopped = true;
    cancel();
    return currentRound;
  };
}

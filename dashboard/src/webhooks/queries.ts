/** Queries for webhook endpoints and their deliveries. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { DeliveryStatus } from '../../../src/model/webhook.ts';
import type { DeliveryEntry, WebhookEntry, WebhookFigures } from '../../../src/operations/webhooks.ts';
import { get, path } from '../api/client';
import { usePollingInterval } from '../api/live-connection';

/**
 * Live updates report the attempts of this node only. The figures and the pending deliveries are also polled, because
 * other nodes make attempts too.
 */
const POLL_INTERVAL_MS = 5_000;
const TEST_POLL_INTERVAL_MS = 500;

export const DELIVERY_PAGE_SIZE = 25;

export function useWebhooks() {
  return useQuery({ queryKey: ['webhooks'], queryFn: () => get<readonly WebhookEntry[]>('/webhooks') });
}

export function useWebhook(id: string) {
  return useQuery({ queryKey: ['webhooks', id], queryFn: () => get<WebhookEntry>(path`/webhooks/${id}`) });
}

/**
 * Loads the figures of every endpoint. The query key is not a topic, because each request counts all pending
 * deliveries, and live updates would repeat the request up to twice per second.
 */
export function useWebhookFigures() {
  return useQuery({
    queryKey: ['webhook-figures'],
    queryFn: () => get<readonly WebhookFigures[]>('/webhooks/statistics'),
    refetchInterval: POLL_INTERVAL_MS,
  });
}

/**
 * Loads one page of deliveries and one additional delivery. The additional delivery indicates that there are older
 * deliveries.
 */
export function useDeliveries(id: string, status: DeliveryStatus | '', before: string) {
  const pollingInterval = usePollingInterval();
  return useQuery({
    queryKey: ['webhooks', id, 'deliveries', status, before],
    queryFn: () =>
      get<readonly DeliveryEntry[]>(path`/webhooks/${id}/deliveries`, {
        status,
        before,
        limit: DELIVERY_PAGE_SIZE + 1,
      }),
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) => {
      if (state.data === undefined) return false;
      if (pollingInterval !== false) return pollingInterval;
      return state.data.some((delivery) => delivery.status === 'pending') ? POLL_INTERVAL_MS : false;
    },
  });
}

/** Loads one delivery repeatedly until it has an attempt. */
export function useFirstAttempt(id: string, delivery: string | null) {
  return useQuery({
    queryKey: ['webhooks', id, 'delivery', delivery],
    queryFn: async () => {
      const deliveries = await get<readonly DeliveryEntry[]>(path`/webhooks/${id}/deliveries`, {
        delivery: delivery ?? '',
      });
      return deliveries[0] ?? null;
    },
    enabled: delivery !== null,
    refetchInterval: ({ state }) => ((state.data?.attempts.length ?? 0) > 0 ? false : TEST_POLL_INTERVAL_MS),
  });
}

/** Badges for the states of endpoints and deliveries. */
import type { DeliveryStatus } from '../../../src/model/webhook.ts';
import type { WebhookEntry } from '../../../src/operations/webhooks.ts';
import { StatusBadge, type Tone } from '../parts/status-badge';

const DELIVERY_TONES: Readonly<Record<DeliveryStatus, Tone>> = {
  pending: 'info',
  delivered: 'success',
  failed: 'error',
};

/** `failing` means that the endpoint is enabled and that an attempt has failed since the last successful attempt. */
export function EndpointBadge({ webhook, isFailing }: { readonly webhook: WebhookEntry; readonly isFailing: boolean }) {
  if (webhook.status === 'disabled')
    return <StatusBadge tone={webhook.disabledReason === 'operator' ? 'neutral' : 'error'}>disabled</StatusBadge>;
  return isFailing ? (
    <StatusBadge tone="warning">failing</StatusBadge>
  ) : (
    <StatusBadge tone="success">enabled</StatusBadge>
  );
}

export function DeliveryBadge({ status }: { readonly status: DeliveryStatus }) {
  return <StatusBadge tone={DELIVERY_TONES[status]}>{status}</StatusBadge>;
}

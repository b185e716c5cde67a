/** The deliveries of an endpoint with their attempts, newest first, with replays. */
import { Button, Group, SegmentedControl, Table, Title } from '@mantine/core';
import { useState } from 'react';
import { DELIVERY_STATUSES, type DeliveryStatus } from '../../../src/model/webhook.ts';
import type { WebhookEntry } from '../../../src/operations/webhooks/schemas.ts';
import { useUrlState } from '../api/url-state';
import { EmptyState, ErrorAlert, Loading } from '../parts/page-states';
import { DeliveryRow } from './delivery-row';
import { DELIVERY_PAGE_SIZE, useDeliveries } from './queries';
import { ReplayDialog } from './replay-dialog';

const FILTERS = [
  { value: '', label: 'All' },
  { value: 'pending', label: 'Pending' },
  { value: 'delivered', label: 'Delivered' },
  { value: 'failed', label: 'Failed' },
];

export function Deliveries({ webhook }: { readonly webhook: WebhookEntry }) {
  const [urlState, setUrlState] = useUrlState();
  const [isReplayOpen, setIsReplayOpen] = useState(false);
  const status = toStatus(urlState.get('status'));
  const before = urlState.get('before') ?? '';
  const page = useDeliveries(webhook.id, status, before);
  const deliveries = (page.data ?? []).slice(0, DELIVERY_PAGE_SIZE);
  const older = (page.data?.length ?? 0) > DELIVERY_PAGE_SIZE ? deliveries.at(-1) : undefined;
  return (
    <section aria-labelledby="deliveries">
      <Group justify="space-between" mb="sm">
        <Title order={2} size="h4" id="deliveries">
          Deliveries
        </Title>
        <Group gap="sm">
          <SegmentedControl
            aria-label="Status of the deliveries"
            data={FILTERS}
            value={status}
            onChange={(value) => setUrlState({ status: value, before: null })}
          />
          <Button
            variant="default"
            disabled={webhook.status === 'disabled'}
            title={webhook.status === 'disabled' ? 'Enable the endpoint first' : undefined}
            onClick={() => setIsReplayOpen(true)}
          >
            Replay…
          </Button>
        </Group>
      </Group>
      {page.isPending ? <Loading /> : null}
      {page.isError ? <ErrorAlert error={page.error} retry={page.refetch} /> : null}
      {page.isSuccess && deliveries.length === 0 ? (
        <EmptyState title={status === '' ? 'No deliveries' : `No ${status} deliveries`}>
          {status === ''
            ? 'Each event of the subscription makes one delivery. Send a test to try the endpoint.'
            : undefined}
        </EmptyState>
      ) : null}
      {deliveries.length === 0 ? null : (
        <Table>
          <Table.Thead>
            <Table.Tr>
              <Table.Th scope="col" visibleFrom="sm">
                State
              </Table.Th>
              <Table.Th scope="col">Event</Table.Th>
              <Table.Th scope="col" visibleFrom="sm">
                Last attempt
              </Table.Th>
              <Table.Th scope="col" visibleFrom="md">
                Recorded
              </Table.Th>
              <Table.Th scope="col">
                <span className="unseen">Actions</span>
              </Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {deliveries.map((delivery) => (
              <DeliveryRow key={delivery.id} delivery={delivery} webhook={webhook} />
            ))}
          </Table.Tbody>
        </Table>
      )}
      <Group justify="space-between" my="md">
        {before === '' ? (
          <span />
        ) : (
          <Button variant="default" onClick={() => setUrlState({ before: null })}>
            Newest
          </Button>
        )}
        {older === undefined ? null : (
          <Button variant="default" loading={page.isPlaceholderData} onClick={() => setUrlState({ before: older.id })}>
            Older
          </Button>
        )}
      </Group>
      {isReplayOpen ? <ReplayDialog webhook={webhook} onClose={() => setIsReplayOpen(false)} /> : null}
    </section>
  );
}

function toStatus(text: string | null): DeliveryStatus | '' {
  return DELIVERY_STATUSES.find((status) => status === text) ?? '';
}

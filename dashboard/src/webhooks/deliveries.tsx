/** The deliveries of an endpoint with their attempts, newest first, and the actions that replay deliveries. */
import { Button, Group, SegmentedControl, Title } from '@mantine/core';
import { useState } from 'react';
import { DELIVERY_STATUSES, type DeliveryStatus } from '../../../src/model/webhook.ts';
import type { DeliveryEntry, WebhookEntry } from '../../../src/operations/webhooks.ts';
import { useUrlState } from '../api/url-state';
import { ListHead } from '../parts/list-row';
import { NewRowsButton } from '../parts/new-rows-button';
import { EmptyState, ErrorAlert, Loading } from '../parts/page-states';
import { findOlderPageStart, type ListPage, OlderPages, toListPage } from '../parts/page-turner';
import { mergeFilteredRows, mergeRows, useSteadyRows } from '../parts/steady-rows';
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
  const listPage = toListPage(page.data, DELIVERY_PAGE_SIZE);
  const latestDeliveries = page.isSuccess && !page.isPlaceholderData ? listPage.rows : undefined;
  const { rows, newCount, showNew } = useSteadyRows(
    latestDeliveries,
    `${webhook.id} ${status} ${before}`,
    status === '' ? mergeRows : mergeFilteredRows,
  );
  // While another page loads, the rows of the previous page are shown.
  const deliveries = page.isPlaceholderData ? listPage.rows : rows;
  const olderPageStart = findOlderPageStart(listPage, deliveries);
  const outdatedIds = page.isPlaceholderData ? new Set<string>() : findOutdatedIds(deliveries, listPage);
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
            ? 'Each event that the endpoint subscribes to creates one delivery. Send a test to try the endpoint.'
            : undefined}
        </EmptyState>
      ) : null}
      <NewRowsButton
        count={newCount}
        outdatedCount={outdatedIds.size}
        noun="delivery"
        nounPlural="deliveries"
        onShow={showNew}
      />
      {deliveries.length === 0 ? null : (
        <div className="card flush">
          <table className="list">
            <caption className="unseen">Deliveries, newest first</caption>
            <ListHead columns={['State', 'Event', 'Last attempt', 'Recorded', '']} />
            <tbody>
              {deliveries.map((delivery) => (
                <DeliveryRow
                  key={delivery.id}
                  delivery={delivery}
                  webhook={webhook}
                  isOutdated={outdatedIds.has(delivery.id)}
                />
              ))}
            </tbody>
          </table>
          <OlderPages olderPageStart={olderPageStart} isLoading={page.isPlaceholderData} />
        </div>
      )}
      {isReplayOpen ? <ReplayDialog webhook={webhook} onClose={() => setIsReplayOpen(false)} /> : null}
    </section>
  );
}

function toStatus(text: string | null): DeliveryStatus | '' {
  return DELIVERY_STATUSES.find((status) => status === text) ?? '';
}

/**
 * Returns the ids of the shown deliveries that are missing from `page`, although they are not older than its last
 * delivery.
 */
function findOutdatedIds(
  shownDeliveries: readonly DeliveryEntry[],
  page: ListPage<DeliveryEntry>,
): ReadonlySet<string> {
  const currentIds = new Set(page.rows.map(({ id }) => id));
  const lastId = page.rows.at(-1)?.id ?? '';
  const outdatedDeliveries = shownDeliveries.filter(
    ({ id }) => !currentIds.has(id) && (page.olderPageStart === null || id > lastId),
  );
  return new Set(outdatedDeliveries.map(({ id }) => id));
}

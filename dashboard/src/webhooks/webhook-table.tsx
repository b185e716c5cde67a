/** A table of endpoints: URL, account, events, state, last success and pending deliveries. */
import { Anchor, Button, Group, Table, Text } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import type { WebhookEntry, WebhookFigures } from '../../../src/operations/webhooks/schemas.ts';
import { path } from '../api/client';
import { formatCount, formatNumber } from '../parts/number';
import { RelativeTime } from '../parts/relative-time';
import { EndpointBadge } from './badges';
import { describeEvents } from './event-text';

/** The number of rows that each step adds. An installation may have 10,000 endpoints. */
const ROWS_STEP = 100;

interface WebhookTableProps {
  readonly webhooks: readonly WebhookEntry[];
  /** The figures by id. Undefined while they are loaded. */
  readonly figures: ReadonlyMap<string, WebhookFigures> | undefined;
}

export function WebhookTable({ webhooks, figures }: WebhookTableProps) {
  const [rowCount, setRowCount] = useState(ROWS_STEP);
  return (
    <>
      <Table>
        <Table.Thead>
          <Table.Tr>
            <Table.Th scope="col">Endpoint</Table.Th>
            <Table.Th scope="col">State</Table.Th>
            <Table.Th scope="col" visibleFrom="sm">
              Account
            </Table.Th>
            <Table.Th scope="col" visibleFrom="md">
              Events
            </Table.Th>
            <Table.Th scope="col" visibleFrom="sm">
              Last success
            </Table.Th>
            <Table.Th scope="col" visibleFrom="xs" ta="right">
              Pending
            </Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {webhooks.slice(0, rowCount).map((webhook) => (
            <WebhookRow key={webhook.id} webhook={webhook} figures={figures?.get(webhook.id)} />
          ))}
        </Table.Tbody>
      </Table>
      {webhooks.length > rowCount ? (
        <Group justify="center" my="md">
          <Button variant="default" onClick={() => setRowCount(rowCount + ROWS_STEP)}>
            Show more ({formatNumber(webhooks.length - rowCount)} left)
          </Button>
        </Group>
      ) : null}
    </>
  );
}

interface WebhookRowProps {
  readonly webhook: WebhookEntry;
  readonly figures: WebhookFigures | undefined;
}

function WebhookRow({ webhook, figures }: WebhookRowProps) {
  const { id, url, name, account, events } = webhook;
  const failingSince = figures?.failingSince ?? null;
  return (
    <Table.Tr>
      <Table.Td>
        <Anchor inherit component={Link} href={path`/webhooks/${id}`} className="wrap">
          {url}
        </Anchor>
        <Text size="sm" c="dimmed" className="wrap">
          {id}
          {name === null ? '' : ` · ${name}`}
        </Text>
        <Text size="sm" c="dimmed" hiddenFrom="sm">
          {figures === undefined ? '' : <LastSuccess figures={figures} />}
          {figures === undefined || figures.pending === 0 ? '' : ` · ${formatNumber(figures.pending)} pending`}
        </Text>
      </Table.Td>
      <Table.Td>
        <EndpointBadge webhook={webhook} isFailing={failingSince !== null} />
        {failingSince === null ? null : (
          <Text size="sm" c="dimmed">
            since <RelativeTime at={failingSince} />
          </Text>
        )}
      </Table.Td>
      <Table.Td visibleFrom="sm">
        {account === null ? (
          'every account'
        ) : (
          <Anchor inherit component={Link} href={path`/accounts/${account}`} className="wrap">
            {account}
          </Anchor>
        )}
      </Table.Td>
      <Table.Td visibleFrom="md" className="wrap">
        {describeEvents(events)}
      </Table.Td>
      <Table.Td visibleFrom="sm">{figures === undefined ? '–' : <LastSuccess figures={figures} />}</Table.Td>
      <Table.Td visibleFrom="xs" ta="right">
        {figures === undefined ? '–' : formatNumber(figures.pending)}
        {figures === undefined || figures.failed === 0 ? null : (
          <Text size="sm" c="error">
            {formatCount(figures.failed, 'failed', 'failed')}
          </Text>
        )}
      </Table.Td>
    </Table.Tr>
  );
}

function LastSuccess({ figures: { lastSuccessAt } }: { readonly figures: WebhookFigures }) {
  return lastSuccessAt === null ? 'no success yet' : <RelativeTime at={lastSuccessAt} />;
}

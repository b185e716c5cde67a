/** The endpoint page: state, figures, actions on the endpoint, and deliveries. */
import { Anchor, Space } from '@mantine/core';
import { Link } from 'wouter';
import type { WebhookEntry, WebhookFigures } from '../../../src/operations/webhooks.ts';
import { path } from '../api/client';
import { Card, Fact } from '../parts/card';
import { LoadError } from '../parts/load-error';
import { formatNumber } from '../parts/number';
import { PageHead } from '../parts/page-head';
import { Loading } from '../parts/page-states';
import { RelativeTime } from '../parts/relative-time';
import { formatTime } from '../parts/time';
import { EndpointBadge } from '../webhooks/badges';
import { Deliveries } from '../webhooks/deliveries';
import { EndpointActions } from '../webhooks/endpoint-actions';
import { describeEvents } from '../webhooks/event-text';
import { useWebhook, useWebhookFigures } from '../webhooks/queries';
import { StatusNote } from '../webhooks/status-note';
import type { PageProps } from './index';

const LIST_LINK = { href: '/webhooks', text: 'Webhooks' };

export function WebhookPage({ parameters }: PageProps) {
  const id = parameters.id ?? '';
  const webhook = useWebhook(id);
  const figures = useWebhookFigures();
  if (webhook.data !== undefined)
    return <WebhookContent webhook={webhook.data} figures={figures.data?.find((entry) => entry.id === id)} />;
  return (
    <>
      <PageHead title={id} parent={LIST_LINK} />
      {webhook.isError ? (
        <LoadError
          error={webhook.error}
          retry={webhook.refetch}
          title="No endpoint has this id"
          href="/webhooks"
          link="Show all endpoints"
        />
      ) : (
        <Loading />
      )}
    </>
  );
}

interface ContentProps {
  readonly webhook: WebhookEntry;
  readonly figures: WebhookFigures | undefined;
}

function WebhookContent({ webhook, figures }: ContentProps) {
  return (
    <>
      <PageHead
        title={webhook.name ?? webhook.url}
        parent={LIST_LINK}
        badge={<EndpointBadge webhook={webhook} isFailing={(figures?.failingSince ?? null) !== null} />}
      >
        <EndpointActions webhook={webhook} figures={figures} />
      </PageHead>
      <StatusNote webhook={webhook} figures={figures} />
      <WebhookFacts webhook={webhook} figures={figures} />
      <Space h="lg" />
      <Deliveries key={webhook.id} webhook={webhook} />
    </>
  );
}

function WebhookFacts({
  webhook: { id, url, account, events, createdAt, previousSecretUntil },
  figures,
}: ContentProps) {
  return (
    <div className="columns halves">
      <Card title="Endpoint">
        <Fact name="URL">{url}</Fact>
        <Fact name="Account">
          {account === null ? (
            'every account'
          ) : (
            <Anchor component={Link} href={path`/accounts/${account}`} inherit>
              {account}
            </Anchor>
          )}
        </Fact>
        <Fact name="Events">
          <details>
            <summary>{describeEvents(events)}</summary>
            <ul className="plain">
              {events.map((type) => (
                <li key={type}>{type}</li>
              ))}
            </ul>
          </details>
        </Fact>
        <Fact name="Created">{formatTime(createdAt)}</Fact>
        {previousSecretUntil === null ? null : (
          <Fact name="Old secret signs until">{formatTime(previousSecretUntil)}</Fact>
        )}
        <Fact name="Id">
          <code>{id}</code>
        </Fact>
      </Card>
      {figures === undefined ? null : (
        <Card title="Deliveries now">
          <div className="big-figure">
            {formatNumber(figures.pending)}
            <small>pending</small>
          </div>
          {figures.oldestPendingAt === null ? null : (
            <Fact name="Oldest pending">
              <RelativeTime at={figures.oldestPendingAt} />
            </Fact>
          )}
          <Fact name="Failed">{formatNumber(figures.failed)}</Fact>
          <Fact name="Last success">
            {figures.lastSuccessAt === null ? 'none yet' : <RelativeTime at={figures.lastSuccessAt} />}
          </Fact>
        </Card>
      )}
    </div>
  );
}

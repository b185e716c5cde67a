/** The page of an endpoint: its state, its figures, the actions on it, and its deliveries. */
import { Anchor, Space } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { WebhookEntry, WebhookFigures } from '../../../src/operations/webhooks/schemas.ts';
import { path } from '../api/client';
import { LoadError } from '../parts/load-error';
import { formatNumber } from '../parts/number';
import { PageHead } from '../parts/page-head';
import { Loading } from '../parts/page-states';
import { RelativeTime } from '../parts/relative-time';
import { formatUtc } from '../parts/time';
import { EndpointBadge } from '../webhooks/badges';
import { Deliveries } from '../webhooks/deliveries';
import { EndpointActions } from '../webhooks/endpoint-actions';
import { describeEvents } from '../webhooks/event-text';
import { useWebhook, useWebhookFigures } from '../webhooks/queries';
import { StatusNote } from '../webhooks/status-note';
import type { PageProps } from './index';

const LIST = { href: '/webhooks', text: 'Webhooks' };

export function WebhookPage({ parameters }: PageProps) {
  const id = parameters.id ?? '';
  const webhook = useWebhook(id);
  const figures = useWebhookFigures();
  if (webhook.data !== undefined)
    return <Content webhook={webhook.data} figures={figures.data?.find((entry) => entry.id === id)} />;
  return (
    <>
      <PageHead title={id} parent={LIST} />
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

function Content({ webhook, figures }: ContentProps) {
  return (
    <>
      <PageHead
        title={webhook.name ?? webhook.url}
        parent={LIST}
        badge={<EndpointBadge webhook={webhook} isFailing={(figures?.failingSince ?? null) !== null} />}
      >
        <EndpointActions webhook={webhook} figures={figures} />
      </PageHead>
      <StatusNote webhook={webhook} figures={figures} />
      <Facts webhook={webhook} figures={figures} />
      <Space h="lg" />
      <Deliveries key={webhook.id} webhook={webhook} />
    </>
  );
}

function Facts({ webhook: { id, url, account, events, createdAt, previousSecretUntil }, figures }: ContentProps) {
  return (
    <dl className="facts head">
      <Fact name="id">{id}</Fact>
      <Fact name="URL">{url}</Fact>
      <Fact name="account">
        {account === null ? (
          'every account'
        ) : (
          <Anchor component={Link} href={path`/accounts/${account}`} inherit>
            {account}
          </Anchor>
        )}
      </Fact>
      <Fact name="events">
        <details>
          <summary>{describeEvents(events)}</summary>
          <ul className="plain">
            {events.map((type) => (
              <li key={type}>{type}</li>
            ))}
          </ul>
        </details>
      </Fact>
      <Fact name="created">{formatUtc(createdAt)}</Fact>
      {previousSecretUntil === null ? null : (
        <Fact name="old secret signs until">{formatUtc(previousSecretUntil)}</Fact>
      )}
      {figures === undefined ? null : (
        <>
          <Fact name="last success">
            {figures.lastSuccessAt === null ? 'none yet' : <RelativeTime at={figures.lastSuccessAt} />}
          </Fact>
          <Fact name="pending">
            {formatNumber(figures.pending)}
            {figures.oldestPendingAt === null ? null : (
              <>
                {' '}
                (oldest <RelativeTime at={figures.oldestPendingAt} />)
              </>
            )}
          </Fact>
          <Fact name="failed">{formatNumber(figures.failed)}</Fact>
        </>
      )}
    </dl>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

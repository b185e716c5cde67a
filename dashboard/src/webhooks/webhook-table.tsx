/** A list of endpoints: URL, account, events, state, last success and pending deliveries. */
import { Button } from '@mantine/core';
import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import type { WebhookEntry, WebhookFigures } from '../../../src/operations/webhooks.ts';
import { path } from '../api/client';
import { ListHead, ListRow } from '../parts/list-row';
import { formatCount, formatNumber } from '../parts/number';
import { RelativeTime } from '../parts/relative-time';
import { useRowKeys } from '../parts/use-row-keys';
import { EndpointBadge } from './badges';
import { describeEvents } from './event-text';

/** The number of rows that each click on the button `Show more` adds. An installation may have 10,000 endpoints. */
const ROWS_PER_STEP = 100;

interface WebhookTableProps {
  readonly webhooks: readonly WebhookEntry[];
  /** The figures by endpoint id. Undefined while the figures are loading. */
  readonly figures: ReadonlyMap<string, WebhookFigures> | undefined;
}

export function WebhookTable({ webhooks, figures }: WebhookTableProps) {
  const [, navigate] = useLocation();
  const [rowCount, setRowCount] = useState(ROWS_PER_STEP);
  const shownWebhooks = webhooks.slice(0, rowCount);
  const openWebhook = (id: string) => navigate(path`/webhooks/${id}`);
  const currentId = useRowKeys({ ids: shownWebhooks.map(({ id }) => id), onOpen: openWebhook });
  return (
    <div className="card flush">
      <table className="list">
        <caption className="unseen">Endpoints</caption>
        <ListHead columns={['State', 'Endpoint and events', 'Account', 'Last success', 'Deliveries']} />
        <tbody>
          {shownWebhooks.map((webhook) => (
            <WebhookRow
              key={webhook.id}
              webhook={webhook}
              figures={figures?.get(webhook.id)}
              isCurrent={currentId === webhook.id}
              onOpen={() => openWebhook(webhook.id)}
            />
          ))}
        </tbody>
      </table>
      {webhooks.length > rowCount ? (
        <div className="list-foot">
          <span>{formatNumber(webhooks.length - rowCount)} more</span>
          <Button variant="default" size="xs" onClick={() => setRowCount(rowCount + ROWS_PER_STEP)}>
            Show more
          </Button>
        </div>
      ) : null}
    </div>
  );
}

interface WebhookRowProps {
  readonly webhook: WebhookEntry;
  readonly figures: WebhookFigures | undefined;
  readonly isCurrent: boolean;
  readonly onOpen: () => void;
}

function WebhookRow({ webhook, figures, isCurrent, onOpen }: WebhookRowProps) {
  const { id, url, name, account, events } = webhook;
  const failingSince = figures?.failingSince ?? null;
  return (
    <ListRow id={id} isCurrent={isCurrent} onOpen={onOpen}>
      <td>
        <EndpointBadge webhook={webhook} isFailing={failingSince !== null} />
        {failingSince === null ? null : (
          <div className="muted">
            since <RelativeTime at={failingSince} />
          </div>
        )}
      </td>
      <td className="fill">
        <div className="two-lines">
          <Link href={path`/webhooks/${id}`}>{url}</Link>
          <span>
            {id}
            {name === null ? '' : ` · ${name}`} · {describeEvents(events)}
          </span>
        </div>
      </td>
      <td data-label="Account">
        {account === null ? (
          <span className="muted">every account</span>
        ) : (
          <Link href={path`/accounts/${account}`} className="row-link wrap">
            {account}
          </Link>
        )}
      </td>
      <td className="nowrap" data-label="Last success">
        {figures === undefined ? '–' : <LastSuccess figures={figures} />}
      </td>
      <td data-label="Deliveries">
        {figures === undefined ? '–' : `${formatNumber(figures.pending)} pending`}
        {figures === undefined || figures.failed === 0 ? null : (
          <div className="delta worse">{formatCount(figures.failed, 'failed', 'failed')}</div>
        )}
      </td>
    </ListRow>
  );
}

function LastSuccess({ figures: { lastSuccessAt } }: { readonly figures: WebhookFigures }) {
  return lastSuccessAt === null ? <span className="muted">none yet</span> : <RelativeTime at={lastSuccessAt} />;
}

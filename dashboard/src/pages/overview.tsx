/** The overview: problems, tiles, outcomes over time, queue, and health. */
import { SegmentedControl } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useSearchParams } from 'wouter';
import type { Overview, Range } from '../../../src/operations/overview/schemas.ts';
import { get } from '../api/client';
import { FirstMessage } from '../parts/first-message';
import { OutcomesChart, OverviewDetails } from '../parts/overview-figures';
import { OverviewAttention, OverviewHealth } from '../parts/overview-health';
import { OverviewQueue } from '../parts/overview-queue';
import { OverviewTiles } from '../parts/overview-tiles';
import { PageHead } from '../parts/page-head';
import { EmptyState, ErrorAlert, Loading } from '../parts/page-states';
import type { PageProps } from './index';

const RANGES: readonly { readonly value: Range; readonly label: string; readonly phrase: string }[] = [
  { value: '1h', label: '1 h', phrase: 'hour' },
  { value: '24h', label: '24 h', phrase: '24 hours' },
  { value: '7d', label: '7 d', phrase: '7 days' },
  { value: '30d', label: '30 d', phrase: '30 days' },
];
const DEFAULT_RANGE: Range = '24h';
/** The interval at which the page refetches without an event, because ages grow and intervals end. */
const REFRESH_INTERVAL_MS = 10_000;

export function OverviewPage({ session }: PageProps) {
  const [search, setSearch] = useSearchParams();
  const range = RANGES.find(({ value }) => value === search.get('range'))?.value ?? DEFAULT_RANGE;
  const overview = useQuery({
    queryKey: ['overview', range],
    queryFn: () => get<Overview>('/overview', { range }),
    refetchInterval: REFRESH_INTERVAL_MS,
    placeholderData: keepPreviousData,
  });
  return (
    <>
      <PageHead title="Overview">
        <SegmentedControl
          aria-label="Time range of the figures"
          data={RANGES.map(({ value, label }) => ({ value, label }))}
          value={range}
          onChange={(value) => setSearch(value === DEFAULT_RANGE ? {} : { range: value })}
        />
      </PageHead>
      {overview.isPending ? <Loading /> : null}
      {overview.isError ? <ErrorAlert error={overview.error} retry={() => overview.refetch()} /> : null}
      {overview.data === undefined ? null : <Content overview={overview.data} session={session} />}
    </>
  );
}

function Content({ overview, session }: { readonly overview: Overview } & Pick<PageProps, 'session'>) {
  const { everAccepted, attention, queue, health, range } = overview;
  // The panel stays open after the first message, so that the operator sees the state of this message.
  const [isNew] = useState(!everAccepted);
  const phrase = RANGES.find(({ value }) => value === range)?.phrase ?? range;
  return (
    <div className="stack">
      {isNew ? <FirstMessage session={session} /> : null}
      {everAccepted ? (
        <>
          <OverviewAttention attention={attention} />
          <OverviewTiles overview={overview} period={phrase} />
        </>
      ) : null}
      <div className="columns wide-side">
        {everAccepted ? (
          <OutcomesChart overview={overview} />
        ) : (
          <div className="stack">
            <OverviewAttention attention={attention} />
            <section className="card">
              <EmptyState title="No messages">
                Charts of accepted, delivered and bounced messages appear here after the first message.
              </EmptyState>
            </section>
          </div>
        )}
        <div className="stack">
          <OverviewQueue queue={queue} />
          <OverviewHealth health={health} />
        </div>
      </div>
      {everAccepted ? <OverviewDetails overview={overview} /> : null}
    </div>
  );
}

/** Overview: what wants attention, the queue, the health of the parts, and figures over time, as they change. */
import { SegmentedControl, Stack } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useSearchParams } from 'wouter';
import type { Overview, Range } from '../../../src/operations/overview/schemas.ts';
import { get } from '../api/client';
import { FirstMail } from '../parts/first-mail';
import { FiguresTitle, OverviewFigures } from '../parts/overview-figures';
import { OverviewAttention, OverviewHealth } from '../parts/overview-health';
import { OverviewQueue } from '../parts/overview-queue';
import { PageHead } from '../parts/page-head';
import { Empty, Failure, Loading } from '../parts/states';
import type { PageProps } from './index';

const RANGES: readonly { readonly value: Range; readonly label: string; readonly words: string }[] = [
  { value: '1h', label: '1 h', words: 'hour' },
  { value: '24h', label: '24 h', words: '24 hours' },
  { value: '7d', label: '7 d', words: '7 days' },
  { value: '30d', label: '30 d', words: '30 days' },
];
const USUAL: Range = '24h';
/** Time goes on where nothing happens: ages grow, and steps end. */
const AGAIN_MS = 10_000;

export function OverviewPage({ session }: PageProps) {
  const [search, setSearch] = useSearchParams();
  const range = RANGES.find(({ value }) => value === search.get('range'))?.value ?? USUAL;
  const overview = useQuery({
    queryKey: ['overview', range],
    queryFn: () => get<Overview>('/overview', { range }),
    refetchInterval: AGAIN_MS,
    placeholderData: keepPreviousData,
  });
  return (
    <>
      <PageHead title="Overview">
        <SegmentedControl
          aria-label="How far back the figures go"
          data={RANGES.map(({ value, label }) => ({ value, label }))}
          value={range}
          onChange={(value) => setSearch(value === USUAL ? {} : { range: value })}
        />
      </PageHead>
      {overview.isPending ? <Loading /> : null}
      {overview.isError ? <Failure error={overview.error} retry={() => overview.refetch()} /> : null}
      {overview.data === undefined ? null : <Content overview={overview.data} session={session} />}
    </>
  );
}

function Content({ overview, session }: { readonly overview: Overview } & Pick<PageProps, 'session'>) {
  const { everAccepted, attention, queue, health, range } = overview;
  // Who came to a new installation stays with the panel that shows the first mail arrive.
  const [isNew] = useState(!everAccepted);
  const words = RANGES.find(({ value }) => value === range)?.words ?? range;
  return (
    <Stack gap="lg">
      {isNew ? <FirstMail session={session} /> : null}
      <div className="glance" data-calm={attention.length === 0}>
        <OverviewAttention attention={attention} />
        <OverviewQueue queue={queue} />
        <OverviewHealth health={health} />
      </div>
      <Stack gap="sm">
        <FiguresTitle>{`The last ${words}`}</FiguresTitle>
        {everAccepted ? (
          <OverviewFigures overview={overview} />
        ) : (
          <Empty title="No mail yet">
            Charts of what is accepted, delivered and refused are drawn here from the first one on.
          </Empty>
        )}
      </Stack>
    </Stack>
  );
}

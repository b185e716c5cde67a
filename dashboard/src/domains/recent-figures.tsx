/** The figures of a sending domain in the last 7 days. */
import { Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { Deliverability } from '../../../src/operations/deliverability.ts';
import { get } from '../api/client';
import { Card, Fact } from '../parts/card';
import { formatNumber, formatPercent } from '../parts/number';
import { ErrorAlert } from '../parts/page-states';

const REFRESH_INTERVAL_MS = 60_000;

export function RecentFigures({ domain }: { readonly domain: string }) {
  const figures = useQuery({
    queryKey: ['deliverability', 'domain', domain],
    queryFn: () =>
      get<Deliverability>('/deliverability', { by: 'provider', range: '7d', sendingDomain: domain, limit: 1 }),
    refetchInterval: REFRESH_INTERVAL_MS,
  });
  return (
    <Card
      title="Last 7 days"
      link={{ href: `/messages?${new URLSearchParams({ from: `@${domain}`, since: '7d' })}`, text: 'Messages' }}
    >
      {figures.isPending ? <Skeleton height={110} radius="sm" role="status" aria-label="Loading" /> : null}
      {figures.isError ? <ErrorAlert error={figures.error} retry={() => figures.refetch()} /> : null}
      {figures.data === undefined ? null : <TotalFigures total={figures.data.total} />}
    </Card>
  );
}

function TotalFigures({ total }: Pick<Deliverability, 'total'>) {
  const { accepted, delivered, deferred, ended, bounces, complaintRate, deliveredRate } = total;
  return (
    <>
      <div className="big-figure">
        {formatNumber(accepted)}
        <small>{accepted === 1 ? 'message' : 'messages'}</small>
      </div>
      {accepted === 0 && ended === 0 ? (
        <span className="muted">No message from this domain was accepted.</span>
      ) : (
        <>
          <Fact name="Delivered">
            {deliveredRate === null ? formatNumber(delivered) : formatPercent(deliveredRate)}
          </Fact>
          <Fact name="Hard bounces · complaints">
            {formatRate(ended === 0 ? null : bounces.hard / ended)} · {formatRate(complaintRate)}
          </Fact>
          <Fact name="Deferred attempts">{formatNumber(deferred)}</Fact>
        </>
      )}
    </>
  );
}

function formatRate(rate: number | null): string {
  return rate === null ? '–' : formatPercent(rate);
}

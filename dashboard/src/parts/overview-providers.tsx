/** The figures of the largest mailbox providers in the range of the overview. */
import { Skeleton } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import type { Deliverability, DeliverabilityFigures } from '../../../src/operations/deliverability.ts';
import type { Range } from '../../../src/statistics/figures.ts';
import { get } from '../api/client';
import { Card } from './card';
import { formatShare } from './change';
import { formatNumber } from './number';
import { ErrorAlert } from './page-states';
import { formatDuration, formatMinute } from './time';

const MAX_ROWS = 5;
const REFRESH_INTERVAL_MS = 30_000;
/**
 * From this value, the rate of hard bounces is shown in red. Relay providers begin to review a sender at about this
 * rate.
 */
const HIGH_HARD_BOUNCE_RATE = 0.05;
/** The height of the placeholder while the rows load, so that the loaded rows do not move other cards. */
const LOADING_HEIGHT_PX = 214;

/** The keys of the rows that do not belong to a mailbox provider. */
const KEYS_WITHOUT_PROVIDER: readonly string[] = ['other', 'unknown', 'none'];

/** The segments of the outcome bar, from left to right. */
const OUTCOMES = ['delivered', 'deferred', 'bounced'] as const;

export function OverviewProviders({ range }: { readonly range: Range }) {
  const figures = useQuery({
    queryKey: ['deliverability', 'overview', range],
    queryFn: () => get<Deliverability>('/deliverability', { by: 'provider', range, limit: MAX_ROWS }),
    refetchInterval: REFRESH_INTERVAL_MS,
    placeholderData: keepPreviousData,
  });
  const { other = null } = figures.data ?? {};
  // The rows of mailbox providers come before the rows of servers without a known provider.
  const rows = (figures.data?.rows ?? []).toSorted(
    (a, b) => Number(KEYS_WITHOUT_PROVIDER.includes(a.key)) - Number(KEYS_WITHOUT_PROVIDER.includes(b.key)),
  );
  const href = range === '24h' ? '/deliverability' : `/deliverability?range=${range}`;
  const from = figures.data?.from;
  return (
    <Card
      title="Mailbox providers"
      {...(from === undefined ? {} : { secondary: `since ${formatMinute(from)}` })}
      link={{ href, text: 'Deliverability' }}
      flush
    >
      {figures.isPending ? (
        <div className="card-body">
          <Skeleton height={LOADING_HEIGHT_PX} radius="sm" />
        </div>
      ) : null}
      {figures.isError ? (
        <div className="card-body">
          <ErrorAlert error={figures.error} retry={() => figures.refetch()} />
        </div>
      ) : null}
      {figures.isSuccess && rows.length === 0 ? (
        <div className="card-body muted">No message was accepted in this range.</div>
      ) : null}
      {rows.length === 0 ? null : (
        <table className="list providers">
          <caption className="unseen">Figures by mailbox provider</caption>
          <thead>
            <tr>
              <th scope="col">Provider</th>
              <th scope="col" className="end">
                Messages
              </th>
              <th scope="col">Outcome</th>
              {['Delivered', 'Hard bounce', 'p50'].map((heading) => (
                <th key={heading} scope="col" className="end">
                  {heading}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.key}>
                <td>
                  <Link
                    className={KEYS_WITHOUT_PROVIDER.includes(row.key) ? 'row-name-link muted' : 'row-name-link'}
                    href={`${href}${href.includes('?') ? '&' : '?'}key=${encodeURIComponent(row.key)}`}
                  >
                    {row.name}
                  </Link>
                </td>
                <FigureCells figures={row} />
              </tr>
            ))}
            {other === null || other.accepted === 0 ? null : (
              <tr>
                <td className="muted">All others</td>
                <FigureCells figures={other} />
              </tr>
            )}
          </tbody>
        </table>
      )}
    </Card>
  );
}

function FigureCells({ figures }: { readonly figures: DeliverabilityFigures }) {
  const { accepted, ended, bounces, deliveredRate, latencyMs } = figures;
  const hardBounceRate = ended === 0 ? null : bounces.hard / ended;
  return (
    <>
      <td className="end">{formatNumber(accepted)}</td>
      <td className="outcome-bar">
        <span className="bar">
          {OUTCOMES.map((name) =>
            figures[name] === 0 ? null : <i key={name} className={`tone-${name}`} style={{ flex: figures[name] }} />,
          )}
        </span>
      </td>
      <td className="end" data-label="Delivered">
        {formatRate(deliveredRate)}
      </td>
      <td className="end" data-label="Hard bounce">
        {hardBounceRate !== null && hardBounceRate >= HIGH_HARD_BOUNCE_RATE ? (
          <b className="tone-bounced">{formatRate(hardBounceRate)}</b>
        ) : (
          formatRate(hardBounceRate)
        )}
      </td>
      <td className="end" data-label="p50">
        {latencyMs === null ? '–' : formatDuration(latencyMs.p50)}
      </td>
    </>
  );
}

function formatRate(rate: number | null): string {
  return rate === null ? '–' : `${formatShare(Math.min(100, 100 * rate))} %`;
}

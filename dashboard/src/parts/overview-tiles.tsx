/** The tiles of the overview: counts and shares of the range, and their changes from the previous period. */
import type { Figures, Overview } from '../../../src/operations/overview.ts';
import { compareCounts, compareDurations, compareShares, formatShare } from './change';
import { formatNumber } from './number';
import { type CountName, findListUrl } from './overview-figures';
import { Tile } from './tile';
import { formatDuration } from './time';

interface OverviewTilesProps {
  readonly overview: Overview;
  /** The length of the range in words, such as `24 hours`. */
  readonly period: string;
}

export function OverviewTiles({ overview: { totals, previous, points, range }, period }: OverviewTilesProps) {
  const hasPrevious = previous.accepted > 0;
  const { latencyMs } = totals;
  const deliveryTime = latencyMs === null ? null : splitDuration(latencyMs.p50);
  return (
    <dl className="tiles" aria-label={`Last ${period}`}>
      <Tile
        label="Accepted"
        value={formatNumber(totals.accepted)}
        change={hasPrevious ? compareCounts(totals.accepted, previous.accepted) : null}
        supportingText={hasPrevious ? `vs. previous ${period}` : `in the last ${period}`}
        tone="accent"
        sparkline={points.map(({ accepted }) => accepted)}
      />
      {SHARES.map(({ name, label, isHigherBetter, getShare }) => {
        const share = getShare(totals);
        const count = formatNumber(totals[name]);
        return (
          <Tile
            key={name}
            label={label}
            value={share === null ? '–' : formatShare(share)}
            unit={share === null ? undefined : '%'}
            change={compareShares(share, getShare(previous), isHigherBetter)}
            supportingText={`${count} ${totals[name] === 1 ? 'message' : 'messages'}`}
            href={findListUrl(name, totals, range)}
            tone={name}
            sparkline={points.map((point) => point[name])}
          />
        );
      })}
      <Tile
        label="Time to deliver"
        value={deliveryTime?.value ?? '–'}
        unit={deliveryTime?.unit}
        change={compareDurations(latencyMs?.p50 ?? null, previous.latencyMs?.p50 ?? null)}
        supportingText={latencyMs === null ? 'no delivery' : `p50 · p99 ${formatDuration(latencyMs.p99)}`}
        tone="accent"
        sparkline={points.map((point) => point.latencyMs?.p50 ?? null)}
      />
    </dl>
  );
}

interface Share {
  readonly name: Extract<CountName, 'delivered' | 'bounced' | 'complained'>;
  readonly label: string;
  readonly isHigherBetter: boolean;
  /** Returns the share in percent; null if the denominator is zero. */
  readonly getShare: (figures: Figures) => number | null;
}

const SHARES: readonly Share[] = [
  {
    name: 'delivered',
    label: 'Delivered',
    isHigherBetter: true,
    getShare: (figures) => computeShareOfEnded(figures, 'delivered'),
  },
  {
    name: 'bounced',
    label: 'Bounced',
    isHigherBetter: false,
    getShare: (figures) => computeShareOfEnded(figures, 'bounced'),
  },
  {
    name: 'complained',
    label: 'Complained',
    isHigherBetter: false,
    getShare: ({ complained, delivered }) => (delivered === 0 ? null : Math.min(100, (100 * complained) / delivered)),
  },
];

/**
 * Returns the share, in percent, of delivered or bounced messages among the delivered, bounced, suppressed and expired
 * messages of the range.
 */
function computeShareOfEnded(figures: Figures, name: 'delivered' | 'bounced'): number | null {
  const endedCount = figures.delivered + figures.bounced + figures.suppressed + figures.expired;
  return endedCount === 0 ? null : (100 * figures[name]) / endedCount;
}

/** Splits a duration into a number and its unit. A duration of one minute or more is not split. */
function splitDuration(ms: number): { readonly value: string; readonly unit?: string } {
  if (ms < 1_000) return { value: formatNumber(Math.round(ms)), unit: 'ms' };
  if (ms < 60_000) return { value: formatNumber(ms / 1_000), unit: 's' };
  return { value: formatDuration(ms) };
}

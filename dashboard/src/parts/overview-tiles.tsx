/** The tiles of the overview: totals of the range, their shares, and their changes against the period before. */
import type { Figures, Overview } from '../../../src/operations/overview/schemas.ts';
import { compareCounts, compareShares, compareTimes, formatShare } from './change';
import { formatNumber } from './number';
import { type Count, findList } from './overview-figures';
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
  const time = latencyMs === null ? null : splitDuration(latencyMs.p50);
  return (
    <dl className="tiles" aria-label={`Last ${period}`}>
      <Tile
        label="Accepted"
        value={formatNumber(totals.accepted)}
        change={hasPrevious ? compareCounts(totals.accepted, previous.accepted) : null}
        support={hasPrevious ? `vs. previous ${period}` : `in the last ${period}`}
        tone="accent"
        course={points.map(({ accepted }) => accepted)}
      />
      {SHARES.map(({ name, label, isBetterUp, getShare }) => {
        const share = getShare(totals);
        const count = formatNumber(totals[name]);
        return (
          <Tile
            key={name}
            label={label}
            value={share === null ? '–' : formatShare(share)}
            unit={share === null ? undefined : '%'}
            change={compareShares(share, getShare(previous), isBetterUp)}
            support={`${count} ${totals[name] === 1 ? 'message' : 'messages'}`}
            href={findList(name, totals, range)}
            tone={name}
            course={points.map((point) => point[name])}
          />
        );
      })}
      <Tile
        label="Time to deliver"
        value={time?.value ?? '–'}
        unit={time?.unit}
        change={compareTimes(latencyMs?.p50 ?? null, previous.latencyMs?.p50 ?? null)}
        support={latencyMs === null ? 'no delivery' : `p50 · p99 ${formatDuration(latencyMs.p99)}`}
        tone="accent"
        course={points.map((point) => point.latencyMs?.p50 ?? null)}
      />
    </dl>
  );
}

interface Share {
  readonly name: Extract<Count, 'delivered' | 'bounced' | 'complained'>;
  readonly label: string;
  readonly isBetterUp: boolean;
  /** Returns the share in percent; null if there is nothing of which it could be a share. */
  readonly getShare: (figures: Figures) => number | null;
}

const SHARES: readonly Share[] = [
  {
    name: 'delivered',
    label: 'Delivered',
    isBetterUp: true,
    getShare: (figures) => shareOfEnded(figures, 'delivered'),
  },
  { name: 'bounced', label: 'Bounced', isBetterUp: false, getShare: (figures) => shareOfEnded(figures, 'bounced') },
  {
    name: 'complained',
    label: 'Complained',
    isBetterUp: false,
    getShare: ({ complained, delivered }) => (delivered === 0 ? null : Math.min(100, (100 * complained) / delivered)),
  },
];

/** Returns the share of the messages that ended in the range, which excludes messages that are still in the queue. */
function shareOfEnded(figures: Figures, name: 'delivered' | 'bounced'): number | null {
  const ended = figures.delivered + figures.bounced + figures.suppressed + figures.expired;
  return ended === 0 ? null : (100 * figures[name]) / ended;
}

/** Splits a duration into a figure and its unit. A duration of two units is not split. */
function splitDuration(ms: number): { readonly value: string; readonly unit?: string } {
  if (ms < 1_000) return { value: formatNumber(Math.round(ms)), unit: 'ms' };
  if (ms < 60_000) return { value: formatNumber(ms / 1_000), unit: 's' };
  return { value: formatDuration(ms) };
}

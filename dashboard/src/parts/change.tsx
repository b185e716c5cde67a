/** The change of a figure from the previous period: size, direction, and whether the change is an improvement. */
import { formatNumber } from './number';
import { formatDuration, formatMinute } from './time';

/** The change from the previous period. */
export interface Change {
  /** The absolute value of the change, such as `0.6 pt`. */
  readonly text: string;
  readonly direction: 'up' | 'down' | 'none';
  /** Whether the change is an improvement, independent of its direction. */
  readonly meaning: 'better' | 'worse' | 'neutral';
}

const ARROWS = { up: '↑', down: '↓' } as const;

export function ChangeText({ change: { text, direction, meaning } }: { readonly change: Change }) {
  if (direction === 'none') return <span className="delta">unchanged</span>;
  return (
    <span className={`delta ${meaning}`}>
      <span aria-hidden="true">{ARROWS[direction]} </span>
      <span className="unseen">{direction} </span>
      {text}
    </span>
  );
}

/**
 * Formats a share in percent. From 1 %, the result has at most one decimal place. Below 1 %, it has at most two decimal
 * places. Below 0.1 %, it has two significant digits.
 */
export function formatShare(percent: number): string {
  if (percent === 0) return '0';
  return percent < 0.1 ? percent.toPrecision(2) : String(Number(percent.toFixed(percent < 1 ? 2 : 1)));
}

/**
 * Compares two counts of accepted messages, or two counts per hour. The member `meaning` of the result is always
 * `neutral`. `previous` must be greater than zero.
 */
export function compareCounts(value: number, previous: number): Change {
  const percent = (100 * (value - previous)) / previous;
  const text = `${formatNumber(Number(Math.abs(percent).toPrecision(2)))} %`;
  return { text, direction: findDirection(percent, 0.05), meaning: 'neutral' };
}

export function compareShares(percent: number | null, previous: number | null, isHigherBetter: boolean): Change | null {
  if (percent === null || previous === null) return null;
  const percentagePoints = percent - previous;
  const direction = findDirection(percentagePoints, 0.005);
  const text = `${formatShare(Math.abs(percentagePoints))} pt`;
  return { text, direction, meaning: (direction === 'up') === isHigherBetter ? 'better' : 'worse' };
}

export function compareDurations(ms: number | null, previous: number | null): Change | null {
  if (ms === null || previous === null) return null;
  const direction = findDirection(ms - previous, 1);
  return { text: formatDuration(Math.abs(ms - previous)), direction, meaning: direction === 'up' ? 'worse' : 'better' };
}

/** Returns the direction of a change; `none` if the absolute value of the change is less than `threshold`. */
function findDirection(change: number, threshold: number): Change['direction'] {
  if (Math.abs(change) < threshold) return 'none';
  return change > 0 ? 'up' : 'down';
}

/** A range and the previous period, with which the range is compared. The times are in ISO 8601 format. */
export interface ComparedPeriods {
  readonly from: string;
  readonly until: string;
  readonly previousFrom: string;
  readonly previousUntil: string;
}

/** States the start and the end of both periods. */
export function PeriodNote({ from, until, previousFrom, previousUntil }: ComparedPeriods) {
  return (
    <>
      {formatMinute(from)} to {formatMinute(until)}, compared with {formatMinute(previousFrom)} to{' '}
      {formatMinute(previousUntil)}
    </>
  );
}

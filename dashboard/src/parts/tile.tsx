/** A tile: a figure with its unit, its change from the previous period, a supporting figure, and a sparkline. */
import { Link } from 'wouter';
import { type Change, ChangeText } from './change';

interface TileProps {
  readonly label: string;
  readonly value: string;
  /** The unit, such as `%`. It is shown smaller than the value. */
  readonly unit?: string | undefined;
  readonly change?: Change | null;
  /** A supporting figure below the value. */
  readonly supportingText: string;
  /** The URL of the page with the details. If it is absent, the tile has no link. */
  readonly href?: string | undefined;
  readonly tone: string;
  /** The values of the sparkline, oldest first; null for an interval without a value. */
  readonly sparkline?: readonly (number | null)[];
}

/** Shows a figure as a term (`dt`) with descriptions (`dd`). The parent element must be a `dl`. */
export function Tile({ label, value, unit, change = null, supportingText, href, tone, sparkline }: TileProps) {
  return (
    <div className="tile">
      <dt className="tile-label">{label}</dt>
      <dd className="tile-figure">
        {value}
        {unit === undefined ? null : <small className="tile-unit">{unit}</small>}
      </dd>
      <dd className="tile-foot">
        {change === null ? null : <ChangeText change={change} />}
        <span className="muted">
          {href === undefined ? (
            supportingText
          ) : (
            <Link href={href} aria-label={`${label}: ${supportingText}`}>
              {supportingText}
            </Link>
          )}
        </span>
      </dd>
      {sparkline === undefined ? null : (
        <dd className={`tile-spark tone-${tone}`}>
          <Sparkline values={sparkline} />
        </dd>
      )}
    </div>
  );
}

const SPARKLINE_HEIGHT = 28;
const MAX_SPARKLINE_POINTS = 40;

/** Draws the values as a line without axes. The figures are on the page as text, so screen readers skip the line. */
function Sparkline({ values }: { readonly values: readonly (number | null)[] }) {
  const groupSize = Math.max(1, Math.ceil(values.length / MAX_SPARKLINE_POINTS));
  const groupSums = Array.from({ length: Math.ceil(values.length / groupSize) }, (_, index) =>
    values.slice(index * groupSize, (index + 1) * groupSize).reduce<number>((sum, value) => sum + (value ?? 0), 0),
  );
  const max = Math.max(...groupSums, 1e-9);
  const pointDistance = 100 / Math.max(1, groupSums.length - 1);
  const linePoints = groupSums.map(
    (value, index) =>
      `${(index * pointDistance).toFixed(1)} ${(SPARKLINE_HEIGHT - 2 - (value / max) * (SPARKLINE_HEIGHT - 4)).toFixed(1)}`,
  );
  const linePath = `M${linePoints.join('L')}`;
  return (
    <svg
      className="spark"
      viewBox={`0 0 100 ${SPARKLINE_HEIGHT}`}
      preserveAspectRatio="none"
      aria-hidden="true"
      focusable="false"
    >
      <path className="fill" d={`${linePath}L100 ${SPARKLINE_HEIGHT}L0 ${SPARKLINE_HEIGHT}Z`} />
      <path className="line" d={linePath} />
    </svg>
  );
}

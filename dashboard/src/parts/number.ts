/** Formats numbers. */

const NUMBER_FORMAT = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const COMPACT_FORMAT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

/** `12,340`; `0.4`. */
export function formatNumber(value: number): string {
  return NUMBER_FORMAT.format(value);
}

/** `12.3K`, for an axis. */
export function formatCompact(value: number): string {
  return COMPACT_FORMAT.format(value);
}

/** `1.55 %` for the fraction 0.01546. */
export function formatPercent(fraction: number): string {
  return `${Number((fraction * 100).toPrecision(3))} %`;
}

/** `1 message`, `2 messages`. */
export function formatCount(value: number, singular: string, plural = `${singular}s`): string {
  return `${formatNumber(value)} ${value === 1 ? singular : plural}`;
}

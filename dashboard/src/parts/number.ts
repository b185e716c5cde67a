/** Formats numbers. */

const NUMBER_FORMAT = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const COMPACT_FORMAT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

/** Formats a number, such as `12,340` or `0.4`. */
export function formatNumber(value: number): string {
  return NUMBER_FORMAT.format(value);
}

/** Formats a number for the label of an axis, such as `12.3K`. */
export function formatCompact(value: number): string {
  return COMPACT_FORMAT.format(value);
}

/** Formats the fraction 0.01546 as `1.55 %`. */
export function formatPercent(fraction: number): string {
  return `${Number((fraction * 100).toPrecision(3))} %`;
}

/** Returns text such as `1 message` or `2 messages`. */
export function formatCount(value: number, singular: string, plural = `${singular}s`): string {
  return `${formatNumber(value)} ${value === 1 ? singular : plural}`;
}

/** Numbers as people read them. */

const WHOLE = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const SHORT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

/** `12,340`; `0.4`. */
export function grouped(value: number): string {
  return WHOLE.format(value);
}

/** `12.3K`, for an axis. */
export function compact(value: number): string {
  return SHORT.format(value);
}

/** A fraction such as 0.01546 as `1.55 %`. */
export function percentage(part: number): string {
  return `${Number((part * 100).toPrecision(3))} %`;
}

/** `1 mail request`, `2 mail requests`. */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${grouped(value)} ${value === 1 ? one : many}`;
}

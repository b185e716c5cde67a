/** Formats times and durations. The functions have no side effects. */

const UNITS: readonly (readonly [name: string, ms: number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
];

/** Formats a duration, such as `3 min 20 s`, `450 ms` or `0 s`. */
export function formatDuration(ms: number): string {
  const unitIndex = UNITS.findIndex(([, unit]) => ms >= unit);
  if (unitIndex < 0) return ms >= 1 ? `${Math.round(ms)} ms` : '0 s';
  const [name, unit] = UNITS[unitIndex] ?? ['s', 1_000];
  const count = Math.floor(ms / unit);
  const [nextName, nextMs] = UNITS[unitIndex + 1] ?? ['', 0];
  const nextCount = nextMs === 0 || count >= 10 ? 0 : Math.floor((ms - count * unit) / nextMs);
  return nextCount === 0 ? `${count} ${name}` : `${count} ${name} ${nextCount} ${nextName}`;
}

/** Formats a time as `2026-11-21 08:40:12 UTC`. */
export function formatUtc(iso: string): string {
  return `${iso.slice(0, 19).replace('T', ' ')} UTC`;
}

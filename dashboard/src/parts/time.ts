/** Times and durations as people read them. Pure. */

const UNITS: readonly (readonly [name: string, ms: number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
];

/** Such as `3 min 20 s`; `0 s` under a second. */
export function duration(ms: number): string {
  const at = UNITS.findIndex(([, unit]) => ms >= unit);
  if (at < 0) return ms >= 1 ? `${Math.round(ms)} ms` : '0 s';
  const [name, unit] = UNITS[at] ?? ['s', 1_000];
  const whole = Math.floor(ms / unit);
  const [lesserName, lesser] = UNITS[at + 1] ?? ['', 0];
  const rest = lesser === 0 || whole >= 10 ? 0 : Math.floor((ms - whole * unit) / lesser);
  return rest === 0 ? `${whole} ${name}` : `${whole} ${name} ${rest} ${lesserName}`;
}

/** `2026-11-21 08:40:12 UTC`. */
export function exact(iso: string): string {
  return `${iso.slice(0, 19).replace('T', ' ')} UTC`;
}

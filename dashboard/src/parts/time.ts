/** Formats times and durations. Times are in the time zone that the operator chose (time-zone.ts). */
import { formatDuration as formatServiceDuration } from '../../../src/printing/text.ts';
import { getOffsetMinutes } from './time-zone.ts';

const UNITS: readonly (readonly [name: string, ms: number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
];

/** Formats a duration in the format of the texts that the service returns, such as `3 min 20 s`, `450 ms` or `0 ms`. */
export function formatDuration(ms: number): string {
  return formatServiceDuration(Math.round(ms));
}

/**
 * Formats an age, such as `3 min 20 s`, `2 h` or `0 s`. The smaller unit is omitted if the count of the larger unit is
 * ten or more.
 */
export function formatAge(ms: number): string {
  const unitIndex = UNITS.findIndex(([, unit]) => ms >= unit);
  if (unitIndex < 0) return '0 s';
  const [name, unit] = UNITS[unitIndex] ?? ['s', 1_000];
  const count = Math.floor(ms / unit);
  const [nextName, nextMs] = UNITS[unitIndex + 1] ?? ['', 0];
  const nextCount = nextMs === 0 || count >= 10 ? 0 : Math.floor((ms - count * unit) / nextMs);
  return nextCount === 0 ? `${count} ${name}` : `${count} ${name} ${nextCount} ${nextName}`;
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'] as const;

/** Formats a time as `21 Nov 2026, 08:40:12 UTC`, or `21 Nov 2026, 09:40:12 UTC+1` in local time. */
export function formatTime(iso: string): string {
  return `${formatDate(iso)}, ${toZonedTime(iso).slice(11, 19)} ${formatZone(iso)}`;
}

/** Formats a time without the year and the seconds, as `21 Nov, 08:40 UTC`. */
export function formatMinute(iso: string): string {
  return `${formatDayOfYear(iso)}, ${toZonedTime(iso).slice(11, 16)} ${formatZone(iso)}`;
}

/** Returns the date of a time as `21 Nov 2026`. */
export function formatDate(iso: string): string {
  return `${formatDayOfYear(iso)} ${toZonedTime(iso).slice(0, 4)}`;
}

/** Returns the date of a time without the year, as `21 Nov`. */
export function formatDayOfYear(iso: string): string {
  const [, month, day] = toZonedTime(iso).slice(0, 10).split('-').map(Number);
  return `${day} ${MONTHS[(month ?? 1) - 1]}`;
}

/** Returns the time of day as `08:40:12.345`. */
export function formatTimeOfDay(iso: string): string {
  return toZonedTime(iso).slice(11, 23);
}

/** Returns the name of the chosen time zone with the offset at the given time: `UTC`, `UTC+1` or `UTC−3:30`. */
export function formatZone(iso: string): string {
  const offset = getOffsetMinutes(Date.parse(iso));
  if (offset === 0) return 'UTC';
  const [hours, minutes] = [Math.floor(Math.abs(offset) / 60), Math.abs(offset) % 60];
  return `UTC${offset < 0 ? '−' : '+'}${hours}${minutes === 0 ? '' : `:${String(minutes).padStart(2, '0')}`}`;
}

/** Returns the time in the chosen zone as `2026-11-21T08:40:12.345`. */
export function toZonedTime(iso: string): string {
  const ms = Date.parse(iso);
  return new Date(ms + getOffsetMinutes(ms) * 60_000).toISOString().slice(0, 23);
}

/** Converts a time in the chosen zone, such as `2026-11-21T08:40`, to UTC in ISO 8601 format. */
export function toUtcTime(text: string): string {
  const ms = Date.parse(`${text.slice(0, 16)}:00Z`);
  // The result uses the offset at the resulting time. This offset differs from the offset at `ms` only near a daylight
  // saving transition.
  const approximateMs = ms - getOffsetMinutes(ms) * 60_000;
  return new Date(ms - getOffsetMinutes(approximateMs) * 60_000).toISOString();
}

/**
 * Parses the times in exports of suppression lists. The functions are pure, and their running time is linear in the
 * length of the text.
 */
import { parseTimestamp } from '../../config/units.ts';

/** The maximum length of a time, in characters. */
const MAX_TIME_CHARACTERS = 64;

const ISO_PATTERN = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(\.\d{1,9})? ?(Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)?)?$/;
/** RFC 5322 section 3.3, also with dashes between day, month and year, and also without the time of day. */
const MAIL_PATTERN =
  /^(?:[A-Za-z]{3,9},? )?(\d{1,2})[ -]([A-Za-z]{3,9})[ -](\d{4})(?: (\d\d:\d\d(?::\d\d)?) ?(Z|UTC|GMT|[+-]\d\d:?\d\d)?(?: \([A-Za-z]+\))?)?$/;
/** `Jan 2, 2006` and `January 2, 2006 15:04:05`. */
const US_PATTERN = /^([A-Za-z]{3,9}) (\d{1,2}),? (\d{4})(?:,? (\d\d:\d\d(?::\d\d)?) ?(Z|UTC|GMT|[+-]\d\d:?\d\d)?)?$/;
const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];

/**
 * Parses a time: ISO 8601, also with a space instead of the T; seconds since 1970, also with a fraction; milliseconds
 * since 1970; `Mon, 2 Jan 2006 15:04:05 GMT` (RFC 5322); `Jan 2, 2006`. A time without a zone is in UTC. Returns
 * milliseconds since the epoch, or null for other text. A numeric date such as `2/1/2006` is not accepted, because the
 * order of day and month is unknown.
 */
export function parseRowTime(text: string): number | null {
  if (text.length > MAX_TIME_CHARACTERS) return null;
  if (/^\d{9,10}(?:\.\d{1,9})?$/.test(text)) return Math.floor(Number(text) * 1000);
  if (/^\d{12,13}$/.test(text)) return Number(text);
  const isoMatch = ISO_PATTERN.exec(text);
  if (isoMatch !== null) {
    const [, date = '', time, fraction = '', zone] = isoMatch;
    return parseDateAndTime(date, time, fraction, zone);
  }
  const mailMatch = MAIL_PATTERN.exec(text);
  if (mailMatch !== null) {
    const [, day = '', month = '', year = '', time, zone] = mailMatch;
    return parseDateAndTime(formatDate(year, month, day), time, '', zone);
  }
  const usMatch = US_PATTERN.exec(text);
  if (usMatch === null) return null;
  const [, month = '', day = '', year = '', time, zone] = usMatch;
  return parseDateAndTime(formatDate(year, month, day), time, '', zone);
}

/** Returns an ISO date. For an unknown name, the month is 0, which `parseTimestamp` refuses. */
function formatDate(year: string, month: string, day: string): string {
  const monthNumber = MONTHS.indexOf(month.slice(0, 3).toLowerCase()) + 1;
  return `${year}-${String(monthNumber).padStart(2, '0')}-${day.padStart(2, '0')}`;
}

function parseDateAndTime(
  date: string,
  time: string | undefined,
  fraction: string,
  zone: string | undefined,
): number | null {
  const timeWithSeconds = time === undefined ? '00:00:00' : time.length === 5 ? `${time}:00` : time;
  const parsed = parseTimestamp(`${date}T${timeWithSeconds}${fraction.slice(0, 4)}${formatZone(zone)}`, 0, 'back');
  return parsed.ok ? parsed.value : null;
}

/** Converts a UTC offset to ISO 8601 format: `Z` or `±hh:mm`. Returns `Z` if the offset is absent. */
function formatZone(zone: string | undefined): string {
  if (zone === undefined || zone === 'UTC' || zone === 'GMT' || zone === 'Z') return 'Z';
  if (zone.length === 3) return `${zone}:00`;
  return zone.length === 5 ? `${zone.slice(0, 3)}:${zone.slice(3)}` : zone;
}

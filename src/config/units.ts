/**
 * Parses and formats the values of settings and flags. A parser returns the value, or an error with the invalid text
 * and a valid example, to which the caller prepends the name. No parser throws.
 */
import { maskUrl } from '../printing/escape.ts';

export type ParseResult<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly fault: string };

const MS_PER_UNIT = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const BYTES_PER_UNIT: Readonly<Record<string, number>> = {
  '': 1,
  B: 1,
  kB: 1000,
  KB: 1000,
  MB: 1_000_000,
  GB: 1_000_000_000,
  KiB: 1024,
  MiB: 1_048_576,
  GiB: 1_073_741_824,
};

export function createParseResult<T>(value: T): ParseResult<T> {
  return { ok: true, value };
}

export function createFault(fault: string): { readonly ok: false; readonly fault: string } {
  return { ok: false, fault };
}

/** On one line of at most 80 characters, with masked passwords. */
export function quote(text: string): string {
  const maskedText = text.includes('//') ? maskUrl(text) : text;
  const shortText = maskedText.length > 80 ? `${maskedText.slice(0, 79)}…` : maskedText;
  return `"${shortText.replaceAll(/\p{C}/gu, '\uFFFD')}"`;
}

export function findDuplicate(entries: readonly string[]): { readonly ok: false; readonly fault: string } | null {
  const duplicate = entries.find((entry, index) => entries.indexOf(entry) !== index);
  return duplicate === undefined ? null : createFault(`${quote(duplicate)} is given twice; remove one`);
}

/** Null if the text does not begin with a digit, or the number is not a safe integer. */
function splitLeadingNumber(text: string): { readonly number: number; readonly suffix: string } | null {
  let digitsEnd = 0;
  while (digitsEnd < text.length && text.charCodeAt(digitsEnd) >= 48 && text.charCodeAt(digitsEnd) <= 57)
    digitsEnd += 1;
  if (digitsEnd === 0) return null;
  const number = Number(text.slice(0, digitsEnd));
  return Number.isSafeInteger(number) ? { number, suffix: text.slice(digitsEnd) } : null;
}

/** A number without a unit is invalid. */
export function parseDuration(text: string): ParseResult<number> {
  const numberAndUnit = splitLeadingNumber(text);
  const unit =
    numberAndUnit && Object.hasOwn(MS_PER_UNIT, numberAndUnit.suffix)
      ? MS_PER_UNIT[numberAndUnit.suffix as keyof typeof MS_PER_UNIT]
      : undefined;
  const value = numberAndUnit && unit !== undefined ? numberAndUnit.number * unit : Number.NaN;
  // A tenth of the maximum date, so that the sum of a date and a duration is a date.
  if (!(value <= 8.64e14)) return createFault(`${quote(text)} is not a duration such as 30d, 24h, 15m, 10s or 500ms`);
  return createParseResult(value);
}

export function formatDurationSetting(durationMs: number): string {
  for (const unit of ['d', 'h', 'm', 's'] as const) {
    if (durationMs !== 0 && durationMs % MS_PER_UNIT[unit] === 0) return `${durationMs / MS_PER_UNIT[unit]}${unit}`;
  }
  return durationMs === 0 ? '0s' : `${durationMs}ms`;
}

export function parseSize(text: string): ParseResult<number> {
  const numberAndUnit = splitLeadingNumber(text);
  const unit =
    numberAndUnit && Object.hasOwn(BYTES_PER_UNIT, numberAndUnit.suffix)
      ? BYTES_PER_UNIT[numberAndUnit.suffix]
      : undefined;
  const value = numberAndUnit && unit !== undefined ? numberAndUnit.number * unit : Number.NaN;
  if (!Number.isSafeInteger(value))
    return createFault(`${quote(text)} is not a size such as 1MiB, 512KiB, 1MB or 1048576`);
  return createParseResult(value);
}

export function formatSize(sizeBytes: number): string {
  for (const unit of ['GiB', 'MiB', 'KiB']) {
    const unitBytes = BYTES_PER_UNIT[unit] ?? 1;
    if (sizeBytes !== 0 && sizeBytes % unitBytes === 0) return `${sizeBytes / unitBytes}${unit}`;
  }
  return String(sizeBytes);
}

/** The maximum of an integer column of PostgreSQL. */
export const MAX_INT32 = 2_147_483_647;

export function parseCount(text: string, min: number, max: number): ParseResult<number> {
  const numberAndRest = splitLeadingNumber(text);
  if (numberAndRest?.suffix !== '' || numberAndRest.number < min || numberAndRest.number > max) {
    return createFault(`${quote(text)} is not a whole number from ${min} to ${max}`);
  }
  return createParseResult(numberAndRest.number);
}

/** `10%`, `0.15 %` or `10`, as a fraction. */
export function parsePercent(text: string): ParseResult<number> {
  const numberText = (text.endsWith('%') ? text.slice(0, -1) : text).trim();
  const value = /^\d{1,3}(\.\d{1,4})?$/.test(numberText) ? Number(numberText) : 0;
  if (value <= 0 || value > 100)
    return createFault(`${quote(text)} is not a percentage above 0 and up to 100, such as 10% or 0.15%`);
  return createParseResult(value / 100);
}

/** `1000/1h` or `1000/h`: at least 1 message and one second. */
export function parseRate(text: string): ParseResult<{ readonly limit: number; readonly periodMs: number }> {
  const fault = createFault(`${quote(text)} is not a rate such as 1000/1h or 50/10s`);
  const parts = splitLeadingNumber(text);
  if (!parts || parts.number < 1 || !parts.suffix.startsWith('/')) return fault;
  const periodText = parts.suffix.slice(1);
  const duration = parseDuration(Object.hasOwn(MS_PER_UNIT, periodText) ? `1${periodText}` : periodText);
  if (!duration.ok || duration.value < 1000) return fault;
  return createParseResult({ limit: parts.number, periodMs: duration.value });
}

export function formatRate(rate: { readonly limit: number; readonly periodMs: number }): string {
  return `${rate.limit}/${formatDurationSetting(rate.periodMs)}`;
}

/** `50/s` (burst 50) or `50/s:200`. */
export function parseThrottle(text: string): ParseResult<{ readonly perSecond: number; readonly burst: number }> {
  const fault = createFault(`${quote(text)} is not a throttle such as 50/s or 50/s:200`);
  const parts = splitLeadingNumber(text);
  if (!parts || parts.number < 1) return fault;
  const hasDefaultBurst = parts.suffix === '/s';
  if (!hasDefaultBurst && !parts.suffix.startsWith('/s:')) return fault;
  const burst = hasDefaultBurst ? { number: parts.number, suffix: '' } : splitLeadingNumber(parts.suffix.slice(3));
  if (burst?.suffix !== '' || burst.number < 1) return fault;
  if (Math.max(parts.number, burst.number) > MAX_INT32)
    return createFault(`${quote(text)} is too large for a throttle; use numbers up to ${MAX_INT32}`);
  return createParseResult({ perSecond: parts.number, burst: burst.number });
}

export function formatThrottle(throttle: { readonly perSecond: number; readonly burst: number }): string {
  return throttle.burst === throttle.perSecond
    ? `${throttle.perSecond}/s`
    : `${throttle.perSecond}/s:${throttle.burst}`;
}

const DATE_PATTERN = /^(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,3}))?)?(?:Z|([+-])(\d\d):(\d\d)))?$/;

/** A date (midnight UTC), a date and time with its zone (ISO 8601), or a duration before or after `now`. */
export function parseTimestamp(text: string, now: number, direction: 'ahead' | 'back'): ParseResult<number> {
  const fault = createFault(
    `${quote(text)} is not a date such as 2030-12-31 or 2030-12-31T18:00:00Z, nor a duration such as 30d`,
  );
  const duration = parseDuration(text);
  if (duration.ok) {
    const timestampMs = direction === 'ahead' ? now + duration.value : now - duration.value;
    return Math.abs(timestampMs) <= 8.64e15 ? createParseResult(timestampMs) : fault;
  }
  const match = text.length <= 32 ? DATE_PATTERN.exec(text) : null;
  if (!match) return fault;
  const readField = (index: number): number => Number(match[index] ?? '0');
  const [month, day, hour, minute, second] = [readField(2), readField(3), readField(4), readField(5), readField(6)];
  const ms = Number((match[7] ?? '0').padEnd(3, '0'));
  const localMs = Date.UTC(readField(1), month - 1, day, hour, minute, second, ms);
  const normalizedDate = new Date(localMs);
  // Date.UTC converts 31 February to a day of March; such a date is an error.
  const isInvalidDate =
    normalizedDate.getUTCMonth() !== month - 1 ||
    normalizedDate.getUTCDate() !== day ||
    hour > 23 ||
    minute > 59 ||
    second > 59;
  const zoneOffsetMs = (match[8] === '-' ? -1 : 1) * (readField(9) * 60 + readField(10)) * MS_PER_UNIT.m;
  if (isInvalidDate || readField(1) < 1970 || readField(9) > 14 || readField(10) > 59) return fault;
  return createParseResult(localMs - zoneOffsetMs);
}

// Finds the known name that is closest to a mistyped name, for suggestions in error messages.

/** A swap of adjacent characters is one edit. Only the first 64 characters count, because the time is quadratic. */
function computeEditDistance(left: string, right: string): number {
  const leftStart = left.slice(0, 64);
  const rightStart = right.slice(0, 64);
  let rowBeforePrevious: number[] = [];
  let previousRow = Array.from({ length: rightStart.length + 1 }, (_, column) => column);
  for (let row = 1; row <= leftStart.length; row += 1) {
    const currentRow = [row];
    for (let column = 1; column <= rightStart.length; column += 1) {
      const substitutionCost = leftStart[row - 1] === rightStart[column - 1] ? 0 : 1;
      const isSwapped =
        row > 1 &&
        column > 1 &&
        leftStart[row - 1] === rightStart[column - 2] &&
        leftStart[row - 2] === rightStart[column - 1];
      currentRow.push(
        Math.min(
          (previousRow[column] ?? 0) + 1,
          (currentRow[column - 1] ?? 0) + 1,
          (previousRow[column - 1] ?? 0) + substitutionCost,
          isSwapped ? (rowBeforePrevious[column - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
        ),
      );
    }
    rowBeforePrevious = previousRow;
    previousRow = currentRow;
  }
  return previousRow[rightStart.length] ?? 0;
}

/** At most a third of the known name is edited, or `name` begins with it. */
export function findClosestName(name: string, knownNames: readonly string[]): string | null {
  const lowerCaseName = name.toLowerCase();
  let closestName: string | null = null;
  let minEditCount = Number.POSITIVE_INFINITY;
  for (const candidate of knownNames) {
    const editCount = computeEditDistance(lowerCaseName, candidate.toLowerCase());
    if (editCount < minEditCount && editCount <= Math.max(1, Math.floor(candidate.length / 3))) {
      closestName = candidate;
      minEditCount = editCount;
    }
  }
  return (
    closestName ??
    knownNames.find((candidate) => candidate.length >= 3 && lowerCaseName.startsWith(candidate.toLowerCase())) ??
    null
  );
}

/** Returns ` (did you mean X?)`, or an empty text if no known name is close. */
export function formatSuggestion(name: string, knownNames: readonly string[]): string {
  const suggestion = findClosestName(name, knownNames);
  return suggestion === null ? '' : ` (did you mean ${suggestion}?)`;
}

// What a relay receives unchanged in a header field: a message stream, or a configuration set.

/** The form that Amazon SES requires of the name of a configuration set. */
const NAME_FORM = /^[A-Za-z0-9_-]{1,64}$/;
export const RELAY_PARAMETER_FORM_TEXT = 'a name of at most 64 letters, digits, - and _';

export function isRelayParameterValue(text: string): boolean {
  return NAME_FORM.test(text);
}

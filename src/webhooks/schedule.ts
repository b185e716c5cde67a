const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** After the last delay the delivery has failed. */
const RETRY_DELAYS_MS = [
  5 * SECOND_MS,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  14 * HOUR_MS,
  20 * HOUR_MS,
  24 * HOUR_MS,
] as const;

export const MAX_SCHEDULED_ATTEMPTS = RETRY_DELAYS_MS.length + 1;

const JITTER_FRACTION = 0.1;

export const MAX_RETRY_AFTER_MS = 24 * HOUR_MS;

const MAX_RETRY_AFTER_LENGTH = 64;

/**
 * `attemptNumber` counts from 1. Null if no attempt follows. At least the wait that the endpoint demanded, up to 24
 * hours.
 */
export function computeRetryDelayMs(
  attemptNumber: number,
  retryAfterMs: number | null,
  random: number,
  delaysMs: readonly number[] = RETRY_DELAYS_MS,
): number | null {
  const scheduledMs = delaysMs[Math.max(attemptNumber, 1) - 1];
  if (scheduledMs === undefined) return null;
  const delayMs = scheduledMs * (1 - JITTER_FRACTION + 2 * JITTER_FRACTION * random);
  if (retryAfterMs === null) return Math.round(delayMs);
  const waitMs = Math.min(retryAfterMs, MAX_RETRY_AFTER_MS);
  return Math.ceil(Math.max(delayMs, waitMs * (1 + JITTER_FRACTION * random)));
}

/** RFC 9110 section 10.2.3. Null if the value is invalid. */
export function parseRetryAfter(header: string | undefined, now: number): number | null {
  const text = header?.trim() ?? '';
  if (text === '' || text.length > MAX_RETRY_AFTER_LENGTH) return null;
  if (isDigits(text)) return Math.min(Number(text) * SECOND_MS, Number.MAX_SAFE_INTEGER);
  // An HTTP date begins with the name of a day (RFC 9110 section 5.6.7). `Date.parse` also accepts texts that are not
  // HTTP dates, such as `-1`.
  if (!isLetter(text.charCodeAt(0)) || !text.endsWith('GMT')) return null;
  const date = Date.parse(text);
  return Number.isNaN(date) ? null : Math.max(0, date - now);
}

function isDigits(text: string): boolean {
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code < 48 || code > 57) return false;
  }
  return true;
}

function isLetter(code: number): boolean {
  return (code >= 65 && code <= 90) || (code >= 97 && code <= 122);
}

/** Decides when a failed webhook is attempted again. Pure. All times are in milliseconds. */

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/**
 * The delay after each failed attempt, in the order of the attempts. If the attempt after the last delay fails, the
 * delivery has failed.
 */
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

/** The number of attempts of the whole schedule. */
export const MAX_SCHEDULED_ATTEMPTS = RETRY_DELAYS_MS.length + 1;

/** The jitter as a fraction of the delay. It spreads the retries of webhooks that failed together. */
const JITTER_FRACTION = 0.1;

/** The maximum wait that an endpoint can demand with `Retry-After`. A longer wait is shortened to this duration. */
export const MAX_RETRY_AFTER_MS = 24 * HOUR_MS;

/** The maximum length of a header `Retry-After`. A longer header is ignored. */
const MAX_RETRY_AFTER_LENGTH = 64;

/**
 * Returns the delay from the failed attempt `attemptNumber` (1 for the first) of a schedule to the next attempt.
 * Returns null if the schedule has no further attempt. `retryAfterMs` is the wait that the endpoint demanded, or null.
 * The delay is at least this wait, which is limited to 24 hours. The delay is also at least the delay of the schedule
 * minus its jitter. `random` is in [0, 1). `delaysMs` is the schedule, by default the schedule of webhooks.
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

/**
 * Parses the value of the header `Retry-After` (RFC 9110 section 10.2.3): a number of seconds or an HTTP date. Returns
 * the wait from `now`, at least 0, or null for any other value.
 */
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

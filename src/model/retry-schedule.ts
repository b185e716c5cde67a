/** When a deferred mail request is tried again. */

const MINUTE = 60_000;

/** Delay after the first, second, … attempt; the last one repeats until the maximum age. */
const DELAYS_MS = [1 * MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE, 60 * MINUTE, 120 * MINUTE] as const;

/** Part of the delay by which a retry may come earlier or later, so that mail deferred together does not return together. */
const JITTER = 0.15;

/** No retry is due later than this after its attempt. */
export const LONGEST_RETRY_MS = Math.ceil(120 * MINUTE * (1 + JITTER));

/** Milliseconds to wait after attempt number `attempts` (1 for the first); `random` is in [0, 1). */
export function retryDelayMs(attempts: number, random: number): number {
  const delay = DELAYS_MS[Math.min(Math.max(attempts, 1), DELAYS_MS.length) - 1] ?? 120 * MINUTE;
  return Math.round(delay * (1 - JITTER + 2 * JITTER * random));
}

/** The schedule of attempts to deliver a notification. */
const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/**
 * The delay after each failed attempt. If the attempt after the last delay fails, the notification has failed. The
 * schedule is shorter than that of webhooks, because `postrider overview` always shows the current problems.
 */
export const NOTIFICATION_RETRY_DELAYS_MS: readonly number[] = [
  5 * SECOND_MS,
  30 * SECOND_MS,
  2 * MINUTE_MS,
  10 * MINUTE_MS,
  30 * MINUTE_MS,
  HOUR_MS,
  2 * HOUR_MS,
  4 * HOUR_MS,
];

/**
 * Checks the clock of the machine before the start. Until its synchronization, a clock without a battery has a time in
 * 1970 or the build time of the operating system. With such a clock, message ids and times would be out of order, and
 * the checks of certificates and expiry times would be wrong.
 */
import type { Clock } from '../clock.ts';
import { formatIsoTime } from '../config/units.ts';

/** The start of 2026. Every version of this service was built later. */
const MIN_TIME_MS = Date.UTC(2026, 0, 1);

/** Throws an Error of one line if the clock is before 2026. */
export function requireValidClock(clock: Pick<Clock, 'now'>): void {
  const now = clock.now();
  if (now >= MIN_TIME_MS) return;
  throw new Error(
    `the clock of this machine is at ${formatIsoTime(now)}, which is before 2026; synchronize it by NTP (systemd-timesyncd, chrony), then start the service again`,
  );
}

/**
 * Checks the clock of the machine before the start. A machine without a battery for its clock begins at 1970 or at the
 * time of its build, until it is synchronized. With such a clock, message ids and times would be out of order, and
 * certificates and expiry dates would be judged wrongly.
 */
import type { Clock } from '../clock.ts';
import { formatIsoTime } from '../config/units.ts';

/** No version of this service is older. */
const MIN_TIME_MS = Date.UTC(2026, 0, 1);

/** Throws an Error of one line if the clock is before 2026. */
export function requireValidClock(clock: Pick<Clock, 'now'>): void {
  const now = clock.now();
  if (now >= MIN_TIME_MS) return;
  throw new Error(
    `the clock of this machine is at ${formatIsoTime(now)}, which is before 2026; synchronize it by NTP (systemd-timesyncd, chrony), then start the service again`,
  );
}

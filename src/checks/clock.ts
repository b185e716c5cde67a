import { formatIsoTime } from '../printing/text.ts';
import { type Finding, report } from './facts.ts';

/** The start of 2026. Every version of this service was built later. */
const MIN_TIME_MS = Date.UTC(2026, 0, 1);

/** Ids and times would be out of order, and certificates and expiry times would be judged wrongly. */
export function requireValidClock(now: number): void {
  if (now >= MIN_TIME_MS) return;
  throw new Error(
    `the clock of this machine is at ${formatIsoTime(now)}, which is before 2026; synchronize it by NTP (systemd-timesyncd, chrony), then start the service again`,
  );
}

/** The time in a greeting has a resolution of one second, and the network delays the greeting. */
const RELAY_WARNING_MS = 30_000;
/** From this offset, other systems refuse signatures, expiry times and tokens. */
const RELAY_FAILURE_MS = 300_000;
const MAX_AHEAD_MS = 60_000;
const MAX_FILE_OFFSET_MS = 10_000;
/** A larger difference between the wall clock and the monotonic clock means that the wall clock was stepped. */
const MAX_STEP_MS = 100;
const OBSERVATION_MS = 1_000;

const LIST_FORMATTER = new Intl.ListFormat('en');

export interface ClockParts {
  readonly now: () => number;
  readonly monotonic: () => number;
  readonly wait: (ms: number) => Promise<void>;
  readonly newestAcceptedAt: number | null;
  readonly readFileSystemTime: () => Promise<number | null>;
  readonly greeting: Promise<{ readonly text: string; readonly at: number } | null>;
}

export async function checkClock(parts: ClockParts): Promise<Finding> {
  const { now, monotonic, wait, newestAcceptedAt, readFileSystemTime } = parts;
  const { ok, warning, failure } = report('clock');
  const start = { wall: now(), monotonic: monotonic() };
  const [greeting, fileOffsetMs] = await Promise.all([
    parts.greeting,
    readFileOffsetMs(now, readFileSystemTime),
    wait(OBSERVATION_MS),
  ]);
  const stepMs = now() - start.wall - (monotonic() - start.monotonic);
  const relayTimeMs = greeting === null ? null : parseGreetingTime(greeting.text);
  const relayOffsetMs = relayTimeMs === null || greeting === null ? null : relayTimeMs - greeting.at;

  const remedy = 'synchronize the clock by NTP (systemd-timesyncd, chrony)';
  if (relayOffsetMs !== null && Math.abs(relayOffsetMs) >= RELAY_WARNING_MS) {
    const create = Math.abs(relayOffsetMs) >= RELAY_FAILURE_MS ? failure : warning;
    const direction = relayOffsetMs > 0 ? 'behind' : 'ahead of';
    return create(`the clock is ${formatOffset(relayOffsetMs)} ${direction} the relay's clock`, remedy);
  }
  if (newestAcceptedAt !== null && newestAcceptedAt - now() > MAX_AHEAD_MS) {
    const ahead = formatOffset(newestAcceptedAt - now());
    const text = `the newest message was accepted ${ahead} in the future: the clock was wrong or was set back`;
    return warning(text, remedy);
  }
  if (fileOffsetMs !== null && Math.abs(fileOffsetMs) > MAX_FILE_OFFSET_MS) {
    const direction = fileOffsetMs > 0 ? 'ahead of' : 'behind';
    return warning(`the file system of the database is ${formatOffset(fileOffsetMs)} ${direction} the clock`, remedy);
  }
  if (Math.abs(stepMs) > MAX_STEP_MS)
    return warning(`the clock was stepped by ${Math.round(stepMs)} ms during the check`, remedy);
  const comparisons = [
    ...(relayOffsetMs === null ? [] : ["the relay's greeting"]),
    ...(newestAcceptedAt === null ? [] : ['the newest message']),
    ...(fileOffsetMs === null ? [] : ['the file system']),
  ];
  const agreement = comparisons.length === 0 ? '' : ` and agrees with ${LIST_FORMATTER.format(comparisons)}`;
  return ok(`${new Date(now()).toISOString().slice(0, 19)}Z; the clock is steady${agreement}`);
}

/** Returns the time in ms by which the file system is ahead of the clock. */
async function readFileOffsetMs(
  now: () => number,
  readFileSystemTime: ClockParts['readFileSystemTime'],
): Promise<number | null> {
  const beforeMs = now();
  const fileTimeMs = await readFileSystemTime();
  if (fileTimeMs === null) return null;
  return fileTimeMs < beforeMs ? fileTimeMs - beforeMs : Math.max(0, fileTimeMs - now());
}

function formatOffset(offsetMs: number): string {
  const seconds = Math.round(Math.abs(offsetMs) / 1000);
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}

/** The date-time (RFC 5322 section 3.3) that Exim, Sendmail and Exchange include in their greetings. */
export function parseGreetingTime(greeting: string): number | null {
  const match = /\b\d{1,2} [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}/.exec(greeting.slice(0, 500));
  const time = match === null ? Number.NaN : Date.parse(match[0]);
  return Number.isNaN(time) ? null : time;
}

/**
 * Checks the clock of this machine against the time in the relay's greeting, the newest message of the database, the file system
 * and the monotonic clock.
 */
import { type Finding, failure, ok, warning } from './finding.ts';

/** A greeting has a resolution of one second and is delayed by the network. */
const RELAY_WARNING_MS = 30_000;
/** With this offset or more, other systems refuse signatures, expiry times and tokens. */
const RELAY_FAILURE_MS = 300_000;
const MAX_AHEAD_MS = 60_000;
const MAX_FILE_OFFSET_MS = 10_000;
/** Maximum drift of the wall clock from the monotonic clock during the check. A larger drift means that the clock was set. */
const MAX_JUMP_MS = 100;

const LIST_FORMATTER = new Intl.ListFormat('en');

export interface ClockParts {
  /** This machine's time, ms since the epoch. */
  readonly now: () => number;
  /** Monotonic time in ms. */
  readonly monotonic: () => number;
  /** Resolves after about `ms`. */
  readonly wait: (ms: number) => Promise<void>;
  /** When the newest message was accepted, or null. */
  readonly newestAcceptedAt: number | null;
  /** The modification time of a new file, or null when no file can be created. */
  readonly readFileSystemTime: () => Promise<number | null>;
  /** The relay's greeting and this machine's time when it arrived, or null. */
  readonly greeting: Promise<{ readonly text: string; readonly at: number } | null>;
}

/** Duration of the comparison with the monotonic clock. */
const OBSERVATION_MS = 1_000;

export async function checkClock(parts: ClockParts): Promise<readonly Finding[]> {
  const { now, monotonic, wait, newestAcceptedAt, readFileSystemTime, greeting } = parts;
  const before = { wall: now(), monotonic: monotonic() };
  const [received, fileOffsetMs] = await Promise.all([
    greeting,
    readFileOffsetMs(now, readFileSystemTime),
    wait(OBSERVATION_MS),
  ]);
  const jumpMs = now() - before.wall - (monotonic() - before.monotonic);
  const relayTimeMs = received === null ? null : parseGreetingTime(received.text);
  const relayOffsetMs = relayTimeMs === null || received === null ? null : relayTimeMs - received.at;

  const remedy = 'synchronize the clock by NTP (systemd-timesyncd, chrony)';
  if (relayOffsetMs !== null && Math.abs(relayOffsetMs) >= RELAY_WARNING_MS) {
    const detail = `the clock is ${formatOffset(relayOffsetMs)} ${relayOffsetMs > 0 ? 'behind' : 'ahead of'} the relay's clock`;
    return [
      Math.abs(relayOffsetMs) >= RELAY_FAILURE_MS ? failure('clock', detail, remedy) : warning('clock', detail, remedy),
    ];
  }
  if (newestAcceptedAt !== null && newestAcceptedAt - now() > MAX_AHEAD_MS) {
    const ahead = formatOffset(newestAcceptedAt - now());
    return [
      warning(
        'clock',
        `the newest message was accepted ${ahead} in the future: the clock was set back or was wrong`,
        remedy,
      ),
    ];
  }
  if (fileOffsetMs !== null && Math.abs(fileOffsetMs) > MAX_FILE_OFFSET_MS) {
    const detail = `the file system of the database is ${formatOffset(fileOffsetMs)} ${fileOffsetMs > 0 ? 'ahead of' : 'behind'} the clock`;
    return [warning('clock', detail, remedy)];
  }
  if (Math.abs(jumpMs) > MAX_JUMP_MS) {
    return [warning('clock', `the clock changed by ${Math.round(jumpMs)} ms within one second`, remedy)];
  }
  const comparisons = [
    ...(relayOffsetMs === null ? [] : ["the relay's greeting"]),
    ...(newestAcceptedAt === null ? [] : ['the newest message']),
    ...(fileOffsetMs === null ? [] : ['the file system']),
  ];
  const agreement = comparisons.length === 0 ? '' : ` and agrees with ${LIST_FORMATTER.format(comparisons)}`;
  return [ok('clock', `${new Date(now()).toISOString().slice(0, 19)}Z; the clock is steady${agreement}`)];
}

/** Returns the number of ms by which the file system's time is ahead of the clock. */
async function readFileOffsetMs(
  now: () => number,
  readFileSystemTime: ClockParts['readFileSystemTime'],
): Promise<number | null> {
  const before = now();
  const fileTimeMs = await readFileSystemTime();
  if (fileTimeMs === null) return null;
  const after = now();
  return fileTimeMs < before ? Math.min(0, fileTimeMs - before) : Math.max(0, fileTimeMs - after);
}

function formatOffset(ms: number): string {
  const wholeSeconds = Math.round(Math.abs(ms) / 1000);
  if (wholeSeconds < 120) return `${wholeSeconds} s`;
  return wholeSeconds < 7200 ? `${Math.round(wholeSeconds / 60)} min` : `${Math.round(wholeSeconds / 3600)} h`;
}

/**
 * Parses the date-time (RFC 5322 section 3.3) that Exim, Sendmail and Exchange include in their greetings. Returns null if
 * there is no date-time.
 */
export function parseGreetingTime(greeting: string): number | null {
  const found = /\b(\d{1,2}) ([A-Z][a-z]{2}) (\d{4}) (\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)/.exec(
    greeting.slice(0, 500),
  );
  if (found === null) return null;
  const field = (at: number): number => Number(found[at] ?? '0');
  const month = 'JanFebMarAprMayJunJulAugSepOctNovDec'.indexOf(found[2] ?? '?');
  if (month < 0 || month % 3 !== 0) return null;
  const wall = Date.UTC(field(3), month / 3, field(1), field(4), field(5), field(6));
  return wall - (found[7] === '-' ? -1 : 1) * (field(8) * 60 + field(9)) * 60_000;
}

/**
 * Checks the clock of this machine. Compares its time with the time in the relay's greeting, the time of the newest
 * message in the database, the time of the file system, and the monotonic clock.
 */
import { createFailure, createOkFinding, createWarning, type Finding } from './finding.ts';

/**
 * The check warns at or above this offset from the time of the relay. The time in a greeting has a resolution of one
 * second, and the network delays the greeting.
 */
const RELAY_WARNING_MS = 30_000;
/**
 * The check fails at or above this offset from the time of the relay, because other systems refuse signatures, expiry
 * times and tokens.
 */
const RELAY_FAILURE_MS = 300_000;
const MAX_AHEAD_MS = 60_000;
const MAX_FILE_OFFSET_MS = 10_000;
/**
 * Maximum difference between the wall clock and the monotonic clock that may arise during the check. A larger
 * difference means that the wall clock was stepped.
 */
const MAX_STEP_MS = 100;

const LIST_FORMATTER = new Intl.ListFormat('en');

export interface ClockParts {
  /** Returns the time of this machine, in ms since the epoch. */
  readonly now: () => number;
  /** Returns the monotonic time, in ms. */
  readonly monotonic: () => number;
  /** Resolves after about `ms` milliseconds. */
  readonly wait: (ms: number) => Promise<void>;
  /** The time when the newest message was accepted, in ms since the epoch, or null. */
  readonly newestAcceptedAt: number | null;
  /** Resolves to the modification time of a new folder, or to null if no folder can be created. */
  readonly readFileSystemTime: () => Promise<number | null>;
  /** Resolves to the relay's greeting and the time of its arrival on this machine, or to null. */
  readonly greeting: Promise<{ readonly text: string; readonly at: number } | null>;
}

/** Duration of the comparison with the monotonic clock. */
const OBSERVATION_MS = 1_000;

export async function checkClock(parts: ClockParts): Promise<readonly Finding[]> {
  const { now, monotonic, wait, newestAcceptedAt, readFileSystemTime, greeting } = parts;
  const startTimes = { wall: now(), monotonic: monotonic() };
  const [receivedGreeting, fileOffsetMs] = await Promise.all([
    greeting,
    readFileOffsetMs(now, readFileSystemTime),
    wait(OBSERVATION_MS),
  ]);
  const stepMs = now() - startTimes.wall - (monotonic() - startTimes.monotonic);
  const relayTimeMs = receivedGreeting === null ? null : parseGreetingTime(receivedGreeting.text);
  const relayOffsetMs = relayTimeMs === null || receivedGreeting === null ? null : relayTimeMs - receivedGreeting.at;

  const remedy = 'synchronize the clock by NTP (systemd-timesyncd, chrony)';
  if (relayOffsetMs !== null && Math.abs(relayOffsetMs) >= RELAY_WARNING_MS) {
    const detail = `the clock is ${formatOffset(relayOffsetMs)} ${relayOffsetMs > 0 ? 'behind' : 'ahead of'} the relay's clock`;
    return [
      Math.abs(relayOffsetMs) >= RELAY_FAILURE_MS
        ? createFailure('clock', detail, remedy)
        : createWarning('clock', detail, remedy),
    ];
  }
  if (newestAcceptedAt !== null && newestAcceptedAt - now() > MAX_AHEAD_MS) {
    const aheadText = formatOffset(newestAcceptedAt - now());
    return [
      createWarning(
        'clock',
        `the newest message was accepted ${aheadText} in the future: the clock was wrong or was set back`,
        remedy,
      ),
    ];
  }
  if (fileOffsetMs !== null && Math.abs(fileOffsetMs) > MAX_FILE_OFFSET_MS) {
    const detail = `the file system of the database is ${formatOffset(fileOffsetMs)} ${fileOffsetMs > 0 ? 'ahead of' : 'behind'} the clock`;
    return [createWarning('clock', detail, remedy)];
  }
  if (Math.abs(stepMs) > MAX_STEP_MS) {
    return [createWarning('clock', `the clock was stepped by ${Math.round(stepMs)} ms during the check`, remedy)];
  }
  const comparisons = [
    ...(relayOffsetMs === null ? [] : ["the relay's greeting"]),
    ...(newestAcceptedAt === null ? [] : ['the newest message']),
    ...(fileOffsetMs === null ? [] : ['the file system']),
  ];
  const agreementText = comparisons.length === 0 ? '' : ` and agrees with ${LIST_FORMATTER.format(comparisons)}`;
  return [
    createOkFinding('clock', `${new Date(now()).toISOString().slice(0, 19)}Z; the clock is steady${agreementText}`),
  ];
}

/** Returns the time in ms by which the file system is ahead of the clock. */
async function readFileOffsetMs(
  now: () => number,
  readFileSystemTime: ClockParts['readFileSystemTime'],
): Promise<number | null> {
  const beforeMs = now();
  const fileTimeMs = await readFileSystemTime();
  if (fileTimeMs === null) return null;
  const afterMs = now();
  return fileTimeMs < beforeMs ? Math.min(0, fileTimeMs - beforeMs) : Math.max(0, fileTimeMs - afterMs);
}

function formatOffset(offsetMs: number): string {
  const wholeSeconds = Math.round(Math.abs(offsetMs) / 1000);
  if (wholeSeconds < 120) return `${wholeSeconds} s`;
  return wholeSeconds < 7200 ? `${Math.round(wholeSeconds / 60)} min` : `${Math.round(wholeSeconds / 3600)} h`;
}

/**
 * Parses the date-time (RFC 5322 section 3.3) that Exim, Sendmail and Exchange include in their greetings. Returns null
 * if the greeting contains no date-time.
 */
export function parseGreetingTime(greeting: string): number | null {
  const match = /\b(\d{1,2}) ([A-Z][a-z]{2}) (\d{4}) (\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)/.exec(
    greeting.slice(0, 500),
  );
  if (match === null) return null;
  const readField = (index: number): number => Number(match[index] ?? '0');
  const monthIndex = 'JanFebMarAprMayJunJulAugSepOctNovDec'.indexOf(match[2] ?? '?');
  if (monthIndex < 0 || monthIndex % 3 !== 0) return null;
  const localMs = Date.UTC(readField(3), monthIndex / 3, readField(1), readField(4), readField(5), readField(6));
  return localMs - (match[7] === '-' ? -1 : 1) * (readField(8) * 60 + readField(9)) * 60_000;
}

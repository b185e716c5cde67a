/**
 * Whether this machine's clock can be believed, by what there is to hold it against: the time that the relay's greeting
 * names, the newest mail of the database, the file system's own time, and whether it runs evenly.
 */
import { type Finding, failure, ok, warning } from './finding.ts';

/** Greetings have whole seconds, and the network takes some. */
const RELAY_WARNING_MS = 30_000;
/** Signatures, expiry dates and tokens of others are off by then. */
const RELAY_FAILURE_MS = 300_000;
const AHEAD_MS = 60_000;
const FILE_MS = 10_000;
/** Of the wall clock against the monotonic one while this check ran: it was set, or is being pulled hard. */
const JUMP_MS = 100;

const LIST = new Intl.ListFormat('en');

export interface ClockParts {
  /** This machine's time, ms since the epoch. */
  readonly now: () => number;
  /** Milliseconds that nobody sets. */
  readonly monotonic: () => number;
  /** Resolves after about so many ms. */
  readonly wait: (ms: number) => Promise<void>;
  /** When the newest mail request was accepted, or null. */
  readonly newestAcceptedAt: number | null;
  /** The time that a file made now gets, or null where none can be made. */
  readonly readFileSystemTime: () => Promise<number | null>;
  /** What the relay said in its greeting and this machine's time then, or null. */
  readonly greeting: Promise<{ readonly text: string; readonly at: number } | null>;
}

/** How long evenness is watched. */
const WATCH_MS = 1_000;

export async function checkClock(parts: ClockParts): Promise<readonly Finding[]> {
  const { now, monotonic, wait, newestAcceptedAt, readFileSystemTime: fileTime, greeting } = parts;
  const before = { wall: now(), steady: monotonic() };
  const [greeted, file] = await Promise.all([greeting, fileOffset(now, fileTime), wait(WATCH_MS)]);
  const jump = now() - before.wall - (monotonic() - before.steady);
  const relay = greeted === null ? null : parseGreetingTime(greeted.text);
  const offset = relay === null || greeted === null ? null : relay - greeted.at;

  const remedy = 'set the clock by NTP (systemd-timesyncd, chrony), and see that it keeps it';
  if (offset !== null && Math.abs(offset) >= RELAY_WARNING_MS) {
    const detail = `this clock is ${seconds(offset)} ${offset > 0 ? 'behind' : 'ahead of'} the relay's`;
    return [Math.abs(offset) >= RELAY_FAILURE_MS ? failure('clock', detail, remedy) : warning('clock', detail, remedy)];
  }
  if (newestAcceptedAt !== null && newestAcceptedAt - now() > AHEAD_MS) {
    const ahead = seconds(newestAcceptedAt - now());
    return [
      warning('clock', `the newest mail was accepted ${ahead} from now: the clock was set back, or was wrong`, remedy),
    ];
  }
  if (file !== null && Math.abs(file) > FILE_MS) {
    const detail = `the file system of the database is ${seconds(file)} ${file > 0 ? 'ahead of' : 'behind'} this clock`;
    return [warning('clock', detail, remedy)];
  }
  if (Math.abs(jump) > JUMP_MS) {
    return [warning('clock', `it was moved by ${Math.round(jump)} ms within a second`, remedy)];
  }
  const against = [
    ...(offset === null ? [] : ["the relay's greeting"]),
    ...(newestAcceptedAt === null ? [] : ['the newest mail']),
    ...(file === null ? [] : ['the file system']),
  ];
  const agreed = against.length === 0 ? '' : ` and agrees with ${LIST.format(against)}`;
  return [ok('clock', `${new Date(now()).toISOString().slice(0, 19)}Z; it runs evenly${agreed}`)];
}

/** How far the file system's time is ahead, in ms. */
async function fileOffset(now: () => number, fileTime: ClockParts['readFileSystemTime']): Promise<number | null> {
  const before = now();
  const file = await fileTime();
  if (file === null) return null;
  const after = now();
  return file < before ? Math.min(0, file - before) : Math.max(0, file - after);
}

function seconds(ms: number): string {
  const whole = Math.round(Math.abs(ms) / 1000);
  if (whole < 120) return `${whole} s`;
  return whole < 7200 ? `${Math.round(whole / 60)} min` : `${Math.round(whole / 3600)} h`;
}

/** The date-time (RFC 5322 section 3.3) that Exim, Sendmail and Exchange put into their greetings, or null. */
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

/**
 * The log: one domain verb a line, as JSON, buffered. `log.delivered({ id, tookMs })`, never prose.
 *
 * Promises: only the fields listed here are ever written, so that bodies, keys and passwords have no way in, and passwords of
 * URLs are masked; every text is one line and bounded, and characters that act on a terminal are escaped; a line leaves the process within a second of being written, or as soon as its reader
 * takes it; a reader that does not never slows anything down: lines are dropped then, and the log says how many.
 */
import pino from 'pino';
import type { Settings } from '../config/settings.ts';
import { escapeJson } from '../printing/escape.ts';
import { maskSecrets } from '../printing/mask.ts';
import { type Output, standardOutput } from './output.ts';

export type LogLevel = Settings['logLevel'];
export type LogValue = string | number | boolean | null;

/** The fields there are. A mail request's subject and message are none of them, and no credential is. */
export const LOG_FIELDS = [
  'id',
  'accountId',
  'keyId',
  'node',
  'domain',
  'state',
  'to',
  'remote',
  'transport',
  'code',
  'enhanced',
  'reason',
  'text',
  'detail',
  'attempts',
  'count',
  'tookMs',
  'dueAt',
  'until',
  'url',
  'error',
] as const;

export type LogField = (typeof LOG_FIELDS)[number];
export type LogFields = { readonly [name in LogField]?: LogValue | undefined };

/** Each verb and its level: what happens to every message at `debug`, how it ended at `info`. */
export const LOG_VERBS = {
  accepted: 'debug',
  replayed: 'debug',
  refused: 'debug',
  delivered: 'info',
  deferred: 'info',
  bounced: 'info',
  suppressed: 'info',
  expired: 'info',
  complained: 'info',
  noted: 'info',
  kept: 'warn',
  uncertain: 'warn',
  recovered: 'info',
  paused: 'warn',
  resumed: 'info',
  started: 'info',
  reloaded: 'info',
  draining: 'info',
  warned: 'warn',
  failed: 'error',
} as const satisfies Readonly<Record<string, Exclude<LogLevel, 'silent'>>>;

export type LogVerb = keyof typeof LOG_VERBS;

export type Log = { readonly [verb in LogVerb]: (fields: LogFields) => void } & {
  /** False where the level of the verb is off. */
  enabled(verb: LogVerb): boolean;
  /** Lines lost so far because the reader of standard output did not take them. */
  dropped(): number;
  /** Writes out what is buffered, for as long as a reader takes it, and no longer than a second. */
  close(): Promise<void>;
};

const LONGEST_TEXT = 1000;
const FLUSH_EVERY_MS = 1000;
const SHOWN: readonly string[] = LOG_FIELDS;
/** As pino numbers it. */
const WARN = 40;

/** Where the lines go, when not to standard output. */
export interface LogDestination {
  write(line: string): void;
}

/** Makes the log; to standard output, buffered and not before `after` has resolved, unless `destination` is given. */
export function createLog(
  level: LogLevel,
  destination: LogDestination | null = null,
  after: Promise<unknown> | null = null,
): Log {
  const output = destination === null ? standardOutput(droppedLine, after) : direct(destination);
  const logger = pino(
    { level, base: null, messageKey: 'verb', timestamp: pino.stdTimeFunctions.isoTime },
    { write: (line: string) => output.write(escapeJson(line)) },
  );
  // A buffer nobody fills up would keep its last lines for ever; the timer never keeps the process alive.
  const timer = setInterval(output.flush, FLUSH_EVERY_MS).unref();
  const verb = (name: LogVerb): ((fields: LogFields) => void) => {
    const at = LOG_VERBS[name];
    // A level that is off costs a call and nothing else.
    if (!logger.isLevelEnabled(at)) return () => {};
    return (fields) => logger[at](permitted(fields), name);
  };
  return {
    accepted: verb('accepted'),
    replayed: verb('replayed'),
    refused: verb('refused'),
    delivered: verb('delivered'),
    deferred: verb('deferred'),
    bounced: verb('bounced'),
    suppressed: verb('suppressed'),
    expired: verb('expired'),
    complained: verb('complained'),
    noted: verb('noted'),
    kept: verb('kept'),
    uncertain: verb('uncertain'),
    recovered: verb('recovered'),
    paused: verb('paused'),
    resumed: verb('resumed'),
    started: verb('started'),
    reloaded: verb('reloaded'),
    draining: verb('draining'),
    warned: verb('warned'),
    failed: verb('failed'),
    enabled: (name) => logger.isLevelEnabled(LOG_VERBS[name]),
    dropped: output.dropped,
    close() {
      clearInterval(timer);
      return output.close();
    },
  };
}

/** The line that stands where lines are missing, shaped like the others; shown at every level. */
function droppedLine(count: number): string {
  return `${JSON.stringify({ level: WARN, time: new Date().toISOString(), count, verb: 'dropped' })}\n`;
}

function direct(destination: LogDestination): Output {
  return { write: (line) => destination.write(line), flush() {}, close: () => Promise.resolve(), dropped: () => 0 };
}

/** Only fields of the list, and only plain values: a caller that was tricked or mistyped writes nothing more. */
function permitted(fields: LogFields): Record<string, LogValue> {
  const shown: Record<string, LogValue> = {};
  for (const name of Object.keys(fields)) {
    if (!SHOWN.includes(name)) continue;
    const value = fields[name as LogField];
    if (typeof value === 'string') shown[name] = bounded(maskSecrets(value));
    else if (typeof value === 'number' || typeof value === 'boolean' || value === null) shown[name] = value;
  }
  return shown;
}

/** A text over the bound is cut. */
function bounded(text: string): string {
  return text.length <= LONGEST_TEXT ? text : `${text.slice(0, LONGEST_TEXT)}…`;
}

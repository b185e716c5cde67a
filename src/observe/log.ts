/**
 * The log: one domain verb a line, as JSON, buffered. `log.delivered({ id, tookMs })`, never prose.
 *
 * Promises: only the fields listed here are ever written, so that bodies, keys and passwords have no way in; every
 * text is one line and bounded; what is written is out of the process at `flush`, at the latest after a second.
 */
import pino, { type DestinationStream } from 'pino';
import type { Settings } from '../config/settings.ts';

export type LogLevel = Settings['logLevel'];
export type LogValue = string | number | boolean | null;

/** The fields there are. A mail request's subject and message are none of them, and no credential is. */
export const LOG_FIELDS = [
  'id',
  'account',
  'accountId',
  'key',
  'keyId',
  'node',
  'state',
  'to',
  'from',
  'remote',
  'transport',
  'stage',
  'code',
  'enhanced',
  'reason',
  'scope',
  'text',
  'detail',
  'attempts',
  'count',
  'tookMs',
  'dueAt',
  'until',
  'ageMs',
  'bytes',
  'host',
  'port',
  'url',
  'path',
  'signal',
  'version',
  'setting',
  'error',
] as const;

export type LogField = (typeof LOG_FIELDS)[number];
export type LogFields = { readonly [name in LogField]?: LogValue | undefined };

/** Each verb and its level: what happens to every message at `debug`, how it ended at `info`. */
export const LOG_VERBS = {
  accepted: 'debug',
  replayed: 'debug',
  refused: 'debug',
  attempted: 'debug',
  delivered: 'info',
  deferred: 'info',
  bounced: 'info',
  suppressed: 'info',
  expired: 'info',
  complained: 'info',
  cancelled: 'info',
  retried: 'info',
  uncertain: 'warn',
  recovered: 'info',
  erased: 'info',
  paused: 'warn',
  resumed: 'info',
  started: 'info',
  reloaded: 'info',
  draining: 'info',
  stopped: 'info',
  warned: 'warn',
  failed: 'error',
} as const satisfies Readonly<Record<string, Exclude<LogLevel, 'silent'>>>;

export type LogVerb = keyof typeof LOG_VERBS;

export type Log = { readonly [verb in LogVerb]: (fields: LogFields) => void } & {
  /** Writes out what is buffered; returns when it is written. */
  flush(): void;
  /** Flushes, and stops the periodic flush. */
  close(): void;
};

const LONGEST_TEXT = 1000;
const BUFFER_BYTES = 4096;
const FLUSH_EVERY_MS = 1000;
const SHOWN: readonly string[] = LOG_FIELDS;
/** Where the lines go, when not to standard output. */
export interface LogDestination {
  write(line: string): void;
}

/** Makes the log; to standard output, buffered, unless `destination` is given. */
export function createLog(level: LogLevel, destination?: LogDestination): Log {
  const { sink, flush } = destination === undefined ? standardOutput() : { sink: destination, flush: () => {} };
  const logger = pino({ level, base: null, messageKey: 'verb', timestamp: pino.stdTimeFunctions.isoTime }, sink);
  // A buffer nobody fills up would keep its last lines for ever; the timer never keeps the process alive.
  const timer = destination === undefined ? setInterval(flush, FLUSH_EVERY_MS).unref() : null;
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
    attempted: verb('attempted'),
    delivered: verb('delivered'),
    deferred: verb('deferred'),
    bounced: verb('bounced'),
    suppressed: verb('suppressed'),
    expired: verb('expired'),
    complained: verb('complained'),
    cancelled: verb('cancelled'),
    retried: verb('retried'),
    uncertain: verb('uncertain'),
    recovered: verb('recovered'),
    erased: verb('erased'),
    paused: verb('paused'),
    resumed: verb('resumed'),
    started: verb('started'),
    reloaded: verb('reloaded'),
    draining: verb('draining'),
    stopped: verb('stopped'),
    warned: verb('warned'),
    failed: verb('failed'),
    flush,
    close() {
      if (timer !== null) clearInterval(timer);
      flush();
    },
  };
}

/** Only fields of the list, and only plain values: a caller that was tricked or mistyped writes nothing more. */
function permitted(fields: LogFields): Record<string, LogValue> {
  const shown: Record<string, LogValue> = {};
  for (const name of Object.keys(fields)) {
    if (!SHOWN.includes(name)) continue;
    const value = fields[name as LogField];
    if (typeof value === 'string') shown[name] = oneLine(value);
    else if (typeof value === 'number' || typeof value === 'boolean' || value === null) shown[name] = value;
  }
  return shown;
}

/** C0, C1 and Unicode's line separators become spaces; a text over the bound is cut. */
function oneLine(text: string): string {
  const end = Math.min(text.length, LONGEST_TEXT);
  let shown = '';
  let from = 0;
  for (let i = 0; i < end; i += 1) {
    if (!isControl(text.charCodeAt(i))) continue;
    shown += `${text.slice(from, i)} `;
    from = i + 1;
  }
  shown += text.slice(from, end);
  return end < text.length ? `${shown}…` : shown;
}

function isControl(unit: number): boolean {
  return unit < 0x20 || (unit >= 0x7f && unit <= 0x9f) || unit === 0x2028 || unit === 0x2029;
}

function standardOutput(): { readonly sink: DestinationStream; readonly flush: () => void } {
  const stream = pino.destination({ fd: 1, sync: false, minLength: BUFFER_BYTES });
  // A reader that went away (`postrider serve | head`) must not end the service.
  stream.on('error', () => {});
  return {
    sink: stream,
    flush() {
      try {
        stream.flushSync();
      } catch {
        // The descriptor is not open yet, or already gone; there is nobody left to tell.
      }
    },
  };
}

/**
 * The log: subscribes to events and writes one JSON line for each event to standard output.
 *
 * Guarantees: a line contains only the fields that log-events.ts lists for its event, so that bodies, keys and
 * passwords are never logged. Passwords in URLs are masked. A text is one line of limited length, and control
 * characters are escaped. A line is written within one second, unless the reader of standard output is slower. A slow
 * reader never blocks the service. If more than `MAX_WAITING_CHARS` characters wait, further lines are dropped, and a
 * later line states their number.
 */
import { write, writeSync } from 'node:fs';
import pino from 'pino';
import type { EventOf } from '../model/events.ts';
import type { SettledEventType } from '../model/message.ts';
import type { Attempt } from '../model/outcome.ts';
import { escapeJson, maskSecrets } from '../printing/escape.ts';
import type { Handlers } from './events.ts';
import {
  LOG_EVENTS,
  type LogEventName,
  type LogFields,
  type LoggedType,
  type LogLevel,
  type LogValue,
} from './log-events.ts';

export interface Log {
  /** Writes a line if the level of the event is enabled. */
  write<Name extends LogEventName>(event: Name, fields: LogFields<Name>): void;
  /** Returns true if the level of the event is enabled. */
  enabled(event: LogEventName): boolean;
  /** Returns the number of lines dropped because the reader of standard output was too slow. */
  droppedLines(): number;
  /** Writes the buffered lines. Resolves after at most one second. */
  close(): Promise<void>;
}

const MAX_TEXT_LENGTH = 1000;
const FLUSH_INTERVAL_MS = 1000;

/** A destination other than standard output. */
export interface LogDestination {
  write(formatFields: string): void;
}

/**
 * Creates the log. Without `destination` it writes to standard output through a buffer, and only after `startAfter` has
 * resolved.
 */
export function createLog(
  level: LogLevel,
  destination: LogDestination | null = null,
  startAfter: Promise<unknown> | null = null,
): Log {
  const output = destination === null ? standardOutput(formatDroppedLines, startAfter) : directOutput(destination);
  const logger = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: (formatFields: string) => output.write(escapeJson(formatFields)) },
  );
  // The timer writes the lines of a buffer that is not full. The timer does not keep the process alive.
  const timer = setInterval(output.flush, FLUSH_INTERVAL_MS).unref();
  const enabled = (event: LogEventName) => logger.isLevelEnabled(LOG_EVENTS[event].level);
  return {
    enabled,
    write(event, fields) {
      // An event of a disabled level costs only this check.
      if (enabled(event)) logger[LOG_EVENTS[event].level](formatFields(event, fields));
    },
    droppedLines: output.dropped,
    close() {
      clearInterval(timer);
      return output.close();
    },
  };
}

/** Returns the name of the event and its listed fields whose values are primitive. All other values are not logged. */
function formatFields(event: LogEventName, fields: Readonly<Record<string, unknown>>): Record<string, LogValue> {
  const shown: Record<string, LogValue> = { event };
  for (const name of LOG_EVENTS[event].fields) {
    const value = fields[name];
    if (typeof value === 'string') shown[name] = truncateText(maskSecrets(value));
    else if (typeof value === 'number' || typeof value === 'boolean' || value === null) shown[name] = value;
  }
  return shown;
}

/** Truncates a text to `MAX_TEXT_LENGTH`. */
function truncateText(text: string): string {
  return text.length <= MAX_TEXT_LENGTH ? text : `${text.slice(0, MAX_TEXT_LENGTH)}…`;
}

/** Returns the line that replaces dropped lines. */
function formatDroppedLines(count: number): string {
  const { level } = LOG_EVENTS['log.lines_dropped'];
  return `${JSON.stringify({ level, time: new Date().toISOString(), event: 'log.lines_dropped', count })}\n`;
}

// ── Events ──

type Lines = { readonly [Type in LoggedType]: (event: EventOf<Type>) => LogFields<Type> };

/** Returns the event handlers of the log. Events of disabled levels have no handler. */
export function logHandlers(log: Log, node: string): Handlers {
  const nodeField = () => ({ node });
  const fieldsByType: Lines = {
    'message.accepted': ({ id, accountId, keyId, to, state, tookMs }) => {
      return { id, accountId, keyId, to, state, durationMs: roundMs(tookMs) };
    },
    'message.replayed': ({ id, accountId, keyId, tookMs }) => ({ id, accountId, keyId, durationMs: roundMs(tookMs) }),
    'message.suppressed': ({ id, accountId, to }) => ({ id, accountId, to }),
    'message.delivered': settledFields,
    'message.deferred': (event) => ({ ...settledFields(event), retryAt: isoTime(event.dueAt) }),
    'message.bounced': settledFields,
    'message.complained': settledFields,
    'message.expired': settledFields,
    'message.uncertain': settledFields,
    'message.reported': ({ id, verb, reportedBy }) => ({ id, reportType: verb, reportSource: reportedBy }),
    'message.signing_failed': ({ error }) => ({ node, error: errorText(error) }),
    'attempt.alarm_raised': (event) => ({
      ...attemptFields(event, event.attempt),
      reason: event.reason,
      detail: 'the next hop refuses this service, not only this message; an operator must act',
    }),
    'node.lease_lost': ({ id, accountId, to, attempts }) => ({ node, id, accountId, to, attemptCount: attempts }),
    'request.refused': ({ code, accountId, keyId }) => ({ reason: code, accountId, keyId }),
    'certificate.reloaded': nodeField,
    'certificate.refused': ({ fault }) => ({ node, error: fault }),
    'report.not_understood': ({ feedbackId, reason, summary }) => ({ feedbackId, reason, detail: summary }),
    'subscription.changed': ({ detail }) => ({ node, detail }),
    'account.locked': ({ accountId, reason }) => ({ node, accountId, reason }),
    'account.warned': ({ accountId, reason }) => ({ node, accountId, reason }),
    'domain.authenticated': ({ domain }) => ({ node, domain }),
    'domain.recovered': ({ domain }) => ({ node, domain }),
    'domain.failing': ({ domain }) => ({ node, domain }),
    'domain.blocked': ({ domain }) => ({ node, domain }),
    'node.started': ({ transport, url }) => ({ node, transport, url }),
    'node.draining': nodeField,
    'node.leases_recovered': ({ count }) => ({ node, count }),
    'node.warned': ({ detail }) => ({ node, detail }),
    'store.standby': ({ standby, meaning }) => ({ node, reason: standby, detail: meaning }),
    'node.variables_ignored': ({ names }) => ({ node, names: names.join(',') }),
    'node.operation_failed': ({ operation, error }) => ({ node, operation, error: errorText(error) }),
    'store.files_lost': ({ reason, remedy }) => ({ node, reason: 'database-files', detail: reason, remedy }),
    'store.files_restored': nodeField,
    'circuit_breaker.opened': ({ retryAt }) => ({ node, retryAt: isoTime(retryAt) }),
    'circuit_breaker.half_opened': nodeField,
    'circuit_breaker.closed': nodeField,
  };

  function handler<Type extends LoggedType>(type: Type): (event: EventOf<Type>) => void {
    const fields = fieldsByType[type];
    return (event) => log.write(type, fields(event));
  }
  // The type of the table lists exactly these keys.
  const types = (Object.keys(fieldsByType) as LoggedType[]).filter(log.enabled);
  return Object.fromEntries(types.map((type) => [type, handler(type)]));
}

function attemptFields(
  { id, accountId, to, attempts }: Pick<EventOf<SettledEventType>, 'id' | 'accountId' | 'to' | 'attempts'>,
  { outcome, remote, tookMs }: Attempt,
) {
  const { code, enhanced, text } = outcome.reply;
  const reply = {
    nextHop: remote,
    smtpCode: code,
    enhancedCode: enhanced,
    replyText: text,
    durationMs: roundMs(tookMs),
  };
  return { id, accountId, to, attemptCount: attempts, ...reply };
}

/**
 * Returns the fields for a change of state. They are the fields of the attempt, the fields of the report, or only the
 * id of the message.
 */
function settledFields(event: EventOf<SettledEventType>): LogFields<'message.bounced'> {
  const { id, accountId, to, attempts, attempt, reportedBy, detail, type } = event;
  if (attempt !== null) {
    const { outcome } = attempt;
    const fields = attemptFields(event, attempt);
    if (type === 'message.delivered') return fields;
    return { ...fields, reason: 'reason' in outcome ? outcome.reason : outcome.kind };
  }
  if (reportedBy !== null) return { id, accountId, to, reportSource: reportedBy, detail };
  if (type !== 'message.expired') return { id, accountId, to, detail };
  // The sweeper has only the id of an expired message.
  return accountId === null ? { id } : { id, accountId, to, attemptCount: attempts };
}

/** Rounds a duration in milliseconds to microseconds. */
function roundMs(ms: number): number {
  return Math.round(ms * 1_000) / 1_000;
}

function isoTime(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}

function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

// ── Standard output ──

/** Maximum size of the buffer while the reader stalls, in characters. */
const MAX_WAITING_CHARS = 1_048_576;
/** A buffer of at least this size is written at once; a smaller one is written at the next flush. */
const MIN_WRITE_CHARS = 4_096;
/** Delay before a failed write is repeated. It doubles from the minimum to the maximum. */
const MIN_RETRY_MS = 10;
const MAX_RETRY_MS = 250;
/** Maximum time that a stalled reader delays `close`. */
const CLOSE_TIMEOUT_MS = 1_000;
/** Maximum time for writing the buffer when the process ends without `close`. */
const EXIT_TIMEOUT_MS = 100;
/** Maximum wait for a write in progress when the process ends without `close`. */
const MAX_LAST_WRITE_MS = 20;

const STDOUT = 1;
const EMPTY = Buffer.alloc(0);

interface Output {
  /** Adds one line, which includes its line feed. */
  write(formatFields: string): void;
  /** Starts a write of the buffer. */
  flush(): void;
  /** Resolves when all lines are written, or after one second. */
  close(): Promise<void>;
  /** Returns the number of dropped lines. */
  dropped(): number;
}

function directOutput(destination: LogDestination): Output {
  return {
    write: (formatFields) => destination.write(formatFields),
    flush() {},
    close: () => Promise.resolve(),
    dropped: () => 0,
  };
}

/**
 * Opens standard output. `formatDroppedLines` returns the line that states the number of dropped lines. Until
 * `startAfter` has resolved, lines wait in the buffer. `close` and the end of the process write the buffer in any case.
 *
 * A write never blocks the event loop, and lines are complete and in order. The command line makes the pipe
 * non-blocking (cli/main.ts), so a write to a full pipe returns at once. A write to a blocking pipe would occupy a
 * thread of the thread pool and delay the end of the process until the reader reads.
 */
function standardOutput(formatDroppedLines: (count: number) => string, startAfter: Promise<unknown> | null): Output {
  let isDelayed = startAfter !== null;
  let buffered = '';
  let writing: Buffer = EMPTY;
  let isWriting = false;
  let retryMs = 0;
  let retry: NodeJS.Timeout | null = null;
  let dropped = 0;
  let unreported = 0;
  let whenEmpty: (() => void) | null = null;

  /**
   * Returns the next bytes to write: the remaining bytes of the current write, or the whole buffer if there are none.
   */
  function nextBytes(): Buffer {
    if (writing.length > 0) return writing;
    let text = buffered;
    buffered = '';
    if (unreported > 0) {
      text += formatDroppedLines(unreported);
      unreported = 0;
    }
    writing = Buffer.from(text);
    return writing;
  }

  function startWriting(): void {
    if (isWriting || retry !== null || (isDelayed && whenEmpty === null)) return;
    const bytes = nextBytes();
    if (bytes.length === 0) {
      whenEmpty?.();
      return;
    }
    isWriting = true;
    write(STDOUT, bytes, 0, bytes.length, null, written);
  }

  function written(error: Error | null, count: number): void {
    isWriting = false;
    if (error === null) {
      writing = writing.subarray(count);
      retryMs = 0;
      if (writing.length > 0 || unreported > 0 || buffered.length >= MIN_WRITE_CHARS || whenEmpty !== null)
        startWriting();
      return;
    }
    // EAGAIN means that the pipe is full. The write is repeated after every other error too, for example if there is no
    // reader or if the disk is full.
    retryMs = Math.min(MAX_RETRY_MS, retryMs === 0 ? MIN_RETRY_MS : retryMs * 2);
    retry = setTimeout(() => {
      retry = null;
      startWriting();
    }, retryMs).unref();
  }

  /** Writes the buffer of a process that ends without `close`. */
  function atExit(): void {
    if (isWriting) {
      // No callback runs after this point. Therefore this function waits for the write in progress and treats the write
      // as complete.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, MAX_LAST_WRITE_MS);
      writing = EMPTY;
    }
    const giveUpAt = performance.now() + EXIT_TIMEOUT_MS;
    while (nextBytes().length > 0 && performance.now() < giveUpAt) {
      try {
        writing = writing.subarray(writeSync(STDOUT, writing));
      } catch {
        // The write is repeated until the timeout.
      }
    }
  }

  void startAfter?.then(() => {
    isDelayed = false;
    startWriting();
  });
  process.once('exit', atExit);
  return {
    write(formatFields) {
      if (buffered.length + writing.length + formatFields.length > MAX_WAITING_CHARS) {
        dropped += 1;
        unreported += 1;
        return;
      }
      buffered += formatFields;
      if (buffered.length >= MIN_WRITE_CHARS) startWriting();
    },
    flush: startWriting,
    async close() {
      let timeout: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        whenEmpty = resolve;
        timeout = setTimeout(resolve, CLOSE_TIMEOUT_MS);
        startWriting();
      });
      clearTimeout(timeout);
      whenEmpty = null;
      process.removeListener('exit', atExit);
    },
    dropped: () => dropped,
  };
}

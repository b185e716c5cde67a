/**
 * One JSON line for each logged event, with only the fields of log-events.ts, so that bodies, keys and passwords are
 * never logged. A slow reader never blocks the service: beyond `MAX_WAITING_CHARS`, lines are dropped and counted.
 */
import { write, writeSync } from 'node:fs';
import pino from 'pino';
import type { Settings } from '../config/settings.ts';
import type { EventOf, EventType, Handlers, ServiceEvent } from '../model/events.ts';
import type { SettledEventType } from '../model/message.ts';
import type { Attempt } from '../model/outcome.ts';
import { formatWebhookId } from '../model/webhook.ts';
import { escapeJson, MASK, maskSecrets } from '../printing/escape.ts';
import { formatIsoTimeOrNull, getErrorText } from '../printing/text.ts';
import {
  LOG_EVENTS,
  type LogEventName,
  type LogFieldOf,
  type LogFields,
  type LoggedType,
  type LogValue,
} from './log-events.ts';

export type Log = ReturnType<typeof createLog>;

const MAX_TEXT_LENGTH = 1000;
const FLUSH_INTERVAL_MS = 1000;

export interface LogDestination {
  write(line: string): void;
}

/** Standard output is written through a buffer, and only after `startAfter` has resolved. */
export function createLog(
  { logLevel: level, logRecipients }: Pick<Settings, 'logLevel' | 'logRecipients'>,
  destination: LogDestination | null = null,
  startAfter: Promise<unknown> | null = null,
) {
  const output: Output =
    destination === null
      ? openStandardOutput(startAfter)
      : {
          write: (line) => destination.write(line),
          flush: () => undefined,
          close: async () => undefined,
          getDroppedCount: () => 0,
        };
  const logger = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: (line: string) => output.write(escapeJson(line)) },
  );
  // The timer writes buffers of fewer than `MIN_WRITE_CHARS` characters. The timer does not keep the process alive.
  const timer = setInterval(output.flush, FLUSH_INTERVAL_MS).unref();
  const isEnabled = (event: LogEventName) => logger.isLevelEnabled(LOG_EVENTS[event].level);
  return {
    isEnabled,
    write<Name extends LogEventName>(event: Name, fields: LogFields<Name>): void {
      // An event of a disabled level costs only this check.
      if (isEnabled(event)) logger[LOG_EVENTS[event].level](formatFields(event, fields, logRecipients));
    },
    getDroppedLineCount: output.getDroppedCount,
    /** Resolves after at most one second. */
    close(): Promise<void> {
      clearInterval(timer);
      return output.close();
    },
  };
}

/** Only listed fields with primitive values are logged. */
function formatFields(
  event: LogEventName,
  fields: Readonly<Record<string, unknown>>,
  recipients: Settings['logRecipients'],
): Record<string, LogValue> {
  const loggedFields: Record<string, LogValue> = { event };
  for (const name of LOG_EVENTS[event].fields) {
    const value = fields[name];
    if (name === 'to' && recipients === 'none') continue;
    if (typeof value === 'string') loggedFields[name] = truncateText(maskAddresses(maskSecrets(value), recipients));
    else if (typeof value === 'number' || typeof value === 'boolean' || value === null) loggedFields[name] = value;
  }
  return loggedFields;
}

/** The local part has at most 64 octets, which keeps the search linear. */
const ADDRESS = /("(?:[^"\\]|\\.){0,64}"|[^\s()<>[\]:;@\\,"]{1,64})(@|%40)([^\s()<>[\]:;@\\,"]+)/gu;

/** Masks every address, because the text of a next hop may repeat the recipient. */
function maskAddresses(text: string, recipients: Settings['logRecipients']): string {
  if (recipients === 'full') return text;
  return text.replace(ADDRESS, (address, localPart: string, separator: string, domain: string) => {
    if (localPart === MASK) return address;
    return recipients === 'none' ? '…' : `${String.fromCodePoint(localPart.codePointAt(0) ?? 0)}…${separator}${domain}`;
  });
}

function truncateText(text: string): string {
  return text.length <= MAX_TEXT_LENGTH ? text : `${text.slice(0, MAX_TEXT_LENGTH)}…`;
}

function formatDroppedLines(count: number): string {
  const { level } = LOG_EVENTS['log.lines_dropped'];
  return `${JSON.stringify({ level, time: new Date().toISOString(), event: 'log.lines_dropped', count })}\n`;
}

/** The types whose fields are members of the event, without a time or the id of an endpoint, which have formats. */
type DirectType = {
  [Type in LoggedType]: Exclude<LogFieldOf<Type>, 'node'> extends Exclude<keyof EventOf<Type>, 'retryAt' | 'webhookId'>
    ? EventOf<Type> & { readonly node: string } extends LogFields<Type>
      ? Type
      : never
    : never;
}[LoggedType];

const FIELDS: { readonly [Type in Exclude<LoggedType, DirectType>]: (event: EventOf<Type>) => LogFields<Type> } = {
  'message.accepted': ({ tookMs, ...event }) => ({ ...event, durationMs: roundMs(tookMs) }),
  'message.replayed': ({ tookMs, ...event }) => ({ ...event, durationMs: roundMs(tookMs) }),
  'message.delivered': getSettledFields,
  'message.deferred': (event) => ({ ...getFailedFields(event), retryAt: formatIsoTimeOrNull(event.dueAt) }),
  'message.bounced': getFailedFields,
  'message.complained': getSettledFields,
  'message.expired': getFailedFields,
  'message.uncertain': getSettledFields,
  'message.confirmed': ({ id, accountId, to, at, acceptedAt, reportedBy, detail }) => {
    return { id, accountId, to, durationMs: at - acceptedAt, reportSource: reportedBy, detail };
  },
  'message.reported': ({ id, verb, reportedBy, failure }) => {
    const fields = { id, reportType: verb, reportSource: reportedBy };
    return failure === null ? fields : { ...fields, class: failure.class, category: failure.category };
  },
  'message.signing_failed': ({ error }) => ({ error: getErrorText(error) }),
  'attempt.alarm_raised': (event) => ({
    ...getAttemptFields(event, event.attempt),
    reason: event.reason,
    detail: 'the next hop refuses this service, not only this message; an operator must act',
  }),
  'node.lease_lost': ({ attempts, ...event }) => ({ ...event, attemptCount: attempts }),
  'request.refused': ({ code, accountId, keyId }) => ({ reason: code, accountId, keyId }),
  'certificate.refused': ({ fault }) => ({ error: fault }),
  'report.not_understood': ({ feedbackId, reason, summary }) => ({ feedbackId, reason, detail: summary }),
  'webhook.attempt_succeeded': getWebhookFields,
  'webhook.attempt_failed': (event) => {
    return { ...getWebhookFields(event), error: event.error, retryAt: formatIsoTimeOrNull(event.retryAt) };
  },
  'webhook.delivery_failed': (event) => ({ ...getWebhookFields(event), error: event.error }),
  'webhook.disabled': ({ webhookId, reason }) => ({ webhookId: formatWebhookId(webhookId), reason }),
  'notification.delivered': ({ notificationId, target, messageId, tookMs }) => ({
    ...{ notificationId, target, id: messageId, durationMs: tookMs },
  }),
  'notification.attempt_failed': ({ retryAt, ...event }) => ({ ...event, retryAt: formatIsoTimeOrNull(retryAt) }),
  'store.standby': ({ standby, meaning }) => ({ reason: standby, detail: meaning }),
  'node.variables_ignored': ({ names }) => ({ names: names.join(',') }),
  'node.operation_failed': ({ operation, error }) => ({ operation, error: getErrorText(error) }),
  'store.files_lost': ({ reason, remedy }) => ({ reason: 'database-files', detail: reason, remedy }),
  'circuit_breaker.opened': ({ route, retryAt }) => ({ route, retryAt: formatIsoTimeOrNull(retryAt) }),
};

/** Returns the event handlers of the log. Events of disabled levels have no handler. */
export function createLogHandlers(log: Log, node: string): Handlers {
  const getFields: { readonly [Type in EventType]?: (event: never) => object } = FIELDS;
  const loggedTypes = Object.entries(LOG_EVENTS).flatMap(([type, event]) =>
    event === null || type === 'log.lines_dropped' ? [] : [type as LoggedType],
  );
  const entries = loggedTypes.filter(log.isEnabled).map((type) => {
    const convert = getFields[type] as ((event: ServiceEvent) => object) | undefined;
    return [type, (event: ServiceEvent) => log.write(type, { ...(convert?.(event) ?? event), node })];
  });
  return Object.fromEntries(entries);
}

function getAttemptFields(
  { id, accountId, to, attempts }: Pick<EventOf<SettledEventType>, 'id' | 'accountId' | 'to' | 'attempts'>,
  { outcome, remote, tookMs }: Attempt,
) {
  const { code, enhanced, text } = outcome.reply;
  const replyFields = {
    nextHop: remote,
    smtpCode: code,
    enhancedCode: enhanced,
    replyText: text,
    durationMs: roundMs(tookMs),
  };
  return { id, accountId, to, attemptCount: attempts, ...replyFields };
}

function getSettledFields(event: EventOf<SettledEventType>): LogFields<'message.complained'> {
  const { id, accountId, to, attempts, attempt, reportedBy, detail, type } = event;
  if (attempt !== null) {
    const { outcome } = attempt;
    const fields = getAttemptFields(event, attempt);
    if (type === 'message.delivered') return fields;
    return { ...fields, reason: 'reason' in outcome ? outcome.reason : outcome.kind };
  }
  if (reportedBy !== null) return { id, accountId, to, reportSource: reportedBy, detail };
  if (type !== 'message.expired') return { id, accountId, to, detail };
  // The sweeper has only the id of an expired message.
  return accountId === null ? { id } : { id, accountId, to, attemptCount: attempts };
}

function getFailedFields(event: EventOf<SettledEventType>): LogFields<'message.bounced'> {
  const { failure } = event;
  const fields = getSettledFields(event);
  return failure === null ? fields : { ...fields, class: failure.class, category: failure.category };
}

function getWebhookFields({
  webhookId,
  deliveryId,
  eventType,
  status,
  tookMs,
}: EventOf<'webhook.attempt_succeeded' | 'webhook.attempt_failed' | 'webhook.delivery_failed'>) {
  const deliveryFields = { deliveryId, eventType, httpStatus: status, durationMs: tookMs };
  return { webhookId: formatWebhookId(webhookId), ...deliveryFields };
}

function roundMs(ms: number): number {
  return Math.round(ms * 1_000) / 1_000;
}

const MAX_WAITING_CHARS = 1_048_576;
/** A buffer of at least this size is written at once. A smaller buffer is written at the next flush. */
const MIN_WRITE_CHARS = 4_096;
const MIN_RETRY_MS = 10;
const MAX_RETRY_MS = 250;
const CLOSE_TIMEOUT_MS = 1_000;
const EXIT_TIMEOUT_MS = 100;
const MAX_LAST_WRITE_MS = 20;

const STDOUT_FILE_DESCRIPTOR = 1;
const EMPTY_BUFFER = Buffer.alloc(0);

type Output = ReturnType<typeof openStandardOutput>;

/**
 * Lines are complete and in order. `close` and the exit handler do not wait for `startAfter`. The command line makes the
 * pipe non-blocking (cli/main.ts), because a write to a full blocking pipe would occupy a thread of the thread pool and
 * delay the end of the process until data is read from the pipe.
 */
function openStandardOutput(startAfter: Promise<unknown> | null) {
  let isDelayed = startAfter !== null;
  let bufferedText = '';
  let bytesInProgress: Buffer = EMPTY_BUFFER;
  let state: 'idle' | 'writing' | 'waiting' = 'idle';
  let retryMs = 0;
  let droppedCount = 0;
  let unreportedCount = 0;
  let onEmpty: (() => void) | null = null;

  /** The rest of the current write, or the whole buffer. */
  function encodeNextLines(): Buffer {
    if (bytesInProgress.length > 0) return bytesInProgress;
    bytesInProgress = Buffer.from(bufferedText + (unreportedCount > 0 ? formatDroppedLines(unreportedCount) : ''));
    bufferedText = '';
    unreportedCount = 0;
    return bytesInProgress;
  }

  function startWriting(): void {
    if (state !== 'idle' || (isDelayed && onEmpty === null)) return;
    const bytes = encodeNextLines();
    if (bytes.length === 0) {
      onEmpty?.();
      return;
    }
    state = 'writing';
    write(STDOUT_FILE_DESCRIPTOR, bytes, 0, bytes.length, null, finishWrite);
  }

  function finishWrite(error: Error | null, count: number): void {
    if (error === null) {
      state = 'idle';
      bytesInProgress = bytesInProgress.subarray(count);
      retryMs = 0;
      const hasMore = bytesInProgress.length > 0 || unreportedCount > 0 || bufferedText.length >= MIN_WRITE_CHARS;
      if (hasMore || onEmpty !== null) startWriting();
      return;
    }
    // EAGAIN means that the pipe is full. The write is also repeated after any other error, such as EPIPE (no reader)
    // or ENOSPC (full disk).
    state = 'waiting';
    retryMs = Math.min(MAX_RETRY_MS, retryMs === 0 ? MIN_RETRY_MS : retryMs * 2);
    setTimeout(() => {
      state = 'idle';
      startWriting();
    }, retryMs).unref();
  }

  /** Writes the buffer of a process that ends without `close`. */
  function writeAtExit(): void {
    if (state === 'writing') {
      // No callback runs at the end of the process. Therefore, this function waits for the write in progress and treats
      // it as complete.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, MAX_LAST_WRITE_MS);
      bytesInProgress = EMPTY_BUFFER;
    }
    const timeoutAt = performance.now() + EXIT_TIMEOUT_MS;
    while (encodeNextLines().length > 0 && performance.now() < timeoutAt) {
      try {
        bytesInProgress = bytesInProgress.subarray(writeSync(STDOUT_FILE_DESCRIPTOR, bytesInProgress));
      } catch {
        // The write is repeated until the timeout.
      }
    }
  }

  void startAfter?.then(() => {
    isDelayed = false;
    startWriting();
  });
  process.once('exit', writeAtExit);
  return {
    write(line: string): void {
      if (bufferedText.length + bytesInProgress.length + line.length > MAX_WAITING_CHARS) {
        droppedCount += 1;
        unreportedCount += 1;
        return;
      }
      bufferedText += line;
      if (bufferedText.length >= MIN_WRITE_CHARS) startWriting();
    },
    flush: startWriting,
    async close(): Promise<void> {
      const { promise, resolve } = Promise.withResolvers<void>();
      onEmpty = resolve;
      const timeout = setTimeout(resolve, CLOSE_TIMEOUT_MS);
      startWriting();
      await promise;
      clearTimeout(timeout);
      onEmpty = null;
      process.removeListener('exit', writeAtExit);
    },
    getDroppedCount: () => droppedCount,
  };
}

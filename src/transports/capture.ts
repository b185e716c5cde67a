/** A second attempt replaces the file atomically. */
import { type FileHandle, open, readdir, readFile, rename, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { classify } from '../classify/classify.ts';
import type { Clock } from '../clock.ts';
import { createFolder } from '../folder.ts';
import { decodeEncodedWords } from '../message/headers.ts';
import { parseAddress, toCanonicalAddress } from '../model/address.ts';
import {
  formatInboxAnswer,
  type Inbox,
  type InboxEntry,
  type InboxRule,
  type InboxRuleRequest,
  toReply,
} from '../model/inbox.ts';
import { type Attempt, createDeferral, createLocalReply, type Outcome } from '../model/outcome.ts';
import { isUuid } from '../model/submission.ts';
import { getErrorText } from '../printing/text.ts';
import {
  type BeforeCompletion,
  callBeforeCompletion,
  createLocalAttempt,
  hasControl,
  type OutgoingMessage,
  type Transport,
} from './transport.ts';

const CONCURRENCY = 16;
/** An older file in `tmp/` remained after a crash and is removed. Maildir uses 36 hours by convention. */
const STALE_TMP_MS = 36 * 3_600_000;
const MESSAGE_SUFFIX = '.eml';

interface CaptureFiles {
  readonly open: (path: string, flags: string, mode: number) => Promise<FileHandle>;
}

interface Maildir {
  readonly tmp: string;
  readonly new: string;
  readonly cur: string;
}

export function createCaptureTransport(directory: string, clock: Clock, files: CaptureFiles = { open }): Transport {
  const maildir = getMaildir(directory);
  const directorySync = new DirectorySync(maildir.new);
  let preparation: Promise<void> | null = null;
  let attemptNumber = 0;
  let runningCount = 0;
  let whenIdle: (() => void) | null = null;

  async function captureMessage(message: OutgoingMessage, beforeCompletion: BeforeCompletion): Promise<Outcome> {
    if (!isUuid(message.id)) return toDeferred(`the message id is not a UUID`);
    const { from, to } = message.envelope;
    if (hasControl(from) || hasControl(to)) return toDeferred('an envelope address has a control character');
    const header = `Return-Path: <${from}>\r\nDelivered-To: ${to}\r\n`;
    const name = `${message.id}${MESSAGE_SUFFIX}`;
    attemptNumber += 1;
    const temporaryPath = join(maildir.tmp, `${message.id}.${process.pid}-${attemptNumber}`);
    try {
      preparation ??= prepareMaildir(maildir, clock);
      await preparation;
      const file = await files.open(temporaryPath, 'w', 0o600);
      try {
        await file.writev([Buffer.from(header), message.data]);
        await file.datasync();
      } finally {
        await file.close();
      }
      const refusedOutcome = await callBeforeCompletion(beforeCompletion);
      if (refusedOutcome !== null) {
        await unlink(temporaryPath);
        return refusedOutcome;
      }
      await rename(temporaryPath, join(maildir.new, name));
      await directorySync.sync();
      const reply = { ...createLocalReply('content', `captured as new/${name}`), code: 250, enhanced: '2.0.0' };
      return { kind: 'delivered', reply };
    } catch (error) {
      preparation = null;
      await unlink(temporaryPath).catch(() => undefined);
      return createDeferral('content', describeWriteFault(directory, error), 'unavailable', 'route');
    }
  }

  return {
    concurrency: CONCURRENCY,

    async attempt(message, beforeCompletion) {
      const startedAt = clock.now();
      runningCount += 1;
      const outcome = await captureMessage(message, beforeCompletion);
      runningCount -= 1;
      if (runningCount === 0) whenIdle?.();
      const tookMs = clock.now() - startedAt;
      const line = outcome.kind === 'delivered' ? `* ${outcome.reply.text}` : `* not captured: ${outcome.reply.text}`;
      return { outcome, startedAt, tookMs, remote: null, transcript: [line], lineOffsetsMs: [tookMs] };
    },

    close(timeoutMs) {
      if (runningCount === 0) return Promise.resolve();
      return new Promise((resolve) => {
        const cancel = clock.after(timeoutMs, resolve);
        whenIdle = () => {
          cancel();
          resolve();
        };
      });
    },
  };
}

function getMaildir(directory: string): Maildir {
  return { tmp: join(directory, 'tmp'), new: join(directory, 'new'), cur: join(directory, 'cur') };
}

async function prepareMaildir(maildir: Maildir, clock: Clock): Promise<void> {
  for (const path of [maildir.tmp, maildir.new, maildir.cur]) createFolder(path);
  for (const name of await readdir(maildir.tmp)) {
    const path = join(maildir.tmp, name);
    try {
      const { mtimeMs } = await stat(path);
      if (clock.now() - mtimeMs > STALE_TMP_MS) await unlink(path);
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
    }
  }
}

function toDeferred(text: string): Outcome {
  return createDeferral('content', text, 'unknown', 'message');
}

function describeWriteFault(directory: string, error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : null;
  switch (code) {
    case 'ENOSPC':
    case 'EDQUOT':
      return `no space left for captured messages in ${directory}; free some space, or delete old files there`;
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return `no permission to write captured messages in ${directory} (${code}); make it writable for the service`;
    default:
      return `captured messages cannot be written in ${directory}: ${getErrorText(error)}`;
  }
}

/** One `fsync` covers all renames that were made while the previous one ran. */
class DirectorySync {
  readonly #path: string;
  #runningSync: Promise<void> | null = null;
  #nextSync: Promise<void> | null = null;

  constructor(path: string) {
    this.#path = path;
  }

  sync(): Promise<void> {
    if (this.#runningSync === null) {
      this.#runningSync = this.#syncDirectory();
      return this.#runningSync;
    }
    // The running `fsync` may have begun before this rename.
    this.#nextSync ??= this.#runningSync.then(
      () => this.#startNextSync(),
      () => this.#startNextSync(),
    );
    return this.#nextSync;
  }

  #startNextSync(): Promise<void> {
    this.#nextSync = null;
    this.#runningSync = this.#syncDirectory();
    return this.#runningSync;
  }

  async #syncDirectory(): Promise<void> {
    try {
      const directory = await open(this.#path, 'r');
      try {
        await directory.sync();
      } finally {
        await directory.close();
      }
    } finally {
      if (this.#nextSync === null) this.#runningSync = null;
    }
  }
}

/** The envelope, the signatures, From, To and an encoded Subject of 998 bytes need at most 6 KiB. */
const HEAD_BYTES = 8_192;
const MAX_LISTED_ENTRIES = 1_000;
/** The resolution of modification times on some file systems: a younger directory may change without a new time. */
const MTIME_STEP_MS = 2_000;

export function createCaptureInbox(directory: string): Inbox {
  const maildir = getMaildir(directory);
  const getPath = (id: string): string => join(maildir.new, `${id}${MESSAGE_SUFFIX}`);
  let cachedNames: { readonly changedAt: number; readonly names: readonly string[] } | null = null;

  /** Cached, because reading 60,000 names takes 80 ms. */
  async function listNames(): Promise<readonly string[]> {
    const startedAt = Date.now();
    const changedAt = (await resolveNullIfMissing(stat(maildir.new)))?.mtimeMs ?? null;
    if (cachedNames !== null && cachedNames.changedAt === changedAt) return cachedNames.names;
    const names = (await resolveNullIfMissing(readdir(maildir.new))) ?? [];
    cachedNames = changedAt !== null && startedAt - changedAt > MTIME_STEP_MS ? { changedAt, names } : null;
    return names;
  }

  return {
    async list(limit: number, before: string | null = null): Promise<readonly InboxEntry[]> {
      const names = await listNames();
      const entries: InboxEntry[] = [];
      for (const id of selectNewestIds(names, Math.max(0, Math.min(limit, MAX_LISTED_ENTRIES)), before)) {
        const entry = await resolveNullIfMissing(readEntry(id, getPath(id)));
        if (entry !== null) entries.push(entry);
      }
      return entries;
    },

    findEntry(id: string): Promise<InboxEntry | null> {
      return isUuid(id) ? resolveNullIfMissing(readEntry(id, getPath(id))) : Promise.resolve(null);
    },

    findSource(id: string): Promise<Buffer | null> {
      return isUuid(id) ? resolveNullIfMissing(readFile(getPath(id))) : Promise.resolve(null);
    },
  };
}

/** In descending order. Sorting all names would be slower. */
function selectNewestIds(names: readonly string[], limit: number, before: string | null): readonly string[] {
  const ids: string[] = [];
  for (const name of names) {
    if (!name.endsWith(MESSAGE_SUFFIX)) continue;
    const id = name.slice(0, -MESSAGE_SUFFIX.length);
    if ((before !== null && id >= before) || (ids.length >= limit && id <= (ids.at(-1) ?? ''))) continue;
    if (!isUuid(id)) continue;
    const index = ids.findIndex((listedId) => listedId < id);
    ids.splice(index < 0 ? ids.length : index, 0, id);
    if (ids.length > limit) ids.pop();
  }
  return ids;
}

async function readEntry(id: string, path: string): Promise<InboxEntry> {
  const { mtimeMs } = await stat(path);
  const file = await open(path, 'r');
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
    const lines = buffer.toString('utf8', 0, bytesRead).split('\r\n');
    return {
      id,
      at: Math.round(mtimeMs),
      from: decodeEncodedWords(findHeaderField(lines, 'from:') ?? ''),
      returnPath: (findHeaderField(lines, 'return-path:') ?? '').slice(1, -1),
      to: findHeaderField(lines, 'delivered-to:') ?? '',
      subject: decodeEncodedWords(findHeaderField(lines, 'subject:') ?? ''),
    };
  } finally {
    await file.close();
  }
}

/** Unfolded (RFC 5322 section 2.2.3). */
function findHeaderField(lines: readonly string[], name: string): string | null {
  const end = lines.indexOf('');
  const header = end < 0 ? lines : lines.slice(0, end);
  const index = header.findIndex((line) => line.slice(0, name.length).toLowerCase() === name);
  if (index < 0) return null;
  let value = (header[index] ?? '').slice(name.length);
  for (const line of header.slice(index + 1)) {
    if (!line.startsWith(' ') && !line.startsWith('\t')) break;
    value += line;
  }
  return value.trim();
}

async function resolveNullIfMissing<T>(promise: Promise<T>): Promise<T | null> {
  try {
    return await promise;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}

export type ConsumeInboxRule = (request: InboxRuleRequest) => Promise<InboxRule | null>;

export function withInboxRules(transport: Transport, consumeRule: ConsumeInboxRule, clock: Clock): Transport {
  const endDelays = new Set<() => void>();
  let isClosed = false;

  function awaitDelay(delayMs: number): Promise<boolean> {
    if (isClosed) return Promise.resolve(false);
    return new Promise((resolve) => {
      const finishDelay = (isComplete: boolean) => {
        cancel();
        endDelays.delete(endDelay);
        resolve(isComplete);
      };
      const endDelay = () => finishDelay(false);
      const cancel = clock.after(delayMs, () => finishDelay(true));
      endDelays.add(endDelay);
    });
  }

  async function attemptByRule(
    rule: InboxRule,
    message: OutgoingMessage,
    beforeCompletion: BeforeCompletion,
  ): Promise<Attempt> {
    const startedAt = clock.now();
    const remark = `rule ${rule.id} of the inbox for ${rule.match} answered this attempt`;
    const createAttempt = (outcome: Outcome): Attempt =>
      createLocalAttempt(outcome, { startedAt, now: clock.now(), remote: null, remark });
    switch (rule.answer.kind) {
      case 'reply': {
        const outcome = classify(toReply(rule.answer));
        // No rule opens the circuit breaker.
        return createAttempt(outcome.kind === 'deferred' ? { ...outcome, scope: 'message' } : outcome);
      }
      case 'disconnect': {
        const text = 'connection lost before the end of the message';
        return createAttempt(createDeferral('rcpt', text, 'connection', 'message'));
      }
      case 'unanswered': {
        const reply = createLocalReply('content', 'connection lost after the final dot');
        return createAttempt((await callBeforeCompletion(beforeCompletion)) ?? { kind: 'unanswered', reply });
      }
      case 'delay': {
        const stopText = 'the service was stopped during the delay';
        if (!(await awaitDelay(rule.answer.delayMs)))
          return createAttempt(createDeferral('content', stopText, 'connection', 'message'));
        const attempt = await transport.attempt(message, beforeCompletion);
        const transcript = [`* ${remark}: ${formatInboxAnswer(rule.answer)}`, ...attempt.transcript];
        return { ...attempt, startedAt, tookMs: clock.now() - startedAt, transcript };
      }
    }
  }

  return {
    get concurrency() {
      return transport.concurrency;
    },
    async attempt(message, beforeCompletion) {
      const address = parseAddress(message.envelope.to);
      if (address === null) return transport.attempt(message, beforeCompletion);
      const startedAt = clock.now();
      const { domain } = address;
      let rule: InboxRule | null;
      try {
        rule = await consumeRule({ messageId: message.id, recipient: toCanonicalAddress(address), domain });
      } catch (error) {
        const text = `the rules of the inbox cannot be read: ${getErrorText(error)}`;
        const outcome = createDeferral('connect', text, 'unknown', 'message');
        return createLocalAttempt(outcome, { startedAt, now: clock.now(), remote: null, remark: 'not captured' });
      }
      return rule === null
        ? transport.attempt(message, beforeCompletion)
        : attemptByRule(rule, message, beforeCompletion);
    },
    close(timeoutMs) {
      isClosed = true;
      for (const end of [...endDelays]) end();
      return transport.close(timeoutMs);
    },
  };
}

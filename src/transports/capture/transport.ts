/**
 * Implements the transport `capture:`, which writes each message to a file of a Maildir and sends no message.
 *
 * Guarantees: the file of a `delivered` message is written, synced and renamed into `new/`. A second attempt with the
 * same id replaces the first file atomically. A full disk or a missing permission defers the message, and the text of
 * the reply names the remedy.
 */
import { type FileHandle, open, readdir, rename, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../clock.ts';
import { createFolder } from '../../folder.ts';
import type { Attempt, Outcome } from '../../model/outcome.ts';
import type { OutgoingMessage, Transport } from '../transport.ts';

const CONCURRENCY = 16;
/**
 * The age from which a file in `tmp/` is removed. Such a file remained after a crash. Maildir uses 36 hours by
 * convention.
 */
const STALE_TMP_MS = 36 * 3_600_000;

/** The file system, injected so that tests can simulate a full disk. `node:fs` is the default. */
interface CaptureFiles {
  readonly open: (path: string, flags: string, mode: number) => Promise<FileHandle>;
}

/** Creates the transport. `directory` is created for the first message. */
export function createCaptureTransport(directory: string, clock: Clock, files: CaptureFiles = { open }): Transport {
  const maildir = getMaildir(directory);
  const directorySync = new DirectorySync(maildir.new);
  let preparation: Promise<void> | null = null;
  let attemptNumber = 0;
  let runningCount = 0;
  let whenIdle: (() => void) | null = null;

  async function captureMessage(
    message: OutgoingMessage,
    beforeCompletion: (() => Promise<void>) | null,
  ): Promise<Outcome> {
    if (!isMessageId(message.id)) return toDeferred(`the message id is not a UUID`, 'message');
    const { from, to } = message.envelope;
    if (hasControl(from) || hasControl(to)) return toDeferred('an envelope address has a control character', 'message');
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
      if (beforeCompletion !== null) {
        const refusedOutcome = await beforeCompletion().then(
          () => null,
          (error: unknown) => toDeferred(`not completed: ${describeError(error)}`, 'message'),
        );
        if (refusedOutcome !== null) {
          await unlink(temporaryPath);
          return refusedOutcome;
        }
      }
      await rename(temporaryPath, join(maildir.new, name));
      await directorySync.sync();
      const reply = { stage: 'content', code: 250, enhanced: '2.0.0', text: `captured as new/${name}` } as const;
      return { kind: 'delivered', reply };
    } catch (error) {
      // The directory may have been removed. The next attempt creates the directory again.
      preparation = null;
      await unlink(temporaryPath).catch(() => undefined);
      return toDeferred(describeWriteFault(directory, error), 'transport');
    }
  }

  return {
    concurrency: CONCURRENCY,

    async attempt(message: OutgoingMessage, beforeCompletion: (() => Promise<void>) | null): Promise<Attempt> {
      const startedAt = clock.now();
      runningCount += 1;
      let outcome: Outcome;
      try {
        outcome = await captureMessage(message, beforeCompletion);
      } catch (error) {
        outcome = toDeferred(describeError(error), 'message');
      }
      runningCount -= 1;
      if (runningCount === 0) whenIdle?.();
      const tookMs = clock.now() - startedAt;
      return {
        outcome,
        startedAt,
        tookMs,
        remote: null,
        transcript: [
          outcome.kind === 'delivered' ? `* ${outcome.reply.text}` : `* not captured: ${outcome.reply.text}`,
        ],
        lineOffsetsMs: [tookMs],
      };
    },

    close(timeoutMs: number): Promise<void> {
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

async function prepareMaildir(maildir: Maildir, clock: Clock): Promise<void> {
  for (const path of [maildir.tmp, maildir.new, maildir.cur]) createFolder(path);
  for (const name of await readdir(maildir.tmp)) {
    const path = join(maildir.tmp, name);
    try {
      const { mtimeMs } = await stat(path);
      if (clock.now() - mtimeMs > STALE_TMP_MS) await unlink(path);
    } catch (error) {
      // A running attempt may have renamed the file.
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
    }
  }
}

function toDeferred(text: string, scope: 'message' | 'transport'): Outcome {
  const reason = scope === 'message' ? 'unknown' : 'unavailable';
  return { kind: 'deferred', reply: { stage: 'content', code: null, enhanced: null, text }, reason, scope };
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
      return `captured messages cannot be written in ${directory}: ${describeError(error)}`;
  }
}

function describeError(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Returns true if the address contains a control character, which could begin a further header line. */
function hasControl(address: string): boolean {
  for (let i = 0; i < address.length; i += 1) {
    const codeUnit = address.charCodeAt(i);
    if (codeUnit < 32 || codeUnit === 127) return true;
  }
  return false;
}

// Makes renames into one directory durable by an `fsync` of the directory. One `fsync` covers all renames that were
// made while the previous `fsync` ran. If an `fsync` fails, the promises of all its callers reject with the error of
// the operating system.

class DirectorySync {
  readonly #path: string;
  #runningSync: Promise<void> | null = null;
  #nextSync: Promise<void> | null = null;

  constructor(path: string) {
    this.#path = path;
  }

  /** Resolves when every rename before this call is on disk. */
  sync(): Promise<void> {
    if (this.#runningSync === null) {
      this.#runningSync = this.#syncDirectory();
      return this.#runningSync;
    }
    // The running `fsync` may have begun before the caller's rename. Only the next `fsync` includes the rename.
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

// Defines the Maildir of captured messages. The file names are message ids.

/** Length of a UUID in text. */
const UUID_LENGTH = 36;
export const MESSAGE_SUFFIX = '.eml';

interface Maildir {
  readonly tmp: string;
  readonly new: string;
  readonly cur: string;
}

/** Returns the paths of the three directories of the Maildir at `directory`. */
export function getMaildir(directory: string): Maildir {
  return { tmp: join(directory, 'tmp'), new: join(directory, 'new'), cur: join(directory, 'cur') };
}

/** Returns true for a lower-case UUID. Only such names become part of a path. */
export function isMessageId(text: string): boolean {
  if (text.length !== UUID_LENGTH) return false;
  for (let i = 0; i < UUID_LENGTH; i += 1) {
    const codeUnit = text.charCodeAt(i);
    const isDashPosition = i === 8 || i === 13 || i === 18 || i === 23;
    if (isDashPosition ? codeUnit !== 45 : !((codeUnit >= 48 && codeUnit <= 57) || (codeUnit >= 97 && codeUnit <= 102)))
      return false;
  }
  return true;
}

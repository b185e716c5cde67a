/**
 * Reads reports from outside on a thread of its own, one after another, each within a deadline: whatever a report costs, nothing
 * else of the process waits for it. A report over its deadline, or one that exhausts the thread's memory, is `too-expensive`:
 * the thread is ended and replaced.
 *
 * Reports that wait are bounded in number and in bytes, since the memory limits of a thread do not cover what stands in
 * buffers. `read` rejects where the thread cannot be started or the reader is closed; the report is unread then.
 */
import { Worker } from 'node:worker_threads';
import type { Clock } from '../clock.ts';
import type { Notice } from '../model/feedback.ts';

/** A report of 1 MiB takes less than a tenth of a second on one core. */
export const READ_TIMEOUT_MS = 5_000;
/**
 * The deadline is counted in turns of this process's own loop: a process that was stopped, or that is itself held up, does not
 * take that time for the report's.
 */
const TICKS = 10;
/** Reports that wait or are being read, and the bytes of them. */
export const MAX_WAITING = { reports: 64, bytes: 16 * 1_048_576 } as const;
const START_MS = 30_000;
/** After so long without a report the thread is ended. */
const IDLE_MS = 60_000;
const THREAD_MEMORY = { maxYoungGenerationSizeMb: 16, maxOldGenerationSizeMb: 128 } as const;

/** What the thread says. */
export type ReaderThreadReply =
  | { readonly kind: 'ready' }
  | { readonly kind: 'read'; readonly notices: readonly Notice[] }
  | { readonly kind: 'failed'; readonly fault: string };

export type ReadResult =
  | { readonly kind: 'read'; readonly notices: readonly Notice[] }
  /** Nothing is known of it, and it must not be tried again. */
  | { readonly kind: 'too-expensive' }
  /** Too many reports wait: to be sent again later. */
  | { readonly kind: 'busy' };

export interface ReportReader {
  read(raw: Uint8Array): Promise<ReadResult>;
  /** Ends the thread; what waits is rejected. */
  close(): Promise<void>;
}

export interface ReportReaderParts {
  readonly clock: Clock;
  /** Called before each start of a thread: flags of the engine that every thread of the process needs. */
  readonly beforeThread: () => void;
  /** Told where reading a report failed, which no report should be able to cause, and where the thread died. */
  readonly failed: (what: string, error: unknown) => void;
  /** The thread's module, unless it is the reader itself. */
  readonly threadModule?: URL;
}

interface Job {
  readonly raw: Uint8Array;
  readonly done: PromiseWithResolvers<ReadResult>;
}

interface Thread {
  readonly worker: Worker;
  /** Rejects where it ended before it was ready. */
  readonly ready: Promise<void>;
  ended: boolean;
}

export function createReportReader({
  clock,
  beforeThread,
  failed,
  threadModule: module = MODULE,
}: ReportReaderParts): ReportReader {
  const waiting: Job[] = [];
  let waitingBytes = 0;
  let thread: Thread | null = null;
  let current: Job | null = null;
  /** The thread that has been given the current report. */
  let reading: Thread | null = null;
  let closed = false;
  let stopIdle: () => void = () => undefined;
  let stopDeadline: () => void = () => undefined;

  function start(): Thread {
    beforeThread();
    const worker = new Worker(module, { name: 'postrider-reports', resourceLimits: THREAD_MEMORY });
    worker.unref();
    const ready = Promise.withResolvers<void>();
    // The caller awaits it. A rejection after the caller has given up must not end the process.
    ready.promise.catch(() => undefined);
    const started: Thread = { worker, ready: ready.promise, ended: false };
    const cancel = clock.after(
      START_MS,
      () => void end(started, new Error('the reading thread did not start in time')),
    );
    worker.on('message', (reply: ReaderThreadReply) => {
      if (started.ended) return;
      switch (reply.kind) {
        case 'ready':
          cancel();
          ready.resolve();
          return;
        case 'read':
          finish({ kind: 'read', notices: reply.notices });
          return;
        case 'failed':
          failed('reading feedback', new Error(reply.fault));
          finish({ kind: 'read', notices: [FAULT] });
          return;
      }
    });
    worker.on('error', (error) => void end(started, error));
    worker.on('exit', () => {
      cancel();
      void end(started, new Error('the reading thread has ended'));
      // By its deadline, or because it had no memory left.
      if (reading === started) finish({ kind: 'too-expensive' });
    });
    function end(which: Thread, error: Error): Promise<unknown> {
      if (which.ended) return Promise.resolve();
      which.ended = true;
      if (thread === which) thread = null;
      ready.reject(error);
      if (!closed) failed('reading feedback', error);
      return which.worker.terminate();
    }
    return started;
  }

  /** The current report is done with; the next one is read. */
  function finish(outcome: ReadResult): void {
    leave()?.done.resolve(outcome);
    void next();
  }

  function leave(): Job | null {
    stopDeadline();
    const job = current;
    current = null;
    reading = null;
    if (job !== null) waitingBytes -= job.raw.byteLength;
    return job;
  }

  async function next(): Promise<void> {
    if (current !== null) return;
    const job = waiting.shift();
    if (job === undefined) {
      if (thread !== null) stopIdle = clock.after(IDLE_MS, () => void endThread());
      return;
    }
    current = job;
    stopIdle();
    thread ??= start();
    const used = thread;
    try {
      await used.ready;
    } catch (error) {
      if (current !== job) return;
      leave()?.done.reject(error);
      void next();
      return;
    }
    if (current !== job) return;
    reading = used;
    arm(used, TICKS);
    used.worker.postMessage(job.raw);
  }

  function arm(used: Thread, ticks: number): void {
    stopDeadline = clock.after(READ_TIMEOUT_MS / TICKS, () => {
      if (ticks > 1) return arm(used, ticks - 1);
      used.ended = true;
      if (thread === used) thread = null;
      // Its exit finishes the report: two threads never read at once.
      void used.worker.terminate();
    });
  }

  async function endThread(): Promise<void> {
    const ending = thread;
    thread = null;
    if (ending === null) return;
    ending.ended = true;
    await ending.worker.terminate();
  }

  return {
    read(raw) {
      if (closed) return Promise.reject(new Error('the reader of reports is closed'));
      const full =
        waiting.length + (current === null ? 0 : 1) >= MAX_WAITING.reports ||
        waitingBytes + raw.byteLength > MAX_WAITING.bytes;
      if (full) return Promise.resolve({ kind: 'busy' });
      const done = Promise.withResolvers<ReadResult>();
      waiting.push({ raw, done });
      waitingBytes += raw.byteLength;
      void next();
      return done.promise;
    },
    async close() {
      closed = true;
      stopIdle();
      const jobs = [leave(), ...waiting.splice(0)];
      waitingBytes = 0;
      for (const job of jobs) job?.done.reject(new Error('the reader of reports is closed'));
      await endThread();
    },
  };
}

const MODULE = new URL('./report-reader-thread.ts', import.meta.url);
const FAULT: Notice = { kind: 'unknown', reason: 'reading it failed, which is a fault of this software' };

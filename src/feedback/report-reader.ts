/**
 * Reads feedback reports on a separate thread, one at a time, each with a timeout. A costly report never delays other work of the
 * process. A report that exceeds its timeout or exhausts the memory of the thread is `too-expensive`: the reader ends the thread
 * and starts another one.
 *
 * The number of waiting reports and their bytes are bounded, because the memory limits of a thread do not cover buffers. `read`
 * rejects when the thread cannot be started or the reader is closed; the report is then unread.
 */
import { Worker } from 'node:worker_threads';
import type { Clock } from '../clock.ts';
import type { FeedbackEvent } from '../model/feedback.ts';

/** Reading a report of 1 MiB takes less than 100 ms on one core. */
export const READ_TIMEOUT_MS = 5_000;
/**
 * The timeout runs as ten shorter timers one after another. The time during which this process is stopped or its event loop is
 * blocked therefore counts as one step at most.
 */
const TIMEOUT_STEPS = 10;
/** Limits for reports that wait or are being read. */
export const MAX_WAITING = { reports: 64, bytes: 16 * 1_048_576 } as const;
const START_TIMEOUT_MS = 30_000;
/** The thread ends after this time without a report. */
const IDLE_TIMEOUT_MS = 60_000;
const THREAD_MEMORY = { maxYoungGenerationSizeMb: 16, maxOldGenerationSizeMb: 128 } as const;

/** A message from the thread. */
export type ReaderThreadReply =
  | { readonly kind: 'ready' }
  | { readonly kind: 'read'; readonly events: readonly FeedbackEvent[] }
  | { readonly kind: 'failed'; readonly fault: string };

export type ReadResult =
  | { readonly kind: 'read'; readonly events: readonly FeedbackEvent[] }
  /** The content is unknown. The report must not be read again. */
  | { readonly kind: 'too-expensive' }
  /** Too many reports are waiting. The sender must send the report again later. */
  | { readonly kind: 'busy' };

export interface ReportReader {
  read(raw: Uint8Array): Promise<ReadResult>;
  /** Ends the thread and rejects all waiting reads. */
  close(): Promise<void>;
}

export interface ReportReaderParts {
  readonly clock: Clock;
  /** Called before each start of a thread, to set the engine flags that every thread of the process needs. */
  readonly beforeThread: () => void;
  /** Called when reading a report throws, which is a defect, and when the thread ends unexpectedly. */
  readonly onError: (operation: string, error: unknown) => void;
  /** The module of the thread; the default is report-reader-thread.ts. */
  readonly threadModule?: URL;
}

interface ReadJob {
  readonly raw: Uint8Array;
  readonly done: PromiseWithResolvers<ReadResult>;
}

interface Thread {
  readonly worker: Worker;
  /** Rejects when the thread ends before it is ready. */
  readonly ready: Promise<void>;
  ended: boolean;
}

export function createReportReader({
  clock,
  beforeThread,
  onError,
  threadModule: module = MODULE,
}: ReportReaderParts): ReportReader {
  const waiting: ReadJob[] = [];
  let waitingBytes = 0;
  let thread: Thread | null = null;
  let current: ReadJob | null = null;
  /** The thread that reads the current report. */
  let reading: Thread | null = null;
  let closed = false;
  let cancelIdleTimeout: () => void = () => undefined;
  let cancelTimeout: () => void = () => undefined;

  function start(): Thread {
    beforeThread();
    const worker = new Worker(module, { name: 'postrider-reports', resourceLimits: THREAD_MEMORY });
    worker.unref();
    const ready = Promise.withResolvers<void>();
    // The caller awaits this promise. A rejection that no caller awaits must not end the process.
    ready.promise.catch(() => undefined);
    const started: Thread = { worker, ready: ready.promise, ended: false };
    const cancel = clock.after(
      START_TIMEOUT_MS,
      () => void end(started, new Error('the reports thread did not start in time')),
    );
    worker.on('message', (reply: ReaderThreadReply) => {
      if (started.ended) return;
      switch (reply.kind) {
        case 'ready':
          cancel();
          ready.resolve();
          return;
        case 'read':
          complete({ kind: 'read', events: reply.events });
          return;
        case 'failed':
          onError('reading feedback', new Error(reply.fault));
          complete({ kind: 'read', events: [READ_FAILED] });
          return;
      }
    });
    worker.on('error', (error) => void end(started, error));
    worker.on('exit', () => {
      cancel();
      void end(started, new Error('the reports thread has ended'));
      // The timeout ended the thread, or the thread ran out of memory.
      if (reading === started) complete({ kind: 'too-expensive' });
    });
    function end(target: Thread, error: Error): Promise<unknown> {
      if (target.ended) return Promise.resolve();
      target.ended = true;
      if (thread === target) thread = null;
      ready.reject(error);
      if (!closed) onError('reading feedback', error);
      return target.worker.terminate();
    }
    return started;
  }

  /** Completes the current report and starts the next one. */
  function complete(outcome: ReadResult): void {
    releaseCurrent()?.done.resolve(outcome);
    void readNext();
  }

  function releaseCurrent(): ReadJob | null {
    cancelTimeout();
    const job = current;
    current = null;
    reading = null;
    if (job !== null) waitingBytes -= job.raw.byteLength;
    return job;
  }

  async function readNext(): Promise<void> {
    if (current !== null) return;
    const job = waiting.shift();
    if (job === undefined) {
      if (thread !== null) cancelIdleTimeout = clock.after(IDLE_TIMEOUT_MS, () => void endThread());
      return;
    }
    current = job;
    cancelIdleTimeout();
    thread ??= start();
    const usedThread = thread;
    try {
      await usedThread.ready;
    } catch (error) {
      if (current !== job) return;
      releaseCurrent()?.done.reject(error);
      void readNext();
      return;
    }
    if (current !== job) return;
    reading = usedThread;
    startTimeout(usedThread, TIMEOUT_STEPS);
    usedThread.worker.postMessage(job.raw);
  }

  function startTimeout(usedThread: Thread, steps: number): void {
    cancelTimeout = clock.after(READ_TIMEOUT_MS / TIMEOUT_STEPS, () => {
      if (steps > 1) return startTimeout(usedThread, steps - 1);
      usedThread.ended = true;
      if (thread === usedThread) thread = null;
      // The exit completes the report, so two threads never read at the same time.
      void usedThread.worker.terminate();
    });
  }

  async function endThread(): Promise<void> {
    const endingThread = thread;
    thread = null;
    if (endingThread === null) return;
    endingThread.ended = true;
    await endingThread.worker.terminate();
  }

  return {
    read(raw) {
      if (closed) return Promise.reject(new Error('the report reader is closed'));
      const full =
        waiting.length + (current === null ? 0 : 1) >= MAX_WAITING.reports ||
        waitingBytes + raw.byteLength > MAX_WAITING.bytes;
      if (full) return Promise.resolve({ kind: 'busy' });
      const done = Promise.withResolvers<ReadResult>();
      waiting.push({ raw, done });
      waitingBytes += raw.byteLength;
      void readNext();
      return done.promise;
    },
    async close() {
      closed = true;
      cancelIdleTimeout();
      const jobs = [releaseCurrent(), ...waiting.splice(0)];
      waitingBytes = 0;
      for (const job of jobs) job?.done.reject(new Error('the report reader is closed'));
      await endThread();
    },
  };
}

const MODULE = new URL('./report-reader-thread.ts', import.meta.url);
const READ_FAILED: FeedbackEvent = {
  kind: 'unknown',
  reason: 'reading the report failed because of a defect in Postrider',
};

/**
 * Reads feedback reports on a separate thread, one at a time, each with a timeout. An expensive report never delays
 * other work of the process. A report that exceeds its timeout or exhausts the memory of the thread is `too-expensive`.
 * The reader then ends the thread and starts another thread.
 *
 * The number of waiting reports and their bytes are bounded, because the memory limits of a thread do not cover
 * buffers. `read` rejects when the thread cannot be started or the reader is closed. The report is then unread.
 */
import { Worker } from 'node:worker_threads';
import type { Clock } from '../clock.ts';
import type { FeedbackEvent } from '../model/feedback.ts';

/** Reading a report of 1 MiB takes less than 100 ms on one core. */
export const READ_TIMEOUT_MS = 5_000;
/**
 * The number of consecutive timers of which the timeout consists. A period in which the process is stopped or its event
 * loop is blocked therefore counts as at most one of these timers.
 */
const TIMEOUT_STEPS = 10;
/** Maximum number and maximum total bytes of reports that wait or are being read. */
export const MAX_PENDING = { reports: 64, bytes: 16 * 1_048_576 } as const;
const START_TIMEOUT_MS = 30_000;
/** Time without a report after which the thread ends. */
const IDLE_TIMEOUT_MS = 60_000;
const THREAD_RESOURCE_LIMITS = { maxYoungGenerationSizeMb: 16, maxOldGenerationSizeMb: 128 } as const;

/** A message from the thread to the reader. */
export type ReaderThreadReply =
  | { readonly kind: 'ready' }
  | { readonly kind: 'read'; readonly events: readonly FeedbackEvent[] }
  | { readonly kind: 'failed'; readonly fault: string };

export type ReadResult =
  | { readonly kind: 'read'; readonly events: readonly FeedbackEvent[] }
  /** The report exceeded the limits, so its content is unknown. The report must not be read again. */
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
  /**
   * Called before each start of a thread. The callback sets the engine flags that every thread of the process needs.
   */
  readonly beforeThread: () => void;
  /**
   * Called when the thread throws while it reads a report, which is a defect, and when the thread ends unexpectedly.
   */
  readonly onError: (operation: string, error: unknown) => void;
  /** The module that the thread runs. The default is report-reader-thread.ts. */
  readonly threadModule?: URL;
}

interface ReadJob {
  readonly raw: Uint8Array;
  readonly completion: PromiseWithResolvers<ReadResult>;
}

interface ReaderThread {
  readonly worker: Worker;
  /** Resolves when the thread can read reports. Rejects if the thread ends earlier. */
  readonly ready: Promise<void>;
  ended: boolean;
}

export function createReportReader({
  clock,
  beforeThread,
  onError,
  threadModule: module = THREAD_MODULE,
}: ReportReaderParts): ReportReader {
  const waitingJobs: ReadJob[] = [];
  let waitingBytes = 0;
  let thread: ReaderThread | null = null;
  let currentJob: ReadJob | null = null;
  /** The thread that reads the current report. */
  let readingThread: ReaderThread | null = null;
  let closed = false;
  let cancelIdleTimeout: () => void = () => undefined;
  let cancelTimeout: () => void = () => undefined;

  function start(): ReaderThread {
    beforeThread();
    const worker = new Worker(module, { name: 'postrider-reports', resourceLimits: THREAD_RESOURCE_LIMITS });
    worker.unref();
    const ready = Promise.withResolvers<void>();
    // A rejection must not end the process if no caller awaits this promise.
    ready.promise.catch(() => undefined);
    const startedThread: ReaderThread = { worker, ready: ready.promise, ended: false };
    const cancelStartTimeout = clock.after(
      START_TIMEOUT_MS,
      () => void endWithError(startedThread, new Error('the reports thread did not start in time')),
    );
    worker.on('message', (reply: ReaderThreadReply) => {
      if (startedThread.ended) return;
      switch (reply.kind) {
        case 'ready':
          cancelStartTimeout();
          ready.resolve();
          return;
        case 'read':
          completeJob({ kind: 'read', events: reply.events });
          return;
        case 'failed':
          onError('reading feedback', new Error(reply.fault));
          completeJob({ kind: 'read', events: [READ_FAILED] });
          return;
      }
    });
    worker.on('error', (error) => void endWithError(startedThread, error));
    worker.on('exit', () => {
      cancelStartTimeout();
      void endWithError(startedThread, new Error('the reports thread has ended'));
      // The timeout ended the thread, or the thread ran out of memory.
      if (readingThread === startedThread) completeJob({ kind: 'too-expensive' });
    });
    function endWithError(target: ReaderThread, error: Error): Promise<unknown> {
      if (target.ended) return Promise.resolve();
      target.ended = true;
      if (thread === target) thread = null;
      ready.reject(error);
      if (!closed) onError('reading feedback', error);
      return target.worker.terminate();
    }
    return startedThread;
  }

  /** Completes the current report and starts the next one. */
  function completeJob(outcome: ReadResult): void {
    releaseCurrent()?.completion.resolve(outcome);
    void readNext();
  }

  function releaseCurrent(): ReadJob | null {
    cancelTimeout();
    const job = currentJob;
    currentJob = null;
    readingThread = null;
    if (job !== null) waitingBytes -= job.raw.byteLength;
    return job;
  }

  async function readNext(): Promise<void> {
    if (currentJob !== null) return;
    const job = waitingJobs.shift();
    if (job === undefined) {
      if (thread !== null) cancelIdleTimeout = clock.after(IDLE_TIMEOUT_MS, () => void endThread());
      return;
    }
    currentJob = job;
    cancelIdleTimeout();
    thread ??= start();
    const usedThread = thread;
    try {
      await usedThread.ready;
    } catch (error) {
      if (currentJob !== job) return;
      releaseCurrent()?.completion.reject(error);
      void readNext();
      return;
    }
    if (currentJob !== job) return;
    readingThread = usedThread;
    startTimeout(usedThread, TIMEOUT_STEPS);
    usedThread.worker.postMessage(job.raw);
  }

  function startTimeout(usedThread: ReaderThread, steps: number): void {
    cancelTimeout = clock.after(READ_TIMEOUT_MS / TIMEOUT_STEPS, () => {
      if (steps > 1) return startTimeout(usedThread, steps - 1);
      usedThread.ended = true;
      if (thread === usedThread) thread = null;
      // The exit of the thread completes the report, so that two threads never read at the same time.
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
      const isFull =
        waitingJobs.length + (currentJob === null ? 0 : 1) >= MAX_PENDING.reports ||
        waitingBytes + raw.byteLength > MAX_PENDING.bytes;
      if (isFull) return Promise.resolve({ kind: 'busy' });
      const completion = Promise.withResolvers<ReadResult>();
      waitingJobs.push({ raw, completion });
      waitingBytes += raw.byteLength;
      void readNext();
      return completion.promise;
    },
    async close() {
      closed = true;
      cancelIdleTimeout();
      const jobs = [releaseCurrent(), ...waitingJobs.splice(0)];
      waitingBytes = 0;
      for (const job of jobs) job?.completion.reject(new Error('the report reader is closed'));
      await endThread();
    },
  };
}

const THREAD_MODULE = new URL('./report-reader-thread.ts', import.meta.url);
const READ_FAILED: FeedbackEvent = {
  kind: 'unknown',
  reason: 'reading the report failed because of a defect in Postrider',
};

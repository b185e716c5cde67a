/**
 * A job beyond the timeout or memory ends the thread; the next one starts another. Waiting jobs are bounded, because
 * memory limits do not cover buffers.
 */
import { type MessagePort, Worker } from 'node:worker_threads';
import type { Clock } from '../clock.ts';
import type { FeedbackEvent } from '../model/feedback.ts';
import { getErrorText } from '../printing/text.ts';

/** The timeout consists of this number of timers, so that a stopped process or a blocked loop counts as one of them. */
const TIMEOUT_STEPS = 10;
const START_TIMEOUT_MS = 30_000;
const IDLE_TIMEOUT_MS = 60_000;
const MAX_YOUNG_GENERATION_SIZE_MB = 16;

/** `ready` once, then one reply for each job. */
type ThreadReply<Value> =
  | { readonly kind: 'ready' }
  | { readonly kind: 'read'; readonly value: Value }
  | { readonly kind: 'failed'; readonly fault: string };

export type ThreadResult<Value> =
  | { readonly kind: 'read'; readonly value: Value }
  /** Its meaning is unknown, and it must not be read again. */
  | { readonly kind: 'too-expensive' }
  /** The sender must send the content again later. */
  | { readonly kind: 'busy' };

export interface ThreadReader<Job, Value> {
  /** Rejects if the content was not read: the thread cannot start, or the reader is closed. */
  read(job: Job, bytes: number): Promise<ThreadResult<Value>>;
  close(): Promise<void>;
}

export interface ThreadReaderParts<Value> {
  readonly clock: Clock;
  /** Sets the engine flags that every thread needs. */
  readonly prepareThread: () => void;
  readonly onError: (operation: string, error: unknown) => void;
  readonly module: URL;
  readonly name: string;
  readonly operation: string;
  readonly timeoutMs: number;
  readonly maxOldGenerationSizeMb: number;
  readonly maxPending: { readonly jobCount: number; readonly bytes: number };
  /** If the thread throws. */
  readonly failedValue: Value;
}

interface PendingJob<Job, Value> {
  readonly job: Job;
  readonly bytes: number;
  readonly completion: PromiseWithResolvers<ThreadResult<Value>>;
}

interface ReaderThread {
  readonly worker: Worker;
  readonly ready: Promise<void>;
  isEnded: boolean;
}

export function serveJobs<Job, Value>(port: MessagePort | null, read: (job: Job) => Value): void {
  const reply = (message: ThreadReply<Value>) => port?.postMessage(message);
  port?.on('message', (job: Job) => {
    try {
      reply({ kind: 'read', value: read(job) });
    } catch (error) {
      reply({ kind: 'failed', fault: getErrorText(error) });
    }
  });
  reply({ kind: 'ready' });
}

export function createThreadReader<Job, Value>({
  clock,
  prepareThread,
  onError,
  module,
  name,
  operation,
  timeoutMs,
  maxOldGenerationSizeMb,
  maxPending,
  failedValue,
}: ThreadReaderParts<Value>): ThreadReader<Job, Value> {
  const waitingJobs: PendingJob<Job, Value>[] = [];
  let waitingBytes = 0;
  let thread: ReaderThread | null = null;
  let currentJob: PendingJob<Job, Value> | null = null;
  let readingThread: ReaderThread | null = null;
  let isClosed = false;
  let cancelIdleTimeout: () => void = () => undefined;
  let cancelTimeout: () => void = () => undefined;

  function startThread(): ReaderThread {
    prepareThread();
    const worker = new Worker(module, {
      name,
      resourceLimits: { maxYoungGenerationSizeMb: MAX_YOUNG_GENERATION_SIZE_MB, maxOldGenerationSizeMb },
    });
    worker.unref();
    const threadStart = Promise.withResolvers<void>();
    // No caller may await it.
    threadStart.promise.catch(() => undefined);
    const startedThread: ReaderThread = { worker, ready: threadStart.promise, isEnded: false };
    const cancelStartTimeout = clock.after(
      START_TIMEOUT_MS,
      () => void endWithError(startedThread, new Error(`the thread ${name} did not start in time`)),
    );
    worker.on('message', (reply: ThreadReply<Value>) => {
      if (startedThread.isEnded) return;
      switch (reply.kind) {
        case 'ready':
          cancelStartTimeout();
          threadStart.resolve();
          return;
        case 'read':
          completeJob({ kind: 'read', value: reply.value });
          return;
        case 'failed':
          onError(operation, new Error(reply.fault));
          completeJob({ kind: 'read', value: failedValue });
          return;
      }
    });
    worker.on('error', (error) => void endWithError(startedThread, error));
    worker.on('exit', () => {
      cancelStartTimeout();
      void endWithError(startedThread, new Error(`the thread ${name} has ended`));
      // The timeout ended the thread, or the thread ran out of memory.
      if (readingThread === startedThread) completeJob({ kind: 'too-expensive' });
    });
    function endWithError(target: ReaderThread, error: Error): Promise<unknown> {
      if (target.isEnded) return Promise.resolve();
      target.isEnded = true;
      if (thread === target) thread = null;
      threadStart.reject(error);
      if (!isClosed) onError(operation, error);
      return target.worker.terminate();
    }
    return startedThread;
  }

  function completeJob(outcome: ThreadResult<Value>): void {
    releaseCurrentJob()?.completion.resolve(outcome);
    void readNextJob();
  }

  function releaseCurrentJob(): PendingJob<Job, Value> | null {
    cancelTimeout();
    const job = currentJob;
    currentJob = null;
    readingThread = null;
    if (job !== null) waitingBytes -= job.bytes;
    return job;
  }

  async function readNextJob(): Promise<void> {
    if (currentJob !== null) return;
    const job = waitingJobs.shift();
    if (job === undefined) {
      if (thread !== null) cancelIdleTimeout = clock.after(IDLE_TIMEOUT_MS, () => void endThread());
      return;
    }
    currentJob = job;
    cancelIdleTimeout();
    let usedThread: ReaderThread;
    try {
      thread ??= startThread();
      usedThread = thread;
      await usedThread.ready;
    } catch (error) {
      if (currentJob !== job) return;
      releaseCurrentJob()?.completion.reject(error);
      void readNextJob();
      return;
    }
    if (currentJob !== job) return;
    readingThread = usedThread;
    startTimeout(usedThread, TIMEOUT_STEPS);
    usedThread.worker.postMessage(job.job);
  }

  function startTimeout(usedThread: ReaderThread, steps: number): void {
    cancelTimeout = clock.after(timeoutMs / TIMEOUT_STEPS, () => {
      if (steps > 1) return startTimeout(usedThread, steps - 1);
      usedThread.isEnded = true;
      if (thread === usedThread) thread = null;
      // The exit of the thread completes the job, so that two threads never read at the same time.
      void usedThread.worker.terminate();
    });
  }

  async function endThread(): Promise<void> {
    const endingThread = thread;
    thread = null;
    if (endingThread === null) return;
    endingThread.isEnded = true;
    await endingThread.worker.terminate();
  }

  return {
    read(job, bytes) {
      if (isClosed) return Promise.reject(new Error(`the reader ${name} is closed`));
      const isFull =
        waitingJobs.length + (currentJob === null ? 0 : 1) >= maxPending.jobCount ||
        waitingBytes + bytes > maxPending.bytes;
      if (isFull) return Promise.resolve({ kind: 'busy' });
      const completion = Promise.withResolvers<ThreadResult<Value>>();
      waitingJobs.push({ job, bytes, completion });
      waitingBytes += bytes;
      void readNextJob();
      return completion.promise;
    },
    async close() {
      isClosed = true;
      cancelIdleTimeout();
      const jobs = [releaseCurrentJob(), ...waitingJobs.splice(0)];
      waitingBytes = 0;
      for (const job of jobs) job?.completion.reject(new Error(`the reader ${name} is closed`));
      await endThread();
    },
  };
}

/** Reading a report of 1 MiB takes less than 100 ms on one core. */
export const MAX_PENDING = { jobCount: 64, bytes: 16 * 1_048_576 } as const;
export const READ_TIMEOUT_MS = 5_000;
const MAX_OLD_GENERATION_SIZE_MB = 128;

export interface ReportReader {
  read(raw: Uint8Array): Promise<ThreadResult<readonly FeedbackEvent[]>>;
  close(): Promise<void>;
}

interface ReportReaderParts
  extends Pick<ThreadReaderParts<readonly FeedbackEvent[]>, 'clock' | 'prepareThread' | 'onError'> {
  readonly threadModule?: URL;
}

export function createReportReader({ threadModule = THREAD_MODULE, ...parts }: ReportReaderParts): ReportReader {
  const reader = createThreadReader<Uint8Array, readonly FeedbackEvent[]>({
    ...parts,
    module: threadModule,
    name: 'postrider-reports',
    operation: 'reading feedback',
    timeoutMs: READ_TIMEOUT_MS,
    maxOldGenerationSizeMb: MAX_OLD_GENERATION_SIZE_MB,
    maxPending: MAX_PENDING,
    failedValue: [{ kind: 'unknown', reason: 'reading the report failed because of a defect in Postrider' }],
  });
  return { read: (raw) => reader.read(raw, raw.byteLength), close: reader.close };
}

const THREAD_MODULE = new URL('./report-reader-thread.ts', import.meta.url);

/**
 * Implements the embedded store on `node:sqlite`. The writer thread executes all writes and commits them in groups. A
 * reader thread, which starts on demand, executes the reads of operators and prepares the search index, so that no search
 * delays a commit. In a simulation and for a short command, all calls run in the thread of the caller.
 *
 * Each call is sent to its thread and returns a promise. If the thread ends, all pending and later calls reject, so
 * that the listener responds with 500 and acknowledges no message that is not stored.
 */

import { type ResourceLimits, Worker } from 'node:worker_threads';
import { runEvery } from '../../clock.ts';
import type { DirectoryChanges } from '../../model/account.ts';
import { type FeedbackResult, packReports } from '../../model/feedback.ts';
import { getMethodKind, HOT_METHODS, type MethodName, type Store, type StoreMethods } from '../contract.ts';
import { type StoreEnvironment, SYSTEM_ENVIRONMENT } from '../environment.ts';
import { StoreError } from '../error.ts';
import { NOUNS } from '../nouns.ts';
import { packSettlements } from '../rules/messages.ts';
import { createOnDemandThread, setThreadFlags } from '../threads.ts';
import { openDatabase, prepareFile, requireOwnDatabase } from './database.ts';
import { acquireServeLock, removeLeftoverHardLinks, requireUsableFiles, resolveDatabasePath } from './files.ts';
import {
  type Call,
  FILES_CHECK_INTERVAL_MS,
  type FilesFault,
  type OperationName,
  type Operations,
  openGuardedDatabase,
  type StoreThreadOptions,
  type TextReply,
} from './thread.ts';

/** Shorter than the guaranteed second, so that a poll may be late. */
const POLL_INTERVAL_MS = 200;

const READER_IDLE_MS = 300_000;

/**
 * Commits use the same pages repeatedly. Without a limit, the young generation of the heap takes 128 MB on a large
 * machine (docs/decisions/embedded-store.md).
 */
const WRITER_OPTIONS = { cacheKib: 32_768, memory: { maxYoungGenerationSizeMb: 48 } };
const READER_OPTIONS = { cacheKib: 8_192, memory: { maxYoungGenerationSizeMb: 24 } };

const WORKER_MODULE = new URL('./worker.ts', import.meta.url);

export interface SqliteOptions {
  readonly path: string;
  /** A service holds the serve lock. Only one may use the file; commands may open it meanwhile. */
  readonly exclusive: boolean;
  readonly worker?: URL;
  /** Called within one second after files are removed or replaced, and with null when that has ended. */
  readonly onFilesFault?: (fault: FilesFault | null) => void;
  readonly environment?: StoreEnvironment;
  readonly runsInCallerThread?: boolean;
}

export async function openSqliteStore({
  path: configuredPath,
  exclusive,
  worker = WORKER_MODULE,
  onFilesFault,
  environment = SYSTEM_ENVIRONMENT,
  runsInCallerThread = environment.isSimulated,
}: SqliteOptions): Promise<Store> {
  const path = resolveDatabasePath(configuredPath);
  // The lock is acquired before the database is opened, so that a service that must not start does not migrate the
  // database of another service.
  if (exclusive) {
    prepareFile(path);
    requireOwnDatabase(path);
  }
  const unlock = exclusive ? acquireServeLock(path) : () => undefined;
  const start = ({ memory, ...options }: typeof WRITER_OPTIONS, onFault?: typeof onFilesFault) =>
    startThread(worker, { path, holdsServeLock: exclusive, ...options }, memory, onFault);
  let writerThread: StoreThread;
  try {
    // The files are checked again under the lock, because another process may have changed them before this process
    // acquired it.
    if (exclusive) {
      requireUsableFiles(path);
      removeLeftoverHardLinks(path);
    }
    writerThread = runsInCallerThread
      ? await startInCallerThread(
          { path, holdsServeLock: exclusive, cacheKib: WRITER_OPTIONS.cacheKib },
          environment,
          onFilesFault,
        )
      : await start(WRITER_OPTIONS, onFilesFault);
  } catch (error) {
    unlock();
    throw error;
  }
  /** If the file was replaced, no other thread may open it, because the writer still uses the log of the old file. */
  const startReader = () => {
    const fault = writerThread.findFilesFault();
    return fault === null ? start(READER_OPTIONS) : Promise.reject(new StoreError(`${fault.reason}. ${fault.remedy}`));
  };
  const readerThread = createOnDemandThread(startReader, READER_IDLE_MS);
  const callReader: StoreThread['call'] = runsInCallerThread
    ? writerThread.call
    : (name, ...args) => readerThread.use((thread) => thread.call(name, ...args));
  const stopWatching: (() => void)[] = [];

  async function watchDirectory(onChange: (changes: DirectoryChanges) => void): Promise<void> {
    let revision = -1;
    const pollChanges = async () => {
      // The poll is necessary because another process may change the directory. If there is no change, the poll reads
      // only one row.
      const changes = await writerThread.call('readDirectorySince', revision);
      if (changes === null) return;
      revision = changes.revision;
      onChange(changes);
    };
    await pollChanges();
    stopWatching.push(runEvery(environment.clock, POLL_INTERVAL_MS, () => void pollChanges().catch(() => undefined)));
  }

  const recordPackedFeedback: Store['recordPackedFeedback'] = async (batch) =>
    JSON.parse(await writerThread.call('recordPackedFeedback', batch)) as readonly FeedbackResult[];

  return {
    ...mapMethods(writerThread.call, callReader),
    settle: (batch) => writerThread.call('settle', packSettlements(batch)),
    recordFeedback: (batch) =>
      batch.every(({ isProviderEvent }) => isProviderEvent === true)
        ? recordPackedFeedback(packReports(batch))
        : writerThread.call('recordFeedback', batch),
    recordPackedFeedback,
    watchDirectory,
    async indexMessages(step) {
      const { change, progress } = await callReader('buildIndex', step);
      if (change !== null) await writerThread.call('changeIndex', change);
      return progress;
    },
    failed: writerThread.failed,
    async close() {
      for (const stop of stopWatching) stop();
      // SQLite writes the log into the database when the last connection to the database closes. If two connections
      // close at the same time, neither of them is the last connection, and the log is not written; if the log file was
      // deleted, its content is lost. Therefore the writer is closed last. An error of one thread must not prevent the
      // end of the other threads or the release of the lock.
      await Promise.allSettled([readerThread.close()]);
      await Promise.allSettled([writerThread.close()]);
      unlock();
    },
  };
}

/** The reader thread executes the reads of operators, the writer all other calls. */
function mapMethods(write: StoreThread['call'], read: StoreThread['call']): Pick<StoreMethods, MethodName> {
  const names = [...Object.keys(HOT_METHODS), ...Object.keys(NOUNS)] as MethodName[];
  const methods = names.map((name) => {
    const call = (getMethodKind(name) === 'operator-read' ? read : write) as (
      ...args: readonly unknown[]
    ) => Promise<unknown>;
    return [name, (...args: readonly unknown[]) => call(name, ...args)] as const;
  });
  return Object.fromEntries(methods) as unknown as Pick<StoreMethods, MethodName>;
}

type ThreadMessage =
  | { readonly opened: true }
  | { readonly failed: string }
  | { readonly files: FilesFault | null }
  | readonly TextReply[];

interface PendingCall {
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
}

export interface StoreThread {
  call<Name extends OperationName>(
    name: Name,
    ...args: Parameters<Operations[Name]>
  ): Promise<Awaited<ReturnType<Operations[Name]>>>;
  readonly failed: Promise<StoreError>;
  findFilesFault(): FilesFault | null;
  close(): Promise<void>;
}

/** `module` is the file that the thread runs. */
export async function startThread(
  module: URL,
  data: StoreThreadOptions,
  resourceLimits: ResourceLimits = {},
  onFilesFault: (fault: FilesFault | null) => void = () => undefined,
): Promise<StoreThread> {
  setThreadFlags();
  const worker = new Worker(module, { workerData: data, name: 'postrider-store', resourceLimits });
  const pendingCalls = new Map<number, PendingCall>();
  let lastNumber = 0;
  let endError: StoreError | null = null;
  let openCompletion: { resolve: () => void; reject: (error: unknown) => void } | null = null;

  const rejectCalls = (error: StoreError) => {
    endError ??= error;
    openCompletion?.reject(error);
    for (const { reject } of pendingCalls.values()) reject(error);
    pendingCalls.clear();
  };
  let isClosing = false;
  let filesFault: FilesFault | null = null;
  const failure = Promise.withResolvers<StoreError>();
  const exitPromise = new Promise<void>((resolve) => {
    worker.once('exit', () => {
      rejectCalls(new StoreError(isClosing ? 'the store is closed.' : "the store's thread has ended."));
      if (!isClosing && endError !== null) failure.resolve(endError);
      resolve();
    });
  });
  worker.on('error', (error) =>
    rejectCalls(new StoreError(`the store's thread failed: ${error instanceof Error ? error.message : String(error)}`)),
  );
  worker.on('message', (message: ThreadMessage) => {
    if ('opened' in message) return openCompletion?.resolve();
    if ('files' in message) {
      filesFault = message.files;
      onFilesFault(filesFault);
      return;
    }
    if ('failed' in message) return rejectCalls(new StoreError(message.failed));
    for (const reply of message) {
      const pendingCall = pendingCalls.get(reply.number);
      if (pendingCall === undefined) continue;
      pendingCalls.delete(reply.number);
      if (reply.ok) pendingCall.resolve(reply.value as never);
      else pendingCall.reject(new StoreError(reply.error));
    }
  });
  await new Promise<void>((resolve, reject) => {
    openCompletion = { resolve, reject };
  });

  return {
    call(name, ...args) {
      if (endError !== null) return Promise.reject(endError);
      lastNumber += 1;
      const call: Call = { number: lastNumber, name, args };
      return new Promise((resolve, reject) => {
        pendingCalls.set(lastNumber, { resolve, reject });
        worker.postMessage(call);
      });
    },
    failed: failure.promise,
    findFilesFault: () => filesFault,
    async close() {
      isClosing = true;
      if (endError === null) worker.postMessage(null);
      await exitPromise;
    },
  };
}

export async function startInCallerThread(
  { path, holdsServeLock, cacheKib }: StoreThreadOptions,
  { clock }: Pick<StoreEnvironment, 'clock'>,
  onFilesFault: (fault: FilesFault | null) => void = () => undefined,
): Promise<StoreThread> {
  let fault: FilesFault | null = null;
  const guardedDatabase = openGuardedDatabase({
    path,
    holdsServeLock,
    cacheKib,
    open: openDatabase,
    monotonic: clock.monotonic,
    onFilesFault(newFault) {
      fault = newFault;
      onFilesFault(newFault);
    },
  });
  let isClosed = false;
  const stopChecking = runEvery(clock, FILES_CHECK_INTERVAL_MS, guardedDatabase.maintain);

  return {
    async call(name, ...args) {
      if (isClosed) throw new StoreError('the store is closed.');
      const [reply] = await guardedDatabase.answer([{ number: 0, name, args }]);
      if (reply === undefined) throw new StoreError('the store did not respond.');
      if (!reply.ok) throw new StoreError(reply.error);
      return reply.value as never;
    },
    failed: new Promise(() => undefined),
    findFilesFault: () => fault,
    async close() {
      if (isClosed) return;
      isClosed = true;
      stopChecking();
      guardedDatabase.close();
    },
  };
}

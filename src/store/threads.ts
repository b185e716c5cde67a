/** Starts worker threads of the store on demand, and sets their V8 flags. */

import { setFlagsFromString } from 'node:v8';
import { StoreError } from './error.ts';

export interface Thread {
  /** Resolves if the thread ends before `close` is called. */
  readonly failed: Promise<unknown>;
  close(): Promise<void>;
}

export interface OnDemandThread<T extends Thread> {
  /**
   * Runs `work` on the thread and starts the thread if necessary. Rejects if the thread cannot start, if it is closed,
   * or if `work` rejects.
   */
  use<R>(work: (thread: T) => Promise<R>): Promise<R>;
  /**
   * Closes the thread permanently, because a thread that a later call started would keep the process alive. Resolves
   * when all threads have ended, including a thread that was already ending because it was idle.
   */
  close(): Promise<void>;
}

export function createOnDemandThread<T extends Thread>(start: () => Promise<T>, idleMs: number): OnDemandThread<T> {
  let currentThread: Promise<T> | null = null;
  let activeUseCount = 0;
  let isClosed = false;
  let timer: NodeJS.Timeout | null = null;
  const endingThreads = new Set<Promise<void>>();

  function getStartedThread(): Promise<T> {
    if (currentThread !== null) return currentThread;
    const startedThread = start();
    currentThread = startedThread;
    // If this thread could not start or has failed, the next use starts a new thread.
    const resetThread = () => {
      if (currentThread === startedThread) currentThread = null;
    };
    startedThread.then(({ failed }) => failed.then(resetThread), resetThread);
    return startedThread;
  }

  function endThread(): void {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    if (currentThread === null) return;
    const endPromise = currentThread.then((thread) => thread.close()).catch(() => undefined);
    currentThread = null;
    endingThreads.add(endPromise);
    void endPromise.then(() => endingThreads.delete(endPromise));
  }

  return {
    async use(work) {
      if (isClosed) throw new StoreError('the store is closed.');
      if (timer !== null) clearTimeout(timer);
      timer = null;
      activeUseCount += 1;
      try {
        return await work(await getStartedThread());
      } finally {
        activeUseCount -= 1;
        if (activeUseCount === 0 && currentThread !== null) {
          timer = setTimeout(endThread, idleMs);
          timer.unref();
        }
      }
    },
    async close() {
      isClosed = true;
      endThread();
      await Promise.all(endingThreads);
    },
  };
}

/**
 * Threads strip types with Node's WebAssembly module. V8 13.6 (Node 24) frees a shared wrapper twice if one thread uses
 * it while another collects WebAssembly code, and the process aborts with `Check failed: jit_page.has_value()`
 * (docs/decisions/embedded-store.md). Without the reset of `--max-semi-space-size` V8 would apply it instead of a
 * thread's own limits.
 */
export function setThreadFlags(): void {
  setFlagsFromString('--no-wasm-code-gc');
  setFlagsFromString('--max-semi-space-size=0');
}

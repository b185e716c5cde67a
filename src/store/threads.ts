/** Worker threads of the store: their V8 flags, a thread that starts on demand, and low priority. */

import { setPriority } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import { StoreError } from './error.ts';

export interface Thread {
  /** Resolves when the thread has ended without having been closed. */
  readonly failed: Promise<unknown>;
  close(): Promise<void>;
}

export interface OnDemandThread<T extends Thread> {
  /**
   * Runs `work` on the thread and starts the thread if necessary. Rejects if the thread cannot start or is closed, and
   * with the fault of `work`.
   */
  use<R>(work: (thread: T) => Promise<R>): Promise<R>;
  /** Closes the thread permanently: a thread started later would keep the process alive. */
  close(): Promise<void>;
}

export function createOnDemandThread<T extends Thread>(start: () => Promise<T>, idleMs: number): OnDemandThread<T> {
  let running: Promise<T> | null = null;
  let activeUses = 0;
  let closed = false;
  let timer: NodeJS.Timeout | null = null;

  function startedThread(): Promise<T> {
    if (running !== null) return running;
    const starting = start();
    running = starting;
    // A thread that could not start, or has died, is replaced when it is next needed.
    const reset = () => {
      if (running === starting) running = null;
    };
    starting.then(({ failed }) => failed.then(reset), reset);
    return starting;
  }

  async function endThread(): Promise<void> {
    const ending = running;
    running = null;
    if (timer !== null) clearTimeout(timer);
    timer = null;
    await ending?.then(
      (ended) => ended.close(),
      () => undefined,
    );
  }

  return {
    async use(work) {
      if (closed) throw new StoreError('the store is closed.');
      if (timer !== null) clearTimeout(timer);
      timer = null;
      activeUses += 1;
      try {
        return await work(await startedThread());
      } finally {
        activeUses -= 1;
        if (activeUses === 0 && running !== null) {
          timer = setTimeout(() => void endThread(), idleMs);
          timer.unref();
        }
      }
    },
    close() {
      closed = true;
      return endThread();
    },
  };
}

/**
 * Each thread strips types with Node's own WebAssembly, and V8 shares compiled wrappers among threads. V8 13.6 (Node
 * 24) frees one twice if a thread uses it while another ends a collection of dead WebAssembly code, and aborts the
 * process with `Check failed: jit_page.has_value()`. Without collections the code stays until the process ends; figures
 * are in docs/decisions/embedded-store.md.
 *
 * `npm start` bounds the young generation of the main thread by `--max-semi-space-size`, which V8 prefers to a thread's
 * own limits. The main thread keeps its bound after the flag is reset.
 */
export function setThreadFlags(): void {
  setFlagsFromString('--no-wasm-code-gc');
  setFlagsFromString('--max-semi-space-size=0');
}

const LOW_PRIORITY_NICENESS = 10;

/**
 * The index builder's garbage is short-lived. Without limits its heap grows to 130 MB before V8 collects it. With them
 * the thread uses at most 70 MB, most of it V8's and Node's own.
 */
export const INDEX_THREAD_LIMITS = { maxYoungGenerationSizeMb: 8, maxOldGenerationSizeMb: 256 } as const;

/**
 * Lowers the priority of the calling thread on Linux, where each thread has its own niceness. Does nothing on other
 * systems. Never throws.
 */
export function lowerThreadPriority(): void {
  if (process.platform !== 'linux') return;
  try {
    setPriority(0, LOW_PRIORITY_NICENESS);
  } catch {
    // Without the permission, the index is built at normal priority.
  }
}

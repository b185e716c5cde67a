/** Threads of the store: the flags of V8 that each needs, a thread that is started on demand, and one of low priority. */

import { setPriority } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import { StoreError } from './error.ts';

export interface Thread {
  /** Resolves once it has ended although nobody closed it. */
  readonly failed: Promise<unknown>;
  close(): Promise<void>;
}

export interface OnDemandThread<T extends Thread> {
  /** Rejects where the thread cannot be started, or is closed for good, or as the work does. */
  use<R>(work: (thread: T) => Promise<R>): Promise<R>;
  /** For good: a thread that were started after it would keep the process alive. */
  close(): Promise<void>;
}

export function createOnDemandThread<T extends Thread>(start: () => Promise<T>, idleMs: number): OnDemandThread<T> {
  let running: Promise<T> | null = null;
  let users = 0;
  let closed = false;
  let timer: NodeJS.Timeout | null = null;

  function thread(): Promise<T> {
    if (running !== null) return running;
    const starting = start();
    running = starting;
    // One that could not start, or has died, is started anew when it is next needed.
    const forget = () => {
      if (running === starting) running = null;
    };
    starting.then(({ failed }) => failed.then(forget), forget);
    return starting;
  }

  async function end(): Promise<void> {
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
      users += 1;
      try {
        return await work(await thread());
      } finally {
        users -= 1;
        if (users === 0 && running !== null) {
          timer = setTimeout(() => void end(), idleMs);
          timer.unref();
        }
      }
    },
    close() {
      closed = true;
      return end();
    },
  };
}

/**
 * Each thread strips types with WebAssembly of Node's own, and V8 shares compiled wrappers among threads. V8 13.6 (Node 24)
 * frees one twice where a thread takes it while another ends a collection of dead WebAssembly code, and aborts the process
 * with `Check failed: jit_page.has_value()`. Without collections the code stays until the process ends; figures in
 * docs/decisions/embedded-store.md.
 *
 * `npm start` bounds the main thread's young generation by `--max-semi-space-size`, which V8 puts above what a thread is given
 * for itself. The main thread keeps its bound when the flag is taken back.
 */
export function setThreadFlags(): void {
  setFlagsFromString('--no-wasm-code-gc');
  setFlagsFromString('--max-semi-space-size=0');
}

const NICENESS = 10;

/**
 * What it makes is soon done with. Without bounds its heap grows to 130 MB before V8 finds that worth a collection; with
 * them it takes 70 MB at most, most of it V8's and Node's own.
 */
export const INDEX_THREAD_MEMORY = { maxYoungGenerationSizeMb: 8, maxOldGenerationSizeMb: 256 } as const;

/** For the thread that calls it, on Linux, where threads have a niceness of their own; elsewhere nothing happens. Never throws. */
export function lowerThreadPriority(): void {
  if (process.platform !== 'linux') return;
  try {
    setPriority(0, NICENESS);
  } catch {
    // Not allowed here: the index is made the same, only less politely.
  }
}

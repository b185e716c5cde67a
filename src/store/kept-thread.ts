/** A thread that is started when it is needed, kept while it is used, and ended when it has not been for a while. */
import { StoreError } from './error.ts';

export interface Thread {
  /** Resolves once it has ended although nobody closed it. */
  readonly failed: Promise<unknown>;
  close(): Promise<void>;
}

export interface KeptThread<T extends Thread> {
  /** Rejects where the thread cannot be started, or is closed for good, or as the work does. */
  use<R>(work: (thread: T) => Promise<R>): Promise<R>;
  /** For good: a thread that were started after it would keep the process alive. */
  close(): Promise<void>;
}

export function keptThread<T extends Thread>(start: () => Promise<T>, idleMs: number): KeptThread<T> {
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

import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

export interface ResettingPeer {
  connect(port: number): Promise<void>;
  resetNow(): void;
  close(): Promise<void>;
}

export function startResettingPeer(): ResettingPeer {
  const signal = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(new URL('resetting-peer-thread.ts', import.meta.url), { workerData: { signal } });
  return {
    async connect(port) {
      worker.postMessage(port);
      await once(worker, 'message');
    },
    resetNow() {
      Atomics.store(signal, 0, 1);
      Atomics.notify(signal, 0);
      while (Atomics.load(signal, 0) === 1) Atomics.wait(signal, 0, 1);
    },
    async close() {
      await worker.terminate();
    },
  };
}

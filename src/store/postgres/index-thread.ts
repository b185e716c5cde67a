/**
 * The index thread as its owner uses it: it runs one step at a time on its own connection, so that reading and building
 * segments does not block the process.
 */
import { Worker } from 'node:worker_threads';
import { StoreError } from '../error.ts';
import type { IndexProgress, IndexStep } from '../search/index-step.ts';
import { INDEX_THREAD_MEMORY, setThreadFlags } from '../threads.ts';
import type { PostgresSetting } from './connection.ts';

export interface IndexThreadData {
  readonly setting: PostgresSetting;
  readonly application: string;
}

export type IndexReply =
  | { readonly ok: true; readonly progress: IndexProgress }
  | { readonly ok: false; readonly fault: string };

export interface IndexThread {
  step(step: IndexStep): Promise<IndexProgress>;
  readonly failed: Promise<unknown>;
  close(): Promise<void>;
}

export function startIndexThread(data: IndexThreadData): IndexThread {
  setThreadFlags();
  const worker = new Worker(new URL('./index-worker.ts', import.meta.url), {
    workerData: data,
    name: 'postrider-index',
    resourceLimits: INDEX_THREAD_MEMORY,
  });
  worker.unref();
  const waiting: PromiseWithResolvers<IndexProgress>[] = [];
  let ended: StoreError | null = null;
  const exited = Promise.withResolvers<StoreError>();
  const fail = (error: StoreError) => {
    ended ??= error;
    for (const one of waiting.splice(0)) one.reject(error);
    exited.resolve(ended);
  };
  worker.on('message', (reply: IndexReply) => {
    const one = waiting.shift();
    if (reply.ok) one?.resolve(reply.progress);
    else one?.reject(new StoreError(reply.fault));
  });
  worker.on('error', (error) => fail(new StoreError(`the index's thread failed: ${describe(error)}`)));
  worker.on('exit', () => fail(new StoreError("the index's thread has ended.")));
  return {
    step(step) {
      if (ended !== null) return Promise.reject(ended);
      const one = Promise.withResolvers<IndexProgress>();
      waiting.push(one);
      worker.postMessage(step);
      return one.promise;
    },
    failed: exited.promise,
    async close() {
      if (ended === null) worker.postMessage(null);
      await exited.promise;
    },
  };
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

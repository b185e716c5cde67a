/**
 * Starts and controls the index thread. The thread runs one index step at a time on a separate connection, so that
 * reading messages and building segments do not block the main thread.
 */
import { Worker } from 'node:worker_threads';
import type { PostgresSetting } from '../../config/settings.ts';
import { StoreError } from '../error.ts';
import type { IndexProgress, IndexStep } from '../search/index-step.ts';
import { INDEX_THREAD_LIMITS, setThreadFlags } from '../threads.ts';

export interface IndexThreadOptions {
  readonly setting: PostgresSetting;
  readonly application: string;
}

export type IndexReply =
  | { readonly ok: true; readonly progress: IndexProgress }
  | { readonly ok: false; readonly fault: string };

export interface IndexThread {
  runStep(step: IndexStep): Promise<IndexProgress>;
  readonly failed: Promise<unknown>;
  close(): Promise<void>;
}

export function startIndexThread(data: IndexThreadOptions): IndexThread {
  setThreadFlags();
  const worker = new Worker(new URL('./index-worker.ts', import.meta.url), {
    workerData: data,
    name: 'postrider-index',
    resourceLimits: INDEX_THREAD_LIMITS,
  });
  worker.unref();
  const pendingSteps: PromiseWithResolvers<IndexProgress>[] = [];
  let endError: StoreError | null = null;
  const exitSignal = Promise.withResolvers<StoreError>();
  const endWithError = (error: StoreError) => {
    endError ??= error;
    for (const pendingStep of pendingSteps.splice(0)) pendingStep.reject(error);
    exitSignal.resolve(endError);
  };
  worker.on('message', (reply: IndexReply) => {
    const pendingStep = pendingSteps.shift();
    if (reply.ok) pendingStep?.resolve(reply.progress);
    else pendingStep?.reject(new StoreError(reply.fault));
  });
  worker.on('error', (error) => endWithError(new StoreError(`the index thread failed: ${getErrorMessage(error)}`)));
  worker.on('exit', () =>
    endWithError(new StoreError('the index thread has ended. The next index step starts a new thread.')),
  );
  return {
    runStep(step) {
      if (endError !== null) return Promise.reject(endError);
      const pendingStep = Promise.withResolvers<IndexProgress>();
      pendingSteps.push(pendingStep);
      worker.postMessage(step);
      return pendingStep.promise;
    },
    failed: exitSignal.promise,
    async close() {
      if (endError === null) worker.postMessage(null);
      await exitSignal.promise;
    },
  };
}

function getErrorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

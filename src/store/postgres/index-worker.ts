/**
 * This file is the entry module of the index thread. index-thread.ts starts the thread with this module; no module
 * imports it.
 */
import { parentPort, workerData } from 'node:worker_threads';
import type { IndexStep } from '../search/index-step.ts';
import { lowerThreadPriority } from '../threads.ts';
import { createPool } from './database.ts';
import type { IndexReply, IndexThreadOptions } from './index-thread.ts';
import { runIndexStep } from './search.ts';

/** The time limit of a statement is long because the thread has low priority. */
const STATEMENT_TIMEOUT_MS = 120_000;

if (parentPort !== null) {
  const port = parentPort;
  const { setting, application } = workerData as IndexThreadOptions;
  lowerThreadPriority();
  const pool = createPool({ setting, application, random: Math.random, statementTimeoutMs: STATEMENT_TIMEOUT_MS });
  port.on('message', (step: IndexStep | null) => {
    if (step === null) {
      void pool.close().then(() => port.close());
      return;
    }
    runIndexStep(pool, step).then(
      (progress) => port.postMessage({ ok: true, progress } satisfies IndexReply),
      (error: unknown) =>
        port.postMessage({
          ok: false,
          fault: error instanceof Error ? error.message : String(error),
        } satisfies IndexReply),
    );
  });
}

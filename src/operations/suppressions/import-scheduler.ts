/**
 * Schedules the batches of imports into suppression lists, so that at least half of the store's time remains for
 * requests and deliveries. While a node accepts messages, batches are small, and each batch is followed by a pause that
 * is as long as the batch. A request waits for at most one batch. While no message is accepted, or no node is alive,
 * batches are large and no pause follows a batch.
 */
import type { Clock } from '../../clock.ts';
import type { OperatorStore } from '../../store/contract.ts';

/** The number of rows of one batch while no message is accepted. */
const MAX_BATCH_ROWS = 5_000;
/** The number of rows of one batch while messages are accepted. */
const MIN_BATCH_ROWS = 500;
/** If no message was accepted during this time, no message is expected during the next batch. */
const IDLE_MS = 1_000;

/** The imports of this process. Their batches run one at a time. */
export interface ImportScheduler {
  /** Returns the maximum number of rows of the next batch. */
  getMaxBatchRows(): number;
  /**
   * Runs one batch after the batches that were requested earlier. While messages are accepted, a pause follows the
   * batch. `stop` ends the pause.
   */
  runBatch<T>(add: () => Promise<T>): Promise<T>;
  /** Returns true after `stop` was called. No import and no batch may begin after that call. */
  isStopping(): boolean;
  /** Runs an import. `stop` waits for the end of the import. */
  runImport<T>(work: () => Promise<T>): Promise<T>;
  /** Ends each import after its current batch. Resolves when all imports have ended. */
  stop(): Promise<void>;
}

/** Creates the scheduler that runs the imports of this process into `store`. */
export function createImportScheduler(
  store: Pick<OperatorStore, 'findNewestId' | 'listNodes'>,
  clock: Clock,
): ImportScheduler {
  const runningImports = new Set<Promise<unknown>>();
  let nextBatchRows = MIN_BATCH_ROWS;
  let newestId: string | null | undefined;
  let newestChangedAt = 0;
  let lastBatch: Promise<unknown> = Promise.resolve();
  let isStopRequested = false;
  let endPause: () => void = () => undefined;

  async function addBatch<T>(add: () => Promise<T>): Promise<T> {
    const startedAt = performance.now();
    const result = await add();
    const durationMs = performance.now() - startedAt;
    nextBatchRows = (await isAccepting()) ? MIN_BATCH_ROWS : MAX_BATCH_ROWS;
    if (nextBatchRows === MIN_BATCH_ROWS && !isStopRequested) await pause(durationMs);
    return result;
  }

  /** Returns true if messages are accepted, or if that is unknown because the store does not answer. */
  async function isAccepting(): Promise<boolean> {
    const id = await store.findNewestId().catch(() => undefined);
    const now = clock.now();
    if (id === undefined || id !== newestId) newestChangedAt = now;
    newestId = id;
    if (now - newestChangedAt >= IDLE_MS) return false;
    const nodes = await store.listNodes(now).catch(() => null);
    return nodes === null || nodes.some(({ aliveUntil }) => aliveUntil > now);
  }

  function pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancelTimer = clock.after(Math.ceil(ms), resolve);
      endPause = () => {
        cancelTimer();
        resolve();
      };
    });
  }

  return {
    getMaxBatchRows: () => nextBatchRows,
    runBatch(add) {
      const batch = lastBatch.then(() => addBatch(add));
      lastBatch = batch.catch(() => undefined);
      return batch;
    },
    isStopping: () => isStopRequested,
    async runImport(work) {
      const importPromise = work();
      const importEnd = importPromise.catch(() => undefined);
      runningImports.add(importEnd);
      void importEnd.then(() => runningImports.delete(importEnd));
      return importPromise;
    },
    async stop() {
      isStopRequested = true;
      endPause();
      await Promise.all(runningImports);
    },
  };
}

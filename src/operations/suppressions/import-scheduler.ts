/**
 * The pace of imports into suppression lists, so that they leave room for mail: while a node accepts any, small batches with a rest
 * after each as long as it took, so that a request waits for no more than one of them and has the store for itself half of the
 * time; while none is accepted, or no node is alive, large batches without rests.
 */
import type { Clock } from '../../clock.ts';
import type { OperatorStore } from '../../store/contract.ts';

/** Rows of one batch while no mail is accepted. */
const MAX_ROWS = 5_000;
/** Rows of one batch while mail is accepted. */
const MIN_ROWS = 500;
/** So long after the last mail request none is expected. */
const QUIET_MS = 1_000;

/** The imports of this process. They take turns: side by side they would leave the store no rest. */
export interface ImportScheduler {
  /** How many rows the next batch may have. */
  batchRows(): number;
  /** Runs one batch behind those asked for before, and rests after it where mail is accepted, until `stop` at most. */
  runBatch<T>(add: () => Promise<T>): Promise<T>;
  /** True from `stop` on: no import begins, and none begins another batch. */
  isStopping(): boolean;
  /** Runs an import. `stop` waits for it. */
  runImport<T>(work: () => Promise<T>): Promise<T>;
  /** Ends the imports that run after their batch under way; resolves when they have ended. */
  stop(): Promise<void>;
}

/** The imports of a process into this store. */
export function createImportScheduler(
  store: Pick<OperatorStore, 'newestId' | 'listNodes'>,
  clock: Clock,
): ImportScheduler {
  const running = new Set<Promise<unknown>>();
  let rows = MIN_ROWS;
  let newest: string | null | undefined;
  let newestSince = 0;
  let last: Promise<unknown> = Promise.resolve();
  let stopping = false;
  let wake: () => void = () => undefined;

  async function alone<T>(add: () => Promise<T>): Promise<T> {
    const begun = performance.now();
    const result = await add();
    const tookMs = performance.now() - begun;
    rows = (await isAccepting()) ? MIN_ROWS : MAX_ROWS;
    if (rows === MIN_ROWS && !stopping) await rest(tookMs);
    return result;
  }

  /** What was added counts; a store that is away says so to the next batch. Where it cannot say, mail may be accepted. */
  async function isAccepting(): Promise<boolean> {
    const id = await store.newestId().catch(() => undefined);
    const now = clock.now();
    if (id === undefined || id !== newest) newestSince = now;
    newest = id;
    if (now - newestSince >= QUIET_MS) return false;
    const nodes = await store.listNodes(now).catch(() => null);
    return nodes === null || nodes.some(({ aliveUntil }) => aliveUntil > now);
  }

  function rest(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = clock.after(Math.ceil(ms), resolve);
      wake = () => {
        cancel();
        resolve();
      };
    });
  }

  return {
    batchRows: () => rows,
    runBatch(add) {
      const step = last.then(() => alone(add));
      last = step.catch(() => undefined);
      return step;
    },
    isStopping: () => stopping,
    async runImport(work) {
      const done = work();
      const ended = done.catch(() => undefined);
      running.add(ended);
      void ended.then(() => running.delete(ended));
      return done;
    },
    async stop() {
      stopping = true;
      wake();
      await Promise.all(running);
    },
  };
}

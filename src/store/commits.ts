/**
 * Group commit: items that arrive during a commit are stored by the next one, without a timer; two batches run at a
 * time, so that the store commits one while the process handles the results of the other. A batch that fails is
 * committed again in parts. Health: a failed commit makes the store unhealthy at once, and a small synced write probes
 * it, also when nothing was committed for a second.
 */
import type { Clock } from '../clock.ts';
import type { EventOf, Publish } from '../model/events.ts';
import type { Store } from './contract.ts';

const MAX_CONCURRENT_BATCHES = 2;
/**
 * Of the commit of a failed batch in parts. The failures that isolate one item are in addition. Beyond a limit the rest
 * is rejected.
 */
const MAX_SPLIT_COMMIT_MS = 2_000;
const MAX_CONSECUTIVE_FAILURES = 8;
/**
 * With this many pending items a batch starts immediately, so that the store commits while the event loop still turns.
 */
const MIN_ITEMS_TO_FLUSH = 16;

export interface GroupCommit<Item, Answer> {
  submit(item: Item): Promise<Answer>;
  getOldestWaitMs(): number;
}

interface PendingItem<Item, Answer> {
  readonly item: Item;
  readonly submittedAt: number;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Creates a group commit. Calls `onCommit` with the size and duration of each commit. `now` returns the time in
 * milliseconds; it may use any clock.
 */
export function createGroupCommit<Item, Answer>(
  commit: (batch: readonly Item[]) => Promise<readonly Answer[]>,
  options: {
    readonly maxBatch: number;
    readonly now: () => number;
    readonly onCommit?: (size: number, tookMs: number) => void;
  },
): GroupCommit<Item, Answer> {
  let pendingItems: PendingItem<Item, Answer>[] = [];
  let runningBatchCount = 0;
  let isFlushScheduled = false;

  function scheduleFlush(): void {
    if (isFlushScheduled || runningBatchCount >= MAX_CONCURRENT_BATCHES || pendingItems.length === 0) return;
    isFlushScheduled = true;
    setImmediate(flush);
  }

  function flush(): void {
    isFlushScheduled = false;
    if (runningBatchCount >= MAX_CONCURRENT_BATCHES || pendingItems.length === 0) return;
    const batch = pendingItems.length <= options.maxBatch ? pendingItems : pendingItems.slice(0, options.maxBatch);
    pendingItems = batch === pendingItems ? [] : pendingItems.slice(options.maxBatch);
    runningBatchCount += 1;
    const startedAt = options.now();
    commit(batch.map(({ item }) => item)).then(
      (answers) => {
        options.onCommit?.(batch.length, options.now() - startedAt);
        finishBatch();
        resolveAll(batch, answers);
      },
      (error: unknown) => {
        if (batch.length > 1) return void commitInParts(batch, error).finally(() => finishBatch());
        finishBatch();
        rejectAll(batch, error);
      },
    );
    scheduleFlush();
  }

  function resolveAll(batch: readonly PendingItem<Item, Answer>[], answers: readonly Answer[]): void {
    for (const [index, { resolve, reject }] of batch.entries()) {
      const result = answers[index];
      if (result === undefined) reject(new Error('the store returned no result for the item'));
      else resolve(result);
    }
  }

  function rejectAll(batch: readonly PendingItem<Item, Answer>[], error: unknown): void {
    for (const { reject } of batch) reject(error);
  }

  /** Halves a failed batch until each item that cannot be committed is isolated, within the limits. */
  async function commitInParts(batch: readonly PendingItem<Item, Answer>[], fault: unknown): Promise<void> {
    const deadline = options.now() + MAX_SPLIT_COMMIT_MS;
    const maxFailureCount = Math.ceil(Math.log2(batch.length)) + MAX_CONSECUTIVE_FAILURES;
    let failureCount = 0;
    const parts: (readonly PendingItem<Item, Answer>[])[] = [];
    const pushHalves = (part: readonly PendingItem<Item, Answer>[]): void => {
      const middleIndex = Math.ceil(part.length / 2);
      parts.push(part.slice(middleIndex), part.slice(0, middleIndex));
    };
    let lastError = fault;
    pushHalves(batch);
    for (let part = parts.pop(); part !== undefined; part = parts.pop()) {
      if (failureCount >= maxFailureCount || options.now() > deadline) {
        rejectAll(part, lastError);
        continue;
      }
      try {
        resolveAll(part, await commit(part.map(({ item }) => item)));
        failureCount = 0;
      } catch (error) {
        lastError = error;
        failureCount += 1;
        if (part.length === 1) rejectAll(part, error);
        else pushHalves(part);
      }
    }
  }

  function finishBatch(): void {
    runningBatchCount -= 1;
    scheduleFlush();
  }

  return {
    submit(item) {
      return new Promise<Answer>((resolve, reject) => {
        pendingItems.push({ item, submittedAt: options.now(), resolve, reject });
        if (pendingItems.length >= MIN_ITEMS_TO_FLUSH) flush();
        else scheduleFlush();
      });
    },
    getOldestWaitMs() {
      const oldestItem = pendingItems[0];
      return oldestItem === undefined ? 0 : options.now() - oldestItem.submittedAt;
    },
  };
}

export function publishCommits(
  kind: EventOf<'store.committed'>['kind'],
  clock: Clock,
  publish: Publish,
): (size: number, tookMs: number) => void {
  return (size, tookMs) => publish({ type: 'store.committed', at: clock.now(), kind, size, tookMs });
}

const MAX_HEALTH_AGE_MS = 1_000;

export interface StoreHealth {
  /**
   * Null while the store can commit; otherwise the reason, without internal details. Starts a probe if the last result
   * is too old.
   */
  findFault(): string | null;
  /** Returns a function that runs `call` and updates the health from the result of the call. */
  observeCall<Args extends readonly unknown[], Result>(
    call: (...args: Args) => Promise<Result>,
  ): (...args: Args) => Promise<Result>;
  stop(): void;
}

/** No probe runs until `findFault` is called or an observed call fails. */
export function watchHealth(
  store: Pick<Store, 'probe'>,
  clock: Clock,
  knownFault: () => string | null = () => null,
): StoreHealth {
  let isFailing = false;
  let checkedAt = clock.now();
  let isProbing = false;
  let isStopped = false;
  let cancelProbe: () => void = () => undefined;

  const recordResult = (failed: boolean) => {
    isFailing = failed;
    checkedAt = clock.now();
    cancelProbe();
    if (failed && !isStopped) cancelProbe = clock.after(MAX_HEALTH_AGE_MS, probeStore);
  };

  function probeStore(): void {
    if (isProbing || isStopped) return;
    isProbing = true;
    store.probe().then(
      () => finishProbe(false),
      () => finishProbe(true),
    );
  }

  function finishProbe(failed: boolean): void {
    isProbing = false;
    recordResult(failed);
  }

  return {
    findFault() {
      // The absolute value of the difference is used, because the clock may be set back.
      if (Math.abs(clock.now() - checkedAt) > MAX_HEALTH_AGE_MS) probeStore();
      return knownFault() ?? (isFailing ? 'the store cannot commit' : null);
    },
    observeCall(call) {
      return async (...args) => {
        try {
          const result = await call(...args);
          isFailing = false;
          checkedAt = clock.now();
          return result;
        } catch (error) {
          recordResult(true);
          throw error;
        }
      };
    },
    stop() {
      isStopped = true;
      cancelProbe();
    },
  };
}

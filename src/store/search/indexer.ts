/**
 * Maintains the search index of a store in rounds. A round runs one step after another, with pauses. At high load, a
 * round ends after a step if fewer than 100,000 messages are not indexed. A failed step is reported and repeated in the
 * next round.
 *
 * A message is indexed only when all earlier messages are committed: a round indexes messages up to the newest message
 * that the previous round found. If nodes share the store, a round also excludes the messages of the last ten seconds.
 */
import type { Clock } from '../../clock.ts';
import type { IndexStore } from '../contract.ts';
import { getMinIdAt } from '../rules/messages.ts';
import type { IndexProgress } from './index-step.ts';

const ROUND_INTERVAL_MS = 5_000;
/** The age after which a message of another node is expected to be committed. */
const COMMIT_DELAY_MS = 10_000;
/**
 * Minimum number of messages for a new segment, at low and at high load. A search reads every message that is not
 * indexed.
 */
const MIN_SEGMENT_MESSAGES = 2_048;
const MIN_SEGMENT_MESSAGES_BUSY = 100_000;
/** Maximum acceptance rate at low load. At a higher rate the acceptance of messages has priority over the index. */
const MAX_LOW_LOAD_PER_SECOND = 500;
/** Interval at which an idle index checks for segments to verify. */
const IDLE_CHECK_INTERVAL_MS = 300_000;
const MIN_PAUSE_MS = 20;

export interface IndexerOptions {
  readonly clock: Clock;
  /** Milliseconds since an arbitrary origin. */
  readonly monotonic: () => number;
  /** True if other nodes accept messages into the same store. */
  readonly sharesStore: boolean;
  readonly store: IndexStore;
  readonly reportFailure: (operation: string, error: unknown) => void;
}

/** Starts the rounds of index maintenance. The returned function stops the rounds after the current step. */
export function startIndexer({
  clock,
  monotonic,
  sharesStore,
  store,
  reportFailure,
}: IndexerOptions): () => Promise<void> {
  let isStopped = false;
  let cancelTimer: () => void = () => undefined;
  let roundInProgress = Promise.resolve();
  let endPause: () => void = () => undefined;
  /** The id of the newest message that the previous round found. */
  let previousNewestId: string | null = null;
  let idleState: { readonly horizon: string; readonly at: number } | null = null;
  let lastStep: { readonly unindexedCount: number; readonly at: number } | null = null;
  let isLoadLow = true;

  async function runRound(): Promise<void> {
    const newestId = await store.findNewestId();
    const horizon = getHorizon(previousNewestId);
    previousNewestId = newestId;
    if (horizon === null) return;
    if (idleState !== null && idleState.horizon === horizon && monotonic() - idleState.at < IDLE_CHECK_INTERVAL_MS)
      return;
    idleState = null;
    for (let isFirstStep = true; !isStopped; isFirstStep = false) {
      const startedAt = monotonic();
      const progress = await store.indexMessages({
        horizon,
        minSegmentMessages: isLoadLow ? MIN_SEGMENT_MESSAGES : MIN_SEGMENT_MESSAGES_BUSY,
        now: clock.now(),
      });
      if (isFirstStep) isLoadLow = hasLowLoad(progress, startedAt);
      lastStep = { unindexedCount: progress.unindexedCount, at: startedAt };
      if (!progress.hasChanged) {
        idleState = { horizon, at: monotonic() };
        return;
      }
      if (!isLoadLow && progress.unindexedCount < MIN_SEGMENT_MESSAGES_BUSY) return;
      // The pause has the same duration as the step.
      await waitForPause(Math.max(MIN_PAUSE_MS, monotonic() - startedAt));
    }
  }

  function getHorizon(id: string | null): string | null {
    if (id === null || !sharesStore) return id;
    const committedHorizon = getMinIdAt(clock.now() - COMMIT_DELAY_MS);
    return id < committedHorizon ? id : committedHorizon;
  }

  function hasLowLoad({ unindexedCount, indexedCount }: IndexProgress, at: number): boolean {
    if (lastStep === null) return true;
    const perSecond =
      ((unindexedCount + indexedCount - lastStep.unindexedCount) * 1_000) / Math.max(1, at - lastStep.at);
    return perSecond < MAX_LOW_LOAD_PER_SECOND;
  }

  function waitForPause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      endPause = resolve;
      cancelTimer = clock.after(ms, resolve);
    });
  }

  const startRound = () => {
    roundInProgress = runRound()
      .catch((error: unknown) => reportFailure('index', error))
      .then(() => {
        if (!isStopped) cancelTimer = clock.after(ROUND_INTERVAL_MS, startRound);
      });
  };
  startRound();
  return async () => {
    isStopped = true;
    cancelTimer();
    endPause();
    await roundInProgress;
  };
}

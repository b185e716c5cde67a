/**
 * Maintains the search index of a store. While few messages are accepted, it runs one step at a time with pauses; when
 * many messages wait to be indexed, it runs at any load. A failed step is reported and retried in the next round.
 *
 * A message is indexed some seconds after its acceptance, when earlier messages have been committed too. The limit is
 * the newest message of the previous round; where nodes share the store, it is also their common time minus some
 * seconds.
 */
import type { Clock } from '../../clock.ts';
import type { IndexStore } from '../contract.ts';
import { minIdAt } from '../rules/messages.ts';
import type { IndexProgress } from './index-step.ts';

const ROUND_MS = 5_000;
const COMMIT_DELAY_MS = 10_000;
/** Messages that are enough for a segment, at low and at high load. A search reads each unindexed message. */
const MIN_MESSAGES = 2_048;
const MIN_MESSAGES_BUSY = 100_000;
/** Above this acceptance rate the load is high, and accepting has priority. */
const MAX_QUIET_PER_S = 500;
/** How often an idle index checks for segments to verify. */
const IDLE_RECHECK_MS = 300_000;
const MIN_PAUSE_MS = 20;

export interface IndexerParts {
  readonly clock: Clock;
  /** In ms. */
  readonly monotonic: () => number;
  /** True if other nodes accept messages into the same store. */
  readonly shared: boolean;
  readonly store: IndexStore;
  readonly failed: (what: string, error: unknown) => void;
}

/** Starts the rounds. The returned function stops them after the current step. */
export function startIndexer({ clock, monotonic, shared, store, failed }: IndexerParts): () => Promise<void> {
  let stopped = false;
  let cancel: () => void = () => undefined;
  let running = Promise.resolve();
  let wake: () => void = () => undefined;
  /** The newest message of the previous round. */
  let previousNewest: string | null = null;
  let idle: { readonly horizon: string; readonly at: number } | null = null;
  let last: { readonly waiting: number; readonly at: number } | null = null;
  let quiet = true;

  async function round(): Promise<void> {
    const newest = await store.newestId();
    const horizon = horizonOf(previousNewest);
    previousNewest = newest;
    if (horizon === null) return;
    if (idle !== null && idle.horizon === horizon && monotonic() - idle.at < IDLE_RECHECK_MS) return;
    idle = null;
    for (let first = true; !stopped; first = false) {
      const began = monotonic();
      const progress = await store.indexMessages({
        horizon,
        minSegmentMessages: quiet ? MIN_MESSAGES : MIN_MESSAGES_BUSY,
        now: clock.now(),
      });
      if (first) quiet = isQuiet(progress, began);
      last = { waiting: progress.waiting, at: began };
      if (!progress.worked) {
        idle = { horizon, at: monotonic() };
        return;
      }
      if (!quiet && progress.waiting < MIN_MESSAGES_BUSY) return;
      // Pauses as long as it has worked.
      await pause(Math.max(MIN_PAUSE_MS, monotonic() - began));
    }
  }

  function horizonOf(id: string | null): string | null {
    if (id === null || !shared) return id;
    const settled = minIdAt(clock.now() - COMMIT_DELAY_MS);
    return id < settled ? id : settled;
  }

  function isQuiet({ waiting, newer }: IndexProgress, at: number): boolean {
    if (last === null) return true;
    const perSecond = ((waiting + newer - last.waiting) * 1_000) / Math.max(1, at - last.at);
    return perSecond < MAX_QUIET_PER_S;
  }

  function pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      wake = resolve;
      cancel = clock.after(ms, resolve);
    });
  }

  const begin = () => {
    running = round()
      .catch((error: unknown) => failed('index', error))
      .then(() => {
        if (!stopped) cancel = clock.after(ROUND_MS, begin);
      });
  };
  begin();
  return async () => {
    stopped = true;
    cancel();
    wake();
    await running;
  };
}

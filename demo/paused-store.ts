/**
 * The store for the running service while the history is written: queries for due and expired messages return nothing, so that the
 * service does not process the history. Messages of a visitor are delivered normally.
 */
import type { Store } from '../src/store/contract.ts';

export interface PausedStore {
  readonly store: Store;
  /** Ends this: from now on queries return every message. */
  resume(): void;
}

export function pauseStore(store: Store): PausedStore {
  let isOpen = false;
  const whenOpen = <A extends readonly unknown[], T>(work: (...args: A) => Promise<T>, nothing: T) => {
    return (...args: A): Promise<T> => (isOpen ? work(...args) : Promise.resolve(nothing));
  };
  return {
    store: {
      ...store,
      claim: whenOpen(store.claim, { messages: [], suppressed: [], hasMore: false }),
      recover: whenOpen(store.recover, 0),
      expire: whenOpen(store.expire, []),
      resetExcessiveDueTimes: whenOpen(store.resetExcessiveDueTimes, 0),
      purgeBodiesAndKeys: whenOpen(store.purgeBodiesAndKeys, 0),
      purgeFeedback: whenOpen(store.purgeFeedback, 0),
      purgeTraffic: whenOpen(store.purgeTraffic, 0),
    },
    resume() {
      isOpen = true;
    },
  };
}

/**
 * Creates the store for the running service while the history is written. Queries for due and expired messages return
 * nothing, so the service does not process the history. Messages of a visitor are delivered as usual.
 */
import type { Store } from '../src/store/contract.ts';

export interface PausedStore {
  readonly store: Store;
  /** Ends the pause. Queries then return all messages. */
  resume(): void;
}

export function pauseStore(store: Store): PausedStore {
  let isResumed = false;
  const whenResumed = <A extends readonly unknown[], T>(operation: (...args: A) => Promise<T>, emptyResult: T) => {
    return (...args: A): Promise<T> => (isResumed ? operation(...args) : Promise.resolve(emptyResult));
  };
  return {
    store: {
      ...store,
      claim: whenResumed(store.claim, { messages: [], suppressed: [], hasMore: false }),
      recover: whenResumed(store.recover, 0),
      expire: whenResumed(store.expire, []),
      resetExcessiveDueTimes: whenResumed(store.resetExcessiveDueTimes, 0),
      purgeBodiesAndKeys: whenResumed(store.purgeBodiesAndKeys, 0),
      purgeFeedback: whenResumed(store.purgeFeedback, 0),
      purgeTraffic: whenResumed(store.purgeTraffic, 0),
    },
    resume() {
      isResumed = true;
    },
  };
}

/**
 * Creates the store for the running service while the history is written. Queries for due and expired messages and for
 * webhooks return nothing, so the service does not process the history. Messages of a visitor are delivered as usual.
 */
import type { Store } from '../src/store/contract.ts';

export interface PausedStore {
  readonly store: Store;
  /** Ends the pause. After this call the queries return all messages. */
  resume(): void;
}

export function createPausedStore(store: Store): PausedStore {
  let isResumed = false;
  const guardUntilResumed = <A extends readonly unknown[], T>(
    operation: (...args: A) => Promise<T>,
    emptyResult: T,
  ) => {
    return (...args: A): Promise<T> => (isResumed ? operation(...args) : Promise.resolve(emptyResult));
  };
  return {
    store: {
      ...store,
      fanOutEvents: guardUntilResumed(store.fanOutEvents, { events: 0, deliveries: 0, hasMore: false }),
      claimDeliveries: guardUntilResumed(store.claimDeliveries, { deliveries: [], next: null }),
      claim: guardUntilResumed(store.claim, { messages: [], suppressed: [], hasMore: false }),
      recover: guardUntilResumed(store.recover, 0),
      expire: guardUntilResumed(store.expire, []),
      resetExcessiveDueTimes: guardUntilResumed(store.resetExcessiveDueTimes, 0),
      purgeBodiesAndKeys: guardUntilResumed(store.purgeBodiesAndKeys, 0),
      purgeFeedback: guardUntilResumed(store.purgeFeedback, 0),
      purgeTraffic: guardUntilResumed(store.purgeTraffic, 0),
    },
    resume() {
      isResumed = true;
    },
  };
}

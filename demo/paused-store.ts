/**
 * The store as the running service sees it while the past is being written: what looks for due or overdue mail finds nothing,
 * so that nobody but the past's own writer touches the past. What a visitor sends meanwhile goes its ordinary way.
 */
import type { Store } from '../src/store/contract.ts';

export interface PausedStore {
  readonly store: Store;
  /** From now on the service sees everything. */
  resume(): void;
}

export function pauseStore(store: Store): PausedStore {
  let isOpen = false;
  const unless = <A extends readonly unknown[], T>(work: (...args: A) => Promise<T>, nothing: T) => {
    return (...args: A): Promise<T> => (isOpen ? work(...args) : Promise.resolve(nothing));
  };
  return {
    store: {
      ...store,
      claim: unless(store.claim, { mails: [], suppressed: [], more: false }),
      recover: unless(store.recover, 0),
      expire: unless(store.expire, []),
      resetDistantDueTimes: unless(store.resetDistantDueTimes, 0),
      purgeBodiesAndKeys: unless(store.purgeBodiesAndKeys, 0),
      purgeFeedback: unless(store.purgeFeedback, 0),
      purgeTraffic: unless(store.purgeTraffic, 0),
    },
    resume() {
      isOpen = true;
    },
  };
}

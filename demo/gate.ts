/**
 * The store as the running service sees it while the past is being written: what looks for due or overdue mail finds nothing,
 * so that nobody but the past's own writer touches the past. What a visitor sends meanwhile goes its ordinary way.
 */
import type { Store } from '../src/store/contract.ts';

export interface Gate {
  readonly store: Store;
  /** From now on the service sees everything. */
  open(): void;
}

export function gated(store: Store): Gate {
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
      hasten: unless(store.hasten, 0),
      erase: unless(store.erase, 0),
      forgetFeedback: unless(store.forgetFeedback, 0),
      sweepTraffic: unless(store.sweepTraffic, 0),
    },
    open() {
      isOpen = true;
    },
  };
}

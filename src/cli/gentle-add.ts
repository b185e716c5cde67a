/**
 * Many addresses onto a suppression list in small transactions, with a rest after each as long as it took: whoever accepts mail on
 * the same store waits for no more than one of them, and has the store for itself half of the time.
 */
import type { Clock } from '../clock.ts';
import type { Changed, Store } from '../store/store.ts';
import type { Suppression } from '../store/trust.ts';

/** Rows of one transaction. */
export const BATCH = 500;

/** Rests as long as a batch took, or until `until` resolves. */
export function restFor(clock: Clock, ms: number, until?: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const cancel = clock.after(Math.ceil(ms), resolve);
    void until?.then(() => {
      cancel();
      resolve();
    });
  });
}

/** The store beside whatever runs on it: while no node is alive, a page of any length is one transaction, which is faster. */
export function gentle(store: Store, clock: Clock): Store {
  const inUse = async () => {
    const now = clock.now();
    return (await store.listNodes(now)).some(({ aliveUntil }) => aliveUntil > now);
  };
  async function addSuppressions(list: string, entries: readonly Suppression[]): Promise<Changed<number>> {
    if (entries.length <= BATCH || !(await inUse())) return store.addSuppressions(list, entries);
    let added = 0;
    for (let at = 0; at < entries.length; at += BATCH) {
      const begun = performance.now();
      const part = await store.addSuppressions(list, entries.slice(at, at + BATCH));
      if (part.kind !== 'done') return part;
      added += part.value;
      await restFor(clock, performance.now() - begun);
    }
    return { kind: 'done', value: added };
  }
  return { ...store, addSuppressions };
}

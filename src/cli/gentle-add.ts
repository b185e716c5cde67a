/**
 * Many addresses onto a suppression list, beside mail: while any is accepted, in small transactions with a rest after each as long
 * as it took, so that who accepts waits for no more than one of them and has the store for itself half of the time; while none
 * is, a page at a time without rests.
 */
import type { Clock } from '../clock.ts';
import type { Changed } from '../model/account.ts';
import type { Actor } from '../model/audit.ts';
import type { Suppression } from '../model/suppression.ts';
import type { AcceptStore, NodeStore, SuppressionStore } from '../store/contract.ts';

/** Read or written at a time. */
export const PAGE = 5_000;
/** Rows of one transaction while mail is accepted. */
const FEW = 500;
/** So long after the last mail request none is expected. */
const QUIET_MS = 1_000;

export interface Pace {
  /** How many rows the next transaction may have. */
  rows(): number;
  /** Runs one transaction behind those asked for before, and rests after it where it has to, at most until `until` resolves. */
  step<T>(add: () => Promise<T>): Promise<T>;
}

/** One for all that is added at the same time: side by side they would leave the store no rest. */
export function createPace(store: Pick<AcceptStore, 'newestId'>, clock: Clock, until?: Promise<void>): Pace {
  let rows = FEW;
  let newest: string | null | undefined;
  let newestSince = 0;
  let last: Promise<unknown> = Promise.resolve();
  let over = false;
  let wake: () => void = () => undefined;
  // Once, and not at each rest: what is hung on it stays as long as the service runs.
  void until?.then(() => {
    over = true;
    wake();
  });

  async function alone<T>(add: () => Promise<T>): Promise<T> {
    const begun = performance.now();
    const result = await add();
    const tookMs = performance.now() - begun;
    // What was added counts; a store that is away says so to the next step. Where it cannot say, mail may be accepted.
    const id = await store.newestId().catch(() => undefined);
    const now = clock.now();
    if (id === undefined || id !== newest) newestSince = now;
    newest = id;
    rows = now - newestSince < QUIET_MS ? FEW : PAGE;
    if (rows === FEW && !over) await rest(tookMs);
    return result;
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
    rows: () => rows,
    step(add) {
      const step = last.then(() => alone(add));
      last = step.catch(() => undefined);
      return step;
    },
  };
}

/** The store for a command beside whatever runs on it: while no node is alive nothing is accepted, and nothing needs a pace. */
export function gentle<
  Held extends Pick<AcceptStore, 'newestId'> & Pick<NodeStore, 'listNodes'> & Pick<SuppressionStore, 'addSuppressions'>,
>(store: Held, clock: Clock): Held {
  const pace = createPace(store, clock);
  const inUse = async () => {
    const now = clock.now();
    return (await store.listNodes(now)).some(({ aliveUntil }) => aliveUntil > now);
  };
  async function addSuppressions(list: string, entries: readonly Suppression[], by?: Actor): Promise<Changed<number>> {
    if (entries.length <= FEW || !(await inUse())) return store.addSuppressions(list, entries, by);
    let added = 0;
    for (let at = 0; at < entries.length; ) {
      const part = entries.slice(at, at + pace.rows());
      const answer = await pace.step(() => store.addSuppressions(list, part, by));
      if (answer.kind !== 'done') return answer;
      added += answer.value;
      at += part.length;
    }
    return { kind: 'done', value: added };
  }
  return { ...store, addSuppressions };
}

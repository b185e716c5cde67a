/**
 * Commits of the store: what arrives together is committed together (`groupCommit`), and whether commits work (`watchHealth`).
 *
 * Group commit: whatever arrives while the last commit runs goes into the next one. No timer: a lone item is committed
 * at the end of the event loop's turn it came in, a crowd shares one sync. Two batches may be under way: the store's thread works
 * on one while the answers of the other are handled. A batch that fails is committed in parts, so that one item that cannot be
 * stored fails alone.
 *
 * Health: a failed commit makes the store unhealthy at once; from then on, and whenever nobody has committed for a while, a small
 * synced write probes it.
 */
import type { Clock } from '../clock.ts';
import type { EventOf, Publish } from '../model/events.ts';
import type { Store } from './contract.ts';

const UNDER_WAY = 2;
/**
 * How long, and over how many failures in a row beyond the halvings that lead to one item, the parts of a failed batch are
 * tried: where the store itself is at fault, no item is.
 */
const PARTS_MS = 2_000;
const PARTS_FAILING = 8;
/**
 * So many items waiting while a batch may begin do not wait for the end of the turn: the store works on them while the
 * turn goes on. Without it both sides fall into step and wait for each other.
 */
const EAGER = 16;

export interface GroupCommit<Item, Answer> {
  /** Resolves with the item's answer once its batch is committed; rejects where the batch was not. */
  submit(item: Item): Promise<Answer>;
  /** How long, in ms, the item waits that has waited longest for its batch to begin; 0 where none does. */
  oldestWaitMs(): number;
}

interface Pending<Item, Answer> {
  readonly item: Item;
  readonly since: number;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/** `observe` is told each commit's size and duration; `now` is any clock in milliseconds. */
export function groupCommit<Item, Answer>(
  commit: (batch: readonly Item[]) => Promise<readonly Answer[]>,
  options: {
    readonly maxBatch: number;
    readonly now: () => number;
    readonly observe?: (size: number, tookMs: number) => void;
  },
): GroupCommit<Item, Answer> {
  let pending: Pending<Item, Answer>[] = [];
  let underWay = 0;
  let scheduled = false;

  function schedule(): void {
    if (scheduled || underWay >= UNDER_WAY || pending.length === 0) return;
    scheduled = true;
    setImmediate(flush);
  }

  function flush(): void {
    scheduled = false;
    if (underWay >= UNDER_WAY || pending.length === 0) return;
    const batch = pending.length <= options.maxBatch ? pending : pending.slice(0, options.maxBatch);
    pending = batch === pending ? [] : pending.slice(options.maxBatch);
    underWay += 1;
    const began = options.now();
    commit(batch.map(({ item }) => item)).then(
      (answers) => {
        options.observe?.(batch.length, options.now() - began);
        end();
        answer(batch, answers);
      },
      (error: unknown) => {
        if (batch.length > 1) return void inParts(batch, error).finally(() => end());
        end();
        refuse(batch, error);
      },
    );
    schedule();
  }

  function answer(batch: readonly Pending<Item, Answer>[], answers: readonly Answer[]): void {
    for (const [index, { resolve, reject }] of batch.entries()) {
      const one = answers[index];
      if (one === undefined) reject(new Error('the store gave no answer'));
      else resolve(one);
    }
  }

  function refuse(batch: readonly Pending<Item, Answer>[], error: unknown): void {
    for (const { reject } of batch) reject(error);
  }

  /** Halves the batch until what cannot be committed stands alone; refuses the rest where the store seems to be at fault. */
  async function inParts(batch: readonly Pending<Item, Answer>[], fault: unknown): Promise<void> {
    const until = options.now() + PARTS_MS;
    const most = Math.ceil(Math.log2(batch.length)) + PARTS_FAILING;
    let failing = 0;
    const parts: (readonly Pending<Item, Answer>[])[] = [];
    const halve = (part: readonly Pending<Item, Answer>[]): void => {
      const middle = Math.ceil(part.length / 2);
      parts.push(part.slice(middle), part.slice(0, middle));
    };
    let last = fault;
    halve(batch);
    for (let part = parts.pop(); part !== undefined; part = parts.pop()) {
      if (failing >= most || options.now() > until) {
        refuse(part, last);
        continue;
      }
      try {
        answer(part, await commit(part.map(({ item }) => item)));
        failing = 0;
      } catch (error) {
        last = error;
        failing += 1;
        if (part.length === 1) refuse(part, error);
        else halve(part);
      }
    }
  }

  function end(): void {
    underWay -= 1;
    schedule();
  }

  return {
    submit(item) {
      return new Promise<Answer>((resolve, reject) => {
        pending.push({ item, since: options.now(), resolve, reject });
        if (pending.length >= EAGER) flush();
        else schedule();
      });
    },
    oldestWaitMs() {
      const oldest = pending[0];
      return oldest === undefined ? 0 : options.now() - oldest.since;
    },
  };
}

/** An observer for `groupCommit` that publishes each commit as `store.committed`. */
export function publishCommits(
  kind: EventOf<'store.committed'>['kind'],
  clock: Clock,
  publish: Publish,
): (size: number, tookMs: number) => void {
  return (size, tookMs) => publish({ type: 'store.committed', at: clock.now(), kind, size, tookMs });
}

/** An answer older than this is looked up again. */
const FRESH_MS = 1_000;

export interface StoreHealth {
  /** Null while the store commits; else why not, in words fit for the public. Cheap; looks again by itself. */
  fault(): string | null;
  /** The same call, whose successes and failures are noted. */
  observe<Args extends readonly unknown[], Result>(
    call: (...args: Args) => Promise<Result>,
  ): (...args: Args) => Promise<Result>;
  /** Looks no more. */
  stop(): void;
}

/**
 * Starts watching; nothing runs until someone asks or a watched call fails. `known` is a fault that the store has found by
 * itself, in words fit for the public, or null.
 */
export function watchHealth(
  store: Pick<Store, 'probe'>,
  clock: Clock,
  known: () => string | null = () => null,
): StoreHealth {
  let failing = false;
  let knownAt = clock.now();
  let probing = false;
  let stopped = false;
  let cancel: () => void = () => undefined;

  const note = (failed: boolean) => {
    failing = failed;
    knownAt = clock.now();
    cancel();
    if (failed && !stopped) cancel = clock.after(FRESH_MS, look);
  };

  function look(): void {
    if (probing || stopped) return;
    probing = true;
    store.probe().then(
      () => end(false),
      () => end(true),
    );
  }

  function end(failed: boolean): void {
    probing = false;
    note(failed);
  }

  return {
    fault() {
      // Also after a clock was set back.
      if (Math.abs(clock.now() - knownAt) > FRESH_MS) look();
      return known() ?? (failing ? 'the store cannot commit' : null);
    },
    observe(call) {
      return async (...args) => {
        try {
          const result = await call(...args);
          failing = false;
          knownAt = clock.now();
          return result;
        } catch (error) {
          note(true);
          throw error;
        }
      };
    },
    stop() {
      stopped = true;
      cancel();
    },
  };
}

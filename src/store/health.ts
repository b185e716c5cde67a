/**
 * Whether the store can commit, for `/readyz` and whoever else asks. A failed commit makes it unhealthy at once; from then
 * on, and whenever nobody has committed for a while, a small synced write tells how things are.
 */
import type { Clock } from '../clock.ts';
import type { Store } from './contract.ts';

/** An answer older than this is looked up again. */
const FRESH_MS = 1_000;

export interface StoreHealth {
  /** Null while the store commits; else why not, in words fit for the public. Cheap; looks again by itself. */
  fault(): string | null;
  /** The same call, whose successes and failures are noted. */
  watched<Args extends readonly unknown[], Result>(
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
    watched(call) {
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

/**
 * How old things are, in running time: read from the clock and the monotonic clock whenever asked, and kept in the store,
 * so that it goes on after a restart and is the same on every node.
 *
 * Guarantees: a step of the clock counts from no moment on, not even before it has been kept. A store that is away delays
 * the keeping alone.
 */
import type { SteadyClock } from '../clock.ts';
import { advanceRunningTime, datedBefore, type RunningTime, runningAge } from '../model/running-time.ts';
import type { NodeStore } from '../store/contract.ts';
import { ALIVE_MS } from './membership.ts';

const KEEP_MS = 15_000;
/** So long a restart may take and still count as running. */
const RESTART_MS = 60_000;

export interface Ages {
  /** The greatest time such that whatever was dated up to then is at least `ageMs` old. */
  datedBefore(ageMs: number): number;
  /** The time at which something dated `at` would have been dated, had the clock always run as it does now. */
  asDatedNow(at: number): number;
  /**
   * False just after a step of the clock. Until then other nodes may not have said by the new time that they live, and
   * what is being committed may have a lease by the old time.
   */
  settled(): boolean;
}

export interface AgesParts {
  readonly clock: SteadyClock;
  readonly store: Pick<NodeStore, 'keepRunningTime'>;
  readonly failed: (what: string, error: unknown) => void;
}

/** Resolves once the running time has been read and kept; rejects where the store refuses it. `stop` ends the keeping. */
export async function keepAges(parts: AgesParts): Promise<{ readonly ages: Ages; stop(): Promise<void> }> {
  const { clock, store, failed } = parts;
  let keptAt = clock.monotonic();
  let kept = await store.keepRunningTime(RESTART_MS, clock.now());
  let stopped = false;
  let cancel: () => void = () => undefined;
  let underWay: Promise<void> = Promise.resolve();

  async function keep(): Promise<void> {
    const askedAt = clock.monotonic();
    kept = await store.keepRunningTime(askedAt - keptAt, clock.now());
    keptAt = askedAt;
  }

  function again(): void {
    cancel = clock.after(KEEP_MS, () => {
      underWay = keep()
        .catch((error: unknown) => failed('keep running time', error))
        .then(() => {
          if (!stopped) again();
        });
    });
  }

  const current = (): RunningTime => advanceRunningTime(kept, clock.now(), clock.monotonic() - keptAt);

  again();
  return {
    ages: {
      datedBefore: (ageMs) => datedBefore(current(), ageMs),
      asDatedNow: (at) => clock.now() - runningAge(current(), at),
      settled() {
        const { ranMs, stretches } = current();
        return stretches.length === 1 || ranMs - (stretches.at(-1)?.fromMs ?? 0) >= ALIVE_MS;
      },
    },
    async stop() {
      stopped = true;
      cancel();
      await underWay;
      // A stop that takes no store with it: the next start counts from here.
      await keep().catch((error: unknown) => failed('keep running time', error));
    },
  };
}

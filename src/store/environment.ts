/** Time and chance, as a store is given them. */
import { type MonotonicClock, systemClock } from '../clock.ts';

export interface StoreEnvironment {
  readonly clock: MonotonicClock;
  /** In [0, 1). */
  readonly random: () => number;
  /**
   * True for a run that is to be repeatable: the store starts no thread, and only `clock` says what time it is, where else a
   * database server is asked. Time limits of connections to a server stay the machine's.
   */
  readonly simulated: boolean;
}

/** Where a database server's own time counts, null; in a simulation the time that counts instead, in ms since the epoch. */
export type ServerTimeOverride = () => number | null;

export function serverTimeOverride({ clock, simulated }: StoreEnvironment): ServerTimeOverride {
  return simulated ? clock.now : () => null;
}

export const SYSTEM_ENVIRONMENT: StoreEnvironment = { clock: systemClock, random: Math.random, simulated: false };

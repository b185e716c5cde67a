/** Defines the clock and the random source that a store receives. */
import { type MonotonicClock, systemClock } from '../clock.ts';

export interface StoreEnvironment {
  readonly clock: MonotonicClock;
  /** Returns a random number in [0, 1). */
  readonly random: () => number;
  /**
   * True in a simulation: the store starts no thread, and `clock` replaces the database server's time. The time limits
   * of server connections use the system's clock.
   */
  readonly isSimulated: boolean;
}

/**
 * Returns null if the database server's time applies. In a simulation, returns the time that replaces it, in ms since
 * the epoch.
 */
export type ServerTimeOverride = () => number | null;

export function getServerTimeOverride({ clock, isSimulated }: StoreEnvironment): ServerTimeOverride {
  return isSimulated ? clock.now : () => null;
}

export const SYSTEM_ENVIRONMENT: StoreEnvironment = { clock: systemClock, random: Math.random, isSimulated: false };

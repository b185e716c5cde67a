/** The clock and random source that a store receives. */
import { type SteadyClock, systemClock } from '../clock.ts';

export interface Surroundings {
  readonly clock: SteadyClock;
  /** In [0, 1). */
  readonly random: () => number;
  /**
   * True for a repeatable run: the store starts no thread, and `clock` replaces the database server's time. The time
   * limits of server connections still use the system's clock.
   */
  readonly simulated: boolean;
}

/**
 * Null where the database server's own time counts. In a simulation, the time that replaces it, in ms since the epoch.
 */
export type ServerTime = () => number | null;

export function serverTime({ clock, simulated }: Surroundings): ServerTime {
  return simulated ? clock.now : () => null;
}

export const MACHINE: Surroundings = { clock: systemClock, random: Math.random, simulated: false };

import { type MonotonicClock, systemClock } from '../clock.ts';

export interface StoreEnvironment {
  readonly clock: MonotonicClock;
  readonly random: () => number;
  /** The store starts no thread, and `clock` replaces the database server's time. */
  readonly isSimulated: boolean;
}

/** Null if the database server's time applies. */
export type ServerTimeOverride = () => number | null;

export function getServerTimeOverride({ clock, isSimulated }: StoreEnvironment): ServerTimeOverride {
  return isSimulated ? clock.now : () => null;
}

export const SYSTEM_ENVIRONMENT: StoreEnvironment = { clock: systemClock, random: Math.random, isSimulated: false };

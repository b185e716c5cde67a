/**
 * Writes the ends of leases (outcomes, and leases given back unused) into the store, and tries each again until the store
 * takes it.
 *
 * Guarantees: an end is forgotten only once it is written, or once the node has stopped; then the next start, or another
 * node, takes the lease back. Never rejects.
 */
import type { Clock } from '../clock.ts';

/** Pauses between tries to write an end while the store fails. */
const RETRY_MS = [100, 500, 2_000, 5_000] as const;
const LONGEST_RETRY_MS = 5_000;

export interface RecorderParts {
  readonly clock: Pick<Clock, 'after'>;
  /** True once ends that the store refuses are no longer tried. */
  readonly stopped: () => boolean;
  readonly failed: (what: string, error: unknown) => void;
}

export interface Recorder {
  /** Leases whose end is not written yet. */
  readonly pending: number;
  /** True while the store refuses the end of any of them. */
  readonly failing: boolean;
  /** Runs `write`, which ends the leases `ids`, until it resolves. Resolves to its answer, or to null where it was given up. */
  record<T>(ids: readonly string[], write: () => Promise<T>): Promise<T | null>;
}

export function createRecorder({ clock, stopped, failed }: RecorderParts): Recorder {
  let pending = 0;
  /** Of those pending, those that the store has refused so far. */
  let refused = 0;

  return {
    get pending() {
      return pending;
    },
    get failing() {
      return refused > 0;
    },
    async record(ids, write) {
      pending += ids.length;
      try {
        for (let round = 0; ; round += 1) {
          try {
            const answer = await write();
            if (round > 0) refused -= ids.length;
            return answer;
          } catch (error) {
            failed('settle', error);
            if (round === 0) refused += ids.length;
            if (stopped()) {
              refused -= ids.length;
              return null;
            }
            await new Promise<void>((resolve) => clock.after(RETRY_MS[round] ?? LONGEST_RETRY_MS, resolve));
          }
        }
      } finally {
        pending -= ids.length;
      }
    },
  };
}

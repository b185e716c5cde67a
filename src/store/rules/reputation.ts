/**
 * Reputation of accounts: what a batch of events adds (`Tallies`), the hourly buckets, and whether the account is
 * warned or locked. The same rules serve both databases. Pure.
 */
import {
  REPUTATION_BUCKET_MS,
  REPUTATION_WINDOW_HOURS,
  type ReputationDelta,
  reputationDelta,
  reputationStatus,
  type Thresholds,
  type WindowCounts,
} from '../../model/account.ts';
import type { State } from '../../model/message.ts';

/** The bucket of a time, in hours since the epoch. */
export function hourOf(ms: number): number {
  return Math.floor(ms / REPUTATION_BUCKET_MS);
}

/** The last bucket before the window that ends at `now`. */
export function hourBeforeWindow(now: number): number {
  return hourOf(now) - REPUTATION_WINDOW_HOURS;
}

/** Buckets up to this one may be deleted. */
export function lastExpiredHour(now: number): number {
  return hourOf(now) - 2 * REPUTATION_WINDOW_HOURS;
}

/** A recipient's complaint at `at` counts if the last counted complaint of that recipient is not later than this. */
export function complaintWindowStart(at: number): number {
  return at - REPUTATION_WINDOW_HOURS * REPUTATION_BUCKET_MS;
}

/**
 * False if the batch cannot change the account's status. Delivered messages alone cannot lock an account, but they can
 * end a warning.
 */
export function needsEvaluation({ bounces, complaints }: ReputationDelta, isWarned: boolean): boolean {
  return bounces > 0 || complaints > 0 || isWarned;
}

export type ReputationDecision =
  | { readonly kind: 'lock'; readonly reason: string }
  /** The new warning, or null if the warning ends. */
  | { readonly kind: 'warn'; readonly warning: string | null }
  | { readonly kind: 'none' };

/**
 * What follows from the window of an account that is not locked. The first warning is kept, so that the operator sees
 * one line and not one per bounce.
 */
export function evaluateReputation(
  window: WindowCounts,
  thresholds: Thresholds,
  isWarned: boolean,
): ReputationDecision {
  const verdict = reputationStatus(window, thresholds);
  switch (verdict.kind) {
    case 'lock':
      return verdict;
    case 'warning':
      return isWarned ? { kind: 'none' } : { kind: 'warn', warning: verdict.reason };
    case 'good':
      return isWarned ? { kind: 'warn', warning: null } : { kind: 'none' };
  }
}

export class Tallies {
  readonly #byAccount = new Map<number, ReputationDelta & { at: number }>();

  /**
   * Adds a message that changed its state at `at`, or a late report about it. `reputationDelta` (model/account.ts) decides what
   * counts.
   */
  add(accountId: number, from: State, to: State, fresh: boolean, at: number): void {
    const added = reputationDelta(from, to, fresh);
    if (added === null) return;
    const tally = this.#byAccount.get(accountId);
    if (tally === undefined) {
      this.#byAccount.set(accountId, { ...added, at });
      return;
    }
    tally.emails += added.emails;
    tally.bounces += added.bounces;
    tally.complaints += added.complaints;
    tally.at = at;
  }

  /** The tallies in order of account id, each with the time of its last change. */
  all(): readonly (readonly [accountId: number, tally: ReputationDelta, at: number])[] {
    return [...this.#byAccount]
      .sort(([a], [b]) => a - b)
      .map(([accountId, tally]) => [accountId, tally, tally.at] as const);
  }
}

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
export function hourSinceEpoch(ms: number): number {
  return Math.floor(ms / REPUTATION_BUCKET_MS);
}

/** The last bucket before the window that ends at `now`. */
export function lastHourBeforeWindow(now: number): number {
  return hourSinceEpoch(now) - REPUTATION_WINDOW_HOURS;
}

/** Buckets up to this one may be deleted. */
export function lastExpiredHour(now: number): number {
  return hourSinceEpoch(now) - 2 * REPUTATION_WINDOW_HOURS;
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
  const status = reputationStatus(window, thresholds);
  switch (status.kind) {
    case 'lock':
      return status;
    case 'warning':
      return isWarned ? { kind: 'none' } : { kind: 'warn', warning: status.reason };
    case 'good':
      return isWarned ? { kind: 'warn', warning: null } : { kind: 'none' };
  }
}

export class ReputationDeltas {
  readonly #byAccount = new Map<number, ReputationDelta & { at: number }>();

  /**
   * Adds a message that changed its state at `at`, or a late report about it. `reputationDelta` (model/account.ts) decides what
   * counts.
   */
  add(accountId: number, from: State, to: State, isNewEvidence: boolean, at: number): void {
    const added = reputationDelta(from, to, isNewEvidence);
    if (added === null) return;
    const delta = this.#byAccount.get(accountId);
    if (delta === undefined) {
      this.#byAccount.set(accountId, { ...added, at });
      return;
    }
    delta.emails += added.emails;
    delta.bounces += added.bounces;
    delta.complaints += added.complaints;
    delta.at = at;
  }

  /** The tallies in order of account id, each with the time of its last change. */
  sortedByAccount(): readonly (readonly [accountId: number, tally: ReputationDelta, at: number])[] {
    return [...this.#byAccount]
      .sort(([a], [b]) => a - b)
      .map(([accountId, tally]) => [accountId, tally, tally.at] as const);
  }
}

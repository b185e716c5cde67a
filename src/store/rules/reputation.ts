/**
 * Reputation of accounts, decided for both databases: what a batch of events adds to it (`Tallies`), its hourly buckets, and what
 * a batch that was counted does to the account. Pure.
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

/** The bucket of a time. */
export function hourOf(ms: number): number {
  return Math.floor(ms / REPUTATION_BUCKET_MS);
}

/** The last bucket before the window that ends at `now`. */
export function hourBeforeWindow(now: number): number {
  return hourOf(now) - REPUTATION_WINDOW_HOURS;
}

/** Buckets up to this one are deleted. */
export function lastExpiredHour(now: number): number {
  return hourOf(now) - 2 * REPUTATION_WINDOW_HOURS;
}

/** A complaint at `at` counts again for a recipient whose last one that counted came no later than this. */
export function complaintWindowStart(at: number): number {
  return at - REPUTATION_WINDOW_HOURS * REPUTATION_BUCKET_MS;
}

/** False where the batch cannot change what the account may do: good mail alone cannot lock, but it can end a warning. */
export function needsEvaluation({ bounces, complaints }: ReputationDelta, isWarned: boolean): boolean {
  return bounces > 0 || complaints > 0 || isWarned;
}

export type ReputationDecision =
  | { readonly kind: 'lock'; readonly reason: string }
  /** The new warning, or null where it ends. */
  | { readonly kind: 'warn'; readonly warning: string | null }
  | { readonly kind: 'none' };

/**
 * What follows from the window of an account that is not locked. The first warning is kept as it was: one line for the operator,
 * not one for each further bounce.
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

  /** A message that went from one state to another at `at`, or a late report of it; `reputationDelta` (model/account.ts) says what counts. */
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

  /** The tallies with the time of the last change in each, in order of account. */
  all(): readonly (readonly [accountId: number, tally: ReputationDelta, at: number])[] {
    return [...this.#byAccount]
      .sort(([a], [b]) => a - b)
      .map(([accountId, tally]) => [accountId, tally, tally.at] as const);
  }
}

/** The hourly buckets of an account, what a batch adds to them, and whether it gets a warning or a lock. Pure. */
import {
  determineReputationStatus,
  getReputationDelta,
  type OnReputation,
  REPUTATION_BUCKET_MS,
  REPUTATION_WINDOW_HOURS,
  type ReputationDelta,
  type Thresholds,
  type WindowCounts,
} from '../../model/account.ts';
import type { State } from '../../model/message.ts';

export function toHourSinceEpoch(ms: number): number {
  return Math.floor(ms / REPUTATION_BUCKET_MS);
}

export function getLastHourBeforeWindow(now: number): number {
  return toHourSinceEpoch(now) - REPUTATION_WINDOW_HOURS;
}

export function getLastExpiredHour(now: number): number {
  return toHourSinceEpoch(now) - 2 * REPUTATION_WINDOW_HOURS;
}

/** Evidence counts only if the last counted one of the same recipient or source is not later than this start. */
export function getEvidenceWindowStart(at: number): number {
  return at - REPUTATION_WINDOW_HOURS * REPUTATION_BUCKET_MS;
}

/** Delivered messages alone cannot lock an account, but can end a warning. */
export function needsEvaluation({ emails: _, ...bad }: ReputationDelta, isWarned: boolean): boolean {
  return isWarned || Object.values(bad).some((count) => count > 0);
}

export type ReputationDecision =
  | { readonly kind: 'lock'; readonly reason: string }
  | { readonly kind: 'warn'; readonly warning: string | null }
  | { readonly kind: 'none' };

/** The first warning stays, so that the log has one line per warning. */
export function evaluateReputation(
  window: WindowCounts,
  thresholds: Thresholds,
  onReputation: OnReputation,
  isWarned: boolean,
): ReputationDecision {
  const status = determineReputationStatus(window, thresholds, onReputation);
  switch (status.kind) {
    case 'lock':
      return status;
    case 'warning':
      return isWarned ? { kind: 'none' } : { kind: 'warn', warning: status.reason };
    case 'good':
      return isWarned ? { kind: 'warn', warning: null } : { kind: 'none' };
  }
}

const NO_COUNTS: WindowCounts = { emails: 0, bounces: 0, complaints: 0, provenBounces: 0, provenComplaints: 0 };

export class ReputationDeltas {
  readonly #byAccount = new Map<number, ReputationDelta & { at: number }>();

  /**
   * Adds a change of a message's state at `at`, or a late report about the message. `getReputationDelta`
   * (model/account.ts) determines the counts. `isProven` is true for the first authenticated evidence of a source,
   * `isCounted` is false for evidence about what an earlier report has counted.
   */
  add(
    accountId: number,
    from: State,
    to: State,
    {
      isNew,
      isProven,
      isCounted = true,
    }: { readonly isNew: boolean; readonly isProven: boolean; readonly isCounted?: boolean },
    at: number,
  ): void {
    const addedCounts = (isCounted ? getReputationDelta(from, to, isNew) : null) ?? NO_COUNTS;
    if (addedCounts === NO_COUNTS && !isProven) return;
    const delta = this.#byAccount.get(accountId) ?? { ...NO_COUNTS, at };
    this.#byAccount.set(accountId, delta);
    delta.emails += addedCounts.emails;
    delta.bounces += addedCounts.bounces;
    delta.complaints += addedCounts.complaints;
    if (isProven && to === 'bounced') delta.provenBounces += 1;
    if (isProven && to === 'complained') delta.provenComplaints += 1;
    delta.at = at;
  }

  /** In order of account id, with the time of the last change. */
  listByAccount(): readonly (readonly [accountId: number, delta: ReputationDelta, at: number])[] {
    return [...this.#byAccount]
      .sort(([a], [b]) => a - b)
      .map(([accountId, delta]) => [accountId, delta, delta.at] as const);
  }
}

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
import type { EvidenceKind } from '../../model/address.ts';
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

/** Of the state of a message, or a late report about it. */
export interface CountedChange {
  readonly accountId: number;
  readonly from: State;
  readonly to: State;
  readonly at: number;
  /** A bounce that added a suppression, or the first complaint of a recipient. */
  readonly isNew: boolean;
  /** False for evidence about what an earlier report has counted. */
  readonly isCounted: boolean;
  /** Authenticated; only the first of its source and kind in the window counts toward a lock. */
  readonly evidence: { readonly kind: EvidenceKind; readonly recipient: string } | null;
}

/**
 * The next hop itself refused the recipient, so the outcome of an attempt is evidence even if another message or report
 * suppressed the recipient since the claim. `recipient` is null if the outcome suppresses nobody.
 */
export function getAttemptEvidence(to: State, recipient: string | null): CountedChange['evidence'] {
  return recipient === null ? null : { kind: to === 'complained' ? 'complaint' : 'bounce', recipient };
}

export class ReputationDeltas {
  readonly #byAccount = new Map<number, ReputationDelta & { at: number }>();

  /** `getReputationDelta` (model/account.ts) determines the counts. */
  add({ accountId, from, to, at, isNew, isCounted }: CountedChange, isProven: boolean): void {
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

/**
 * What an operator sees first: what needs attention, found in a time that does not depend on how much is stored; and the position in
 * the change feed, which moves when something has changed, whichever process did it.
 */

import type { Account, ApiKey } from './account.ts';
import type { RecordCheck } from './domain.ts';

/** Volumes and keys that lapse within this are told of beforehand; a volume that has lapsed, for as long after. */
export const EXPIRY_WARNING_MS = 7 * 24 * 3_600_000;
/** A key used within this is in use; a report that was not understood is shown for as long. */
export const RECENT_USE_MS = 24 * 3_600_000;
/** Of the volume, the part from which on it is told of. */
export const VOLUME_WARNING_FRACTION = 0.9;
/** Of each kind, at most so many are told of. */
export const MAX_OVERVIEW_ITEMS = 100;
/** Accounts looked at for when the next mail request is due. */
export const MAX_SCANNED_ACCOUNTS = 2_000;

export interface QueueStatistics {
  readonly queued: number;
  readonly sending: number;
  readonly uncertain: number;
  /** Of those queued or being sent. */
  readonly oldest: { readonly id: string; readonly acceptedAt: number } | null;
}

/** A domain whose mail is in danger, or some of whose records are not as they should be. */
export interface DomainProblem {
  readonly name: string;
  readonly status: 'pending' | 'authenticated' | 'failing';
  readonly checkedAt: number | null;
  readonly failingSince: number | null;
  /** The records that an answered check has found missing or wrong, by purpose and name. */
  readonly failedRecords: readonly Pick<RecordCheck, 'purpose' | 'name'>[];
}

export interface OverviewData {
  /** False where nothing was ever accepted. */
  readonly everAccepted: boolean;
  /** When the next queued mail request of an account that is not locked is due; null where there is none. */
  readonly nextDueAt: number | null;
  /** Locked, warned, or with a volume that is nearly used, lapses soon or has lapsed of late. */
  readonly accounts: readonly Account[];
  /**
   * Working keys that expire soon: those in use, and those that are their account's last. `successor` is a later key of the same
   * name that outlasts it, as a rotation makes one; then only those that were used since.
   */
  readonly keys: readonly (ApiKey & { readonly account: string; readonly successor: number | null })[];
  readonly domains: {
    readonly authenticated: number;
    readonly all: number;
    readonly problems: readonly DomainProblem[];
  };
  /** Reports of late that were not understood, up to `MAX_OVERVIEW_ITEMS`. */
  readonly notUnderstood: number;
}

/** The position in the change feed: each member changes with what it stands for, and is compared only with its former value. */
export interface ChangeFeedPosition {
  readonly newestId: string | null;
  /** The newest entry of the audit log; 0 for none. */
  readonly audit: number;
  /** What all nodes have counted recently, and of that what puts addresses on suppression lists. */
  readonly counted: number;
  readonly refused: number;
}

/** What an answered check found missing or wrong; `checks` is the column's JSON. */
export function failedRecordsOf(checks: string): DomainProblem['failedRecords'] {
  return (JSON.parse(checks) as readonly RecordCheck[])
    .filter(({ found }) => found === 'missing' || found === 'wrong')
    .map(({ purpose, name }) => ({ purpose, name }));
}

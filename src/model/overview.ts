/**
 * The types of the overview for operators, which lists conditions that require attention. The time to find these
 * conditions does not depend on the amount of stored data.
 */

import type { Account, ApiKey } from './account.ts';
import type { RecordCheck } from './domain.ts';
import type { Webhook } from './webhook.ts';

/**
 * The overview shows volumes and keys that expire within this time. It shows an expired volume for the same time after
 * the expiry.
 */
export const EXPIRY_WARNING_MS = 7 * 24 * 3_600_000;
/**
 * A key counts as in use for this time after its last use. A report that was not understood is shown for this time
 * after its arrival.
 */
export const RECENT_USE_MS = 24 * 3_600_000;
/** An account is shown if at least this fraction of its volume is used. */
export const VOLUME_WARNING_FRACTION = 0.9;
/** The maximum number of listed items of each kind, such as accounts or keys. */
export const MAX_OVERVIEW_ITEMS = 100;
/** The maximum number of accounts that are read to find the time when the next message is due. */
export const MAX_SCANNED_ACCOUNTS = 2_000;

export interface QueueStatistics {
  readonly queued: number;
  readonly sending: number;
  readonly uncertain: number;
  /** The oldest message that is queued or being sent. Notifications to operators are not included. */
  readonly oldest: { readonly id: string; readonly acceptedAt: number } | null;
}

/**
 * The tag in the DNS record of an Ed25519 key (RFC 8463 section 4). This record is not necessary to authenticate a
 * domain.
 */
const ED25519_TAG = 'k=ed25519';

/** A domain that cannot send, or will soon be blocked, or has missing or wrong records. */
export interface DomainProblem {
  readonly name: string;
  readonly status: 'pending' | 'authenticated' | 'failing';
  readonly checkedAt: number | null;
  readonly failingSince: number | null;
  /**
   * The records that the last check found missing or wrong. A record whose lookup failed is not included. The record of
   * an Ed25519 key is optional and not included.
   */
  readonly failedRecords: readonly Pick<RecordCheck, 'purpose' | 'name'>[];
}

export interface OverviewData {
  /** False if no message has been accepted yet. */
  readonly everAccepted: boolean;
  /** The time when the next queued message of an unlocked account is due. Null if there is no such message. */
  readonly nextDueAt: number | null;
  /** Accounts that are locked or have a warning, or whose volume is nearly used, expires soon or expired recently. */
  readonly accounts: readonly Account[];
  /**
   * Valid keys that expire soon. A key that is not in use is listed only if every key of its account expires soon.
   * `successor` is a newer key with the same name and a later expiry, created by a rotation. A key with a successor
   * is listed only if it was used after the successor was created.
   */
  readonly keys: readonly (ApiKey & { readonly account: string; readonly successor: number | null })[];
  readonly domains: {
    readonly authenticated: number;
    readonly all: number;
    readonly problems: readonly DomainProblem[];
  };
  /** The number of recent reports that were not understood, up to `MAX_OVERVIEW_ITEMS`. */
  readonly notUnderstoodCount: number;
  /** The endpoints that the service disabled, ordered by id. At most `MAX_OVERVIEW_ITEMS` are listed. */
  readonly disabledWebhooks: readonly Webhook[];
}

/**
 * The position in the change feed. Each member represents one kind of data and changes if this data changes. A member
 * is compared only with its own earlier value.
 */
export interface ChangeFeedPosition {
  readonly newestId: string | null;
  /** The id of the newest audit log entry, or 0 without an entry. */
  readonly newestAuditId: number;
  /**
   * The sum of all recent traffic counts of all nodes, and the sum of the recent counts of bounces and complaints,
   * which can suppress addresses.
   */
  readonly recentCounts: number;
  readonly suppressingCounts: number;
}

/**
 * Returns the records that a check found missing or wrong, without those whose lookup failed. `checks` is the JSON of
 * the stored results.
 */
export function parseFailedRecords(checks: string): DomainProblem['failedRecords'] {
  return (JSON.parse(checks) as readonly RecordCheck[])
    .filter(({ found, purpose, value }) => {
      const isOptional = purpose === 'dkim' && value.includes(ED25519_TAG);
      return (found === 'missing' || found === 'wrong') && !isOptional;
    })
    .map(({ purpose, name }) => ({ purpose, name }));
}

/** What the overview shows to operators. The time to find it does not depend on the amount of data. */

import type { Account, ApiKey } from './account.ts';
import type { RecordCheck } from './domain.ts';
import type { Webhook } from './webhook.ts';

/** Volumes and keys that expire within this time are shown, and an expired volume for as long. */
export const EXPIRY_WARNING_MS = 7 * 24 * 3_600_000;
/** How long a key counts as in use, and a report that was not understood is shown. */
export const RECENT_USE_MS = 24 * 3_600_000;
export const VOLUME_WARNING_FRACTION = 0.9;
export const MAX_OVERVIEW_ITEMS = 100;
/** To find the time when the next message is due. */
export const MAX_SCANNED_ACCOUNTS = 2_000;

export interface QueueStatistics {
  readonly queued: number;
  readonly sending: number;
  readonly uncertain: number;
  /** Queued or being sent, without notifications. */
  readonly oldest: { readonly id: string; readonly acceptedAt: number } | null;
}

/** RFC 8463 section 4. This record is not necessary to authenticate a domain. */
const ED25519_TAG = 'k=ed25519';

/** The domain cannot send, will soon be blocked, or has missing or wrong records. */
export interface DomainProblem {
  readonly name: string;
  readonly status: 'pending' | 'authenticated' | 'failing';
  readonly checkedAt: number | null;
  readonly failingSince: number | null;
  /** Missing or wrong at the last check, without the optional record of an Ed25519 key. */
  readonly failedRecords: readonly Pick<RecordCheck, 'purpose' | 'name'>[];
}

export interface OverviewData {
  readonly everAccepted: boolean;
  /** Of the unlocked accounts. */
  readonly nextDueAt: number | null;
  /** Locked or warned, or with a volume that is nearly used, expires soon or expired recently. */
  readonly accounts: readonly Account[];
  /**
   * Valid keys that expire soon, if they are in use or if all keys of the account do. `successor`: the newer key of a
   * rotation. A key with a successor is listed only if it was used after the rotation.
   */
  readonly keys: readonly (ApiKey & { readonly account: string; readonly successor: number | null })[];
  readonly domains: {
    readonly authenticated: number;
    readonly all: number;
    readonly problems: readonly DomainProblem[];
  };
  /** Recent ones, up to `MAX_OVERVIEW_ITEMS`. */
  readonly notUnderstoodCount: number;
  /** Disabled by the service, ordered by id, at most `MAX_OVERVIEW_ITEMS`. */
  readonly disabledWebhooks: readonly Webhook[];
}

/** Each member changes with one kind of data. It is compared only with its own earlier value. */
export interface ChangeFeedPosition {
  readonly newestId: string | null;
  readonly newestAuditId: number;
  /** Sums over all nodes. Bounces and complaints can suppress addresses. */
  readonly recentCounts: number;
  readonly suppressingCounts: number;
}

/** `checks`: the JSON of the stored results. */
export function parseFailedRecords(checks: string): DomainProblem['failedRecords'] {
  return (JSON.parse(checks) as readonly RecordCheck[])
    .filter(({ found, purpose, value }) => {
      const isOptional = purpose === 'dkim' && value.includes(ED25519_TAG);
      return (found === 'missing' || found === 'wrong') && !isOptional;
    })
    .map(({ purpose, name }) => ({ purpose, name }));
}

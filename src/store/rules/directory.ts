/** Changes of accounts, API keys and domains. The same rules serve both databases. Pure. */

import { isDeepStrictEqual } from 'node:util';
import type { Account, AccountLimits, ApiKey, ChangeResult, GuardedChangeResult } from '../../model/account.ts';
import { accountVersion } from '../../model/account-version.ts';
import {
  type DomainUpdate,
  lastAnsweredChecks,
  publishedSelectors,
  type RecordCheck,
  type SendingDomain,
} from '../../model/domain.ts';

export const UNLIMITED: AccountLimits = { volume: null, volumeExpiresAt: null, rate: null, throttle: null };

/** Values of the columns volume, volume_expires_at, rate_limit, rate_period_ms, throttle_per_s and throttle_burst. */
export function limitColumns({ volume, volumeExpiresAt, rate, throttle }: AccountLimits) {
  return [
    volume,
    volumeExpiresAt,
    rate?.limit ?? null,
    rate?.periodMs ?? null,
    throttle?.perSecond ?? null,
    throttle?.burst ?? null,
  ] as const;
}

/**
 * Why an account may not be changed: it does not exist, or it has changed since the operator read it. Null if it may.
 */
export function findChangeConflict(
  account: Account | null,
  expected: string | undefined,
): Exclude<GuardedChangeResult<Account>, { kind: 'done' }> | null {
  if (account === null) return { kind: 'missing' };
  return expected === undefined || expected === accountVersion(account) ? null : { kind: 'stale', value: account };
}

/**
 * When a rotated key expires: at the requested time, but not later than before the rotation. `missing` if the key does
 * not exist, is revoked or has expired.
 */
export function decideRotatedExpiry(old: ApiKey | null, requestedExpiry: number, now: number): ChangeResult<number> {
  if (old === null || old.revokedAt !== null || (old.expiresAt !== null && old.expiresAt <= now)) {
    return { kind: 'missing' };
  }
  return { kind: 'done', value: Math.min(requestedExpiry, old.expiresAt ?? requestedExpiry) };
}

/**
 * The last answer about each record, and whether nodes have to reload the domain. A check without a new result must not
 * make them reload it. While the domain is failing, the time of the check decides whether it is blocked, so every check
 * counts as a change.
 */
export function decideDomainUpdate(
  before: SendingDomain,
  previousChecks: readonly RecordCheck[],
  { status, authenticatedAt, failingSince, checks, keys }: DomainUpdate,
): { readonly answeredChecks: readonly RecordCheck[]; readonly needsNewRevision: boolean } {
  const answeredChecks = lastAnsweredChecks(previousChecks, checks);
  const published = publishedSelectors(before.name, keys, answeredChecks);
  const isUnchanged = isDeepStrictEqual(
    [status, authenticatedAt, failingSince, published, keys],
    [before.status, before.authenticatedAt, before.failingSince, before.published, before.keys],
  );
  return { answeredChecks, needsNewRevision: status === 'failing' || !isUnchanged };
}

/**
 * Rules for changes of accounts, API keys and domains, shared by both databases. The functions have no side effects.
 */

import { isDeepStrictEqual } from 'node:util';
import type { Account, AccountLimits, ApiKey, ChangeResult, GuardedChangeResult } from '../../model/account.ts';
import { computeAccountVersion } from '../../model/credentials.ts';
import {
  type DomainChange,
  type DomainStatus,
  type DomainUpdate,
  findPublishedSelectors,
  isReturnPathVerified,
  keepLastAnsweredChecks,
  type RecordCheck,
  type SendingDomain,
} from '../../model/domain.ts';

export const NO_LIMITS: AccountLimits = { volume: null, volumeExpiresAt: null, rate: null, throttle: null };

/**
 * Returns the values of the columns volume, volume_expires_at, rate_limit, rate_period_ms, throttle_per_s and
 * throttle_burst.
 */
export function toLimitColumns({ volume, volumeExpiresAt, rate, throttle }: AccountLimits) {
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
 * Returns the reason why an account may not be changed: the account does not exist, or it has changed since the
 * operator read it. Returns null if the change is allowed.
 */
export function findChangeConflict(
  account: Account | null,
  expected: string | undefined,
): Exclude<GuardedChangeResult<Account>, { kind: 'done' }> | null {
  if (account === null) return { kind: 'missing' };
  return expected === undefined || expected === computeAccountVersion(account)
    ? null
    : { kind: 'stale', value: account };
}

/**
 * Returns the time when the old key of a rotation expires: the requested time, or the previous expiry of the key if
 * that is earlier. Returns `missing` if the key does not exist, is revoked or has expired.
 */
export function decideRotatedExpiry(oldKey: ApiKey | null, requestedExpiry: number, now: number): ChangeResult<number> {
  if (oldKey === null || oldKey.revokedAt !== null || (oldKey.expiresAt !== null && oldKey.expiresAt <= now)) {
    return { kind: 'missing' };
  }
  return { kind: 'done', value: Math.min(requestedExpiry, oldKey.expiresAt ?? requestedExpiry) };
}

/**
 * Returns the last answered check of each record, and whether nodes must reload the domain. Nodes do not reload the
 * domain after a check without a new result. While a domain is failing, the time of the check determines whether the
 * domain is blocked, so nodes reload the domain after every check.
 */
export function decideDomainUpdate(
  before: SendingDomain,
  previousChecks: readonly RecordCheck[],
  { status, authenticatedAt, failingSince, checks, keys }: DomainUpdate,
): { readonly answeredChecks: readonly RecordCheck[]; readonly needsNewRevision: boolean } {
  const answeredChecks = keepLastAnsweredChecks(previousChecks, checks);
  const publishedSelectors = findPublishedSelectors(before.name, keys, answeredChecks);
  const isVerified = before.returnPath !== null && isReturnPathVerified(before.returnPath.name, answeredChecks);
  const isUnchanged = isDeepStrictEqual(
    [status, authenticatedAt, failingSince, publishedSelectors, isVerified, keys],
    [
      ...[before.status, before.authenticatedAt, before.failingSince, before.published],
      ...[before.returnPath?.isVerified ?? false, before.keys],
    ],
  );
  return { answeredChecks, needsNewRevision: status === 'failing' || !isUnchanged };
}

/**
 * Returns the values of a domain after a change by an operator. A new return path is not verified: the earlier checks
 * of its records are removed.
 */
export function decideDomainChange(
  before: SendingDomain,
  checks: readonly RecordCheck[],
  { subdomains = before.subdomains, returnPath = before.returnPath?.name ?? null }: DomainChange,
): Required<DomainChange> & { readonly checks: readonly RecordCheck[] } {
  const isSamePath = returnPath === (before.returnPath?.name ?? null);
  const remainingChecks = isSamePath ? checks : checks.filter(({ name }) => name !== returnPath);
  return { subdomains, returnPath, checks: remainingChecks };
}

/** Returns the new status of a domain if an event announces the change of the status; otherwise null. */
export function findStatusChange(before: DomainStatus, after: DomainStatus): 'authenticated' | 'failing' | null {
  return before === after || after === 'pending' ? null : after;
}

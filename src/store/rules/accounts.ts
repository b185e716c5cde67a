/** Rules of accounts and API keys that both databases share. Pure. */
import type { Account, AccountLimits, ApiKey, Changed, Guarded } from '../../model/account.ts';
import { accountVersion } from '../../model/account-version.ts';

export const UNLIMITED: AccountLimits = { volume: null, volumeExpiresAt: null, rate: null, throttle: null };

/** The columns volume, volume_expires_at, rate_limit, rate_period_ms, throttle_per_s and throttle_burst. */
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

/** Why an account may not be changed, or null: there is none, or it is not as the operator saw it. */
export function forbidsChange(
  account: Account | null,
  expected: string | undefined,
): Exclude<Guarded<Account>, { kind: 'done' }> | null {
  if (account === null) return { kind: 'missing' };
  return expected === undefined || expected === accountVersion(account) ? null : { kind: 'stale', value: account };
}

/**
 * When a key expires that is replaced by a new one: at the time wanted, but no later than it would have by itself. `missing` where
 * there is no such key, or none that still works.
 */
export function rotatedExpiry(old: ApiKey | null, wanted: number, now: number): Changed<number> {
  if (old === null || old.revokedAt !== null || (old.expiresAt !== null && old.expiresAt <= now)) {
    return { kind: 'missing' };
  }
  return { kind: 'done', value: Math.min(wanted, old.expiresAt ?? wanted) };
}

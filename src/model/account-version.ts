/**
 * Computes the version of an account: a hash of the fields that an operator can change (limits, thresholds, lock and
 * configuration set). A change can name the version on which it is based, and is refused if the account has another
 * version. The hash does not include usage and warnings. Pure.
 */
import { hash } from 'node:crypto';
import type { Account } from './account.ts';

const VERSION_LENGTH = 16;

/** Returns the version: the first 16 characters of a SHA-256 hash in base64url. */
export function computeAccountVersion({
  limits,
  thresholds,
  onReputation,
  locked,
  sesConfigurationSet,
}: Pick<Account, 'limits' | 'thresholds' | 'onReputation' | 'locked' | 'sesConfigurationSet'>): string {
  const { volume, volumeExpiresAt, rate, throttle } = limits;
  const fields = [
    volume,
    volumeExpiresAt,
    rate?.limit,
    rate?.periodMs,
    throttle?.perSecond,
    throttle?.burst,
    thresholds.bounceRate,
    thresholds.complaintRate,
    onReputation,
    locked?.reason,
    locked?.at,
    sesConfigurationSet,
  ];
  return hash('sha256', JSON.stringify(fields), 'base64url').slice(0, VERSION_LENGTH);
}

/**
 * The version of an account: a hash of what an operator can change. A change that names another version is refused.
 * Pure.
 */
import { hash } from 'node:crypto';
import type { Account } from './account.ts';

const VERSION_LENGTH = 16;

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

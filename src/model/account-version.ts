/**
 * The version of what an operator can change of an account: a hash of limits, thresholds and lock. A change may name the version
 * that it is based on; it is refused if the account has another version by then. Use and warnings are not part of it. Pure.
 */
import { hash } from 'node:crypto';
import type { Account } from './account.ts';

const VERSION_LENGTH = 16;

export function accountVersion({
  limits,
  thresholds,
  locked,
}: Pick<Account, 'limits' | 'thresholds' | 'locked'>): string {
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
    locked?.reason,
    locked?.at,
  ];
  return hash('sha256', JSON.stringify(fields), 'base64url').slice(0, VERSION_LENGTH);
}

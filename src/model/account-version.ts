/**
 * What an operator can change of an account, as one short word: whoever changes it may say which one they saw, and is told
 * where it is another by now. Use, warnings and times of the machine are not in it. Pure.
 */
import { hash } from 'node:crypto';
import type { Account } from './account.ts';

const LENGTH = 16;

export function accountVersion({
  limits,
  thresholds,
  locked,
}: Pick<Account, 'limits' | 'thresholds' | 'locked'>): string {
  const { volume, volumeExpiresAt, rate, throttle } = limits;
  const seen = [
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
  return hash('sha256', JSON.stringify(seen), 'base64url').slice(0, LENGTH);
}

/** Limits as the text of a form, and the fields that were changed. Only changed fields are sent, so that a form does not overwrite other changes. */
import type { AccountDetails, limitMembers, thresholdMembers } from '../../../src/operations/accounts/schemas.ts';

/** The text of each field. */
export type Limits = Readonly<Record<keyof typeof limitMembers | keyof typeof thresholdMembers, string>>;

/** A new account has no limits and the default thresholds. */
export const NO_LIMITS: Limits = {
  volume: 'unlimited',
  volumeExpires: 'never',
  rate: 'none',
  throttle: 'none',
  maxBounces: '',
  maxComplaints: '',
};

export function limitsOf(account: AccountDetails): Limits {
  return {
    volume: account.volume === null ? 'unlimited' : String(account.volume),
    volumeExpires: account.volumeExpires ?? 'never',
    rate: account.rate ?? 'none',
    throttle: account.throttle ?? 'none',
    maxBounces: percentInput(account.maxBounces),
    maxComplaints: percentInput(account.maxComplaints),
  };
}

/** The fields that differ. An empty field is no change. */
export function changedLimits(before: Limits, after: Limits): Partial<Limits> {
  const names = Object.keys(before) as (keyof Limits)[];
  const made: { -readonly [K in keyof Limits]?: string } = {};
  for (const name of names) {
    const value = after[name].trim();
    if (value !== '' && value !== before[name]) made[name] = value;
  }
  // The service resets the expiry of an unlimited volume unless the request names it.
  if (made.volume === 'unlimited' && after.volumeExpires.trim() !== 'never')
    made.volumeExpires = after.volumeExpires.trim();
  return made;
}

/** `0.0015` as `0.15%`, the format that the service accepts. */
export function percentInput(fraction: number): string {
  return `${Number((fraction * 100).toFixed(4))}%`;
}

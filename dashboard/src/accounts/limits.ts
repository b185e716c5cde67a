/** Limits as they stand in a form, and what of them was changed: only that is sent, so that nobody's change is undone unseen. */
import type { AccountDetails, limitMembers, thresholdMembers } from '../../../src/operations/accounts/schemas.ts';

/** One text for each limit that an account takes. */
export type Limits = Readonly<Record<keyof typeof limitMembers | keyof typeof thresholdMembers, string>>;

/** A new account has no limits, and the thresholds of the service. */
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
    maxBounces: percent(account.maxBounces),
    maxComplaints: percent(account.maxComplaints),
  };
}

/** The members that differ; an empty box is one that nobody has filled. */
export function changed(before: Limits, after: Limits): Partial<Limits> {
  const names = Object.keys(before) as (keyof Limits)[];
  const made: { -readonly [K in keyof Limits]?: string } = {};
  for (const name of names) {
    const value = after[name].trim();
    if (value !== '' && value !== before[name]) made[name] = value;
  }
  // An unlimited volume ends in no time either, unless that is said beside it.
  if (made.volume === 'unlimited' && after.volumeExpires.trim() !== 'never')
    made.volumeExpires = after.volumeExpires.trim();
  return made;
}

/** `0.0015` as `0.15%`, which the service reads again. */
export function percent(part: number): string {
  return `${Number((part * 100).toFixed(4))}%`;
}

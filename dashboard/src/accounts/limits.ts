/**
 * Converts limits to the texts of form fields, and determines which fields were changed. The form sends only these
 * fields, so that it does not overwrite a concurrent change of another field.
 */
import type {
  AccountDetails,
  limitMembers,
  optionMembers,
  thresholdMembers,
} from '../../../src/operations/accounts.ts';

/** The text of each field. */
export type LimitTexts = Readonly<
  Record<keyof typeof limitMembers | keyof typeof thresholdMembers | keyof typeof optionMembers, string>
>;

/** The form of a new account: no limits. An empty field stands for the default threshold. */
export const NO_LIMITS: LimitTexts = {
  volume: 'unlimited',
  volumeExpires: 'never',
  rate: 'none',
  throttle: 'none',
  maxBounces: '',
  maxComplaints: '',
  maxAge: 'none',
  onlyTo: 'any',
  unknownFields: 'ignore',
};

export function toLimitTexts(account: AccountDetails): LimitTexts {
  return {
    volume: account.volume === null ? 'unlimited' : String(account.volume),
    volumeExpires: account.volumeExpires ?? 'never',
    rate: account.rate ?? 'none',
    throttle: account.throttle ?? 'none',
    maxBounces: formatPercentInput(account.maxBounces),
    maxComplaints: formatPercentInput(account.maxComplaints),
    maxAge: account.maxAge ?? 'none',
    onlyTo: account.onlyTo?.join(', ') ?? 'any',
    unknownFields: account.unknownFields,
  };
}

/** Returns the fields that differ between `before` and `after`. An empty field counts as unchanged. */
export function findChangedLimits(before: LimitTexts, after: LimitTexts): Partial<LimitTexts> {
  const names = Object.keys(before) as (keyof LimitTexts)[];
  const changes: { -readonly [K in keyof LimitTexts]?: string } = {};
  for (const name of names) {
    const value = after[name].trim();
    if (value !== '' && value !== before[name]) changes[name] = value;
  }
  // If a request sets an unlimited volume and contains no expiry, the service resets the expiry.
  if (changes.volume === 'unlimited' && after.volumeExpires.trim() !== 'never')
    changes.volumeExpires = after.volumeExpires.trim();
  return changes;
}

/** Formats `0.0015` as `0.15%`, the format that the service accepts. */
export function formatPercentInput(fraction: number): string {
  return `${Number((fraction * 100).toFixed(4))}%`;
}

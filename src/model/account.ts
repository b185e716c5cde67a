/** Accounts: keys, limits, and the reputation thresholds that lock an account. Pure. */

import { listMatchingPatterns } from './address-pattern.ts';
import type { SendingDomain } from './domain.ts';
import type { Hold } from './hold.ts';
import type { RemainingLimits, State } from './message.ts';
import { isSimulated } from './outcome.ts';
import type { Routing } from './route.ts';
import type { SenderEntry } from './sender.ts';

export interface AccountLimits {
  /** The total number of messages; null for no limit. */
  readonly volume: number | null;
  readonly volumeExpiresAt: number | null;
  readonly rate: { readonly limit: number; readonly periodMs: number } | null;
  readonly throttle: { readonly perSecond: number; readonly burst: number } | null;
}

export const UNKNOWN_FIELDS = ['ignore', 'refuse'] as const;

export interface AccountOptions {
  /** Of a message, as time on the clock. Null: that of the installation alone. */
  readonly maxAgeMs: number | null;
  /** The patterns (address-pattern.ts) of allowed recipients. Null: any recipient. */
  readonly onlyTo: readonly string[] | null;
  /** What happens to a request with unknown members. */
  readonly unknownFields: (typeof UNKNOWN_FIELDS)[number];
}

/** An absent member stays unchanged. */
export type AccountChange = Partial<
  AccountLimits & Thresholds & AccountOptions & Pick<Account, 'onReputation' | 'sesConfigurationSet'>
>;

export interface Account extends AccountOptions {
  readonly id: number;
  readonly name: string;
  readonly createdAt: number;
  readonly locked: { readonly reason: string; readonly at: number } | null;
  /** Names the count and its limit. */
  readonly warning: string | null;
  readonly thresholds: Thresholds;
  readonly onReputation: OnReputation;
  readonly limits: AccountLimits;
  /** In order of their patterns. */
  readonly senders: readonly SenderEntry[];
  /** Null: the configuration set in POSTRIDER_TRANSPORT applies. */
  readonly sesConfigurationSet: string | null;
  readonly volumeUsed: number;
  /** Messages in the current rate period, and its start; null before the first message. */
  readonly rateUsed: number;
  readonly rateWindowAt: number | null;
}

/** The record of a secret that authenticates a client or an operator, without the secret. */
export interface Credential {
  readonly id: number;
  readonly name: string;
  /** The first characters of the secret, which identify it in lists. */
  readonly prefix: string;
  /** SHA-256 in hexadecimal. */
  readonly hash: string;
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly revokedAt: number | null;
  readonly lastUsedAt: number | null;
}

export interface ApiKey extends Credential {
  readonly accountId: number;
}

export type OperatorToken = Credential;

/** Changed accounts, keys, domains and holds for the caches of a node. Every change increases `revision`. */
export interface DirectoryChanges {
  readonly revision: number;
  readonly accounts: readonly Account[];
  readonly keys: readonly ApiKey[];
  readonly domains: readonly SendingDomain[];
  readonly removedDomains: readonly string[];
  /** All holds of the installation. Null: unchanged. */
  readonly holds: readonly Hold[] | null;
  /** Null: unchanged. */
  readonly routing: Routing | null;
}

/** Keys found by their hashes, and their accounts; at least as new as `revision`. */
export type FoundKeys = Pick<DirectoryChanges, 'revision' | 'accounts' | 'keys'>;

export type ChangeResult<T> =
  | { readonly kind: 'done'; readonly value: T }
  | { readonly kind: 'missing' }
  | { readonly kind: 'exists' };

/** `stale`: the change is based on a version that is no longer current; `value` is the current object. */
export type GuardedChangeResult<T> = ChangeResult<T> | { readonly kind: 'stale'; readonly value: T };

/** Simulator addresses, notifications and test messages of `doctor` are always allowed. `recipient` is canonical. */
export function mayReceiveFrom({ onlyTo }: Pick<AccountOptions, 'onlyTo'>, recipient: string, keyId: number): boolean {
  if (onlyTo === null || keyId < 1 || isSimulated(recipient)) return true;
  return listMatchingPatterns(recipient).some((pattern) => onlyTo.includes(pattern));
}

// Volume and rate limits are counted exactly while a batch is accepted.

export interface LimitUsage {
  readonly account: Account;
  volumeUsed: number;
  rateUsed: number;
  rateWindowAt: number | null;
}

export function toLimitUsage(account: Account): LimitUsage {
  const { volumeUsed, rateUsed, rateWindowAt } = account;
  return { account, volumeUsed, rateUsed, rateWindowAt };
}

export function countMessage(counts: LimitUsage): void {
  counts.volumeUsed += 1;
  if (counts.account.limits.rate !== null) counts.rateUsed += 1;
}

/** Returns the limit that is already reached, or null. Starts a new rate period if the last period has ended. */
export function findExceededLimit(
  counts: LimitUsage,
  now: number,
): 'volume-expired' | 'volume-exhausted' | 'rate-limit-exceeded' | null {
  const { volume, volumeExpiresAt, rate } = counts.account.limits;
  if (volumeExpiresAt !== null && now >= volumeExpiresAt) return 'volume-expired';
  if (volume !== null && counts.volumeUsed >= volume) return 'volume-exhausted';
  if (rate === null) return null;
  if (counts.rateWindowAt === null || now >= counts.rateWindowAt + rate.periodMs) {
    counts.rateWindowAt = now;
    counts.rateUsed = 0;
  }
  // If the clock was set back, the period starts now; otherwise it would last longer than configured.
  if (now < counts.rateWindowAt) counts.rateWindowAt = now;
  return counts.rateUsed >= rate.limit ? 'rate-limit-exceeded' : null;
}

const NO_LIMITS: RemainingLimits = { rate: null };

export function getRemainingLimits(counts: LimitUsage, now: number): RemainingLimits {
  const { rate } = counts.account.limits;
  if (rate === null) return NO_LIMITS;
  const remaining = Math.max(0, rate.limit - counts.rateUsed);
  const resetMs = Math.max(0, (counts.rateWindowAt ?? now) + rate.periodMs - now);
  return { rate: { ...rate, remaining, resetMs } };
}

// Hard bounces or complaints in a sliding window lock an account. Messages to simulator addresses are not counted.

export const REPUTATION_WINDOW_HOURS = 168;
export const REPUTATION_BUCKET_MS = 3_600_000;

/** Below this number maximum counts apply, because the rate of few messages is not significant. */
const MIN_MESSAGES_FOR_RATES = 100;
const MAX_COUNTS = { bounces: 10, complaints: 5 } as const;

/** Fewer complaints never lock an account. */
const MIN_COMPLAINTS = MAX_COUNTS.complaints;

export const ON_REPUTATION = ['lock', 'warn'] as const;
export type OnReputation = (typeof ON_REPUTATION)[number];

/** Fractions of the messages. 1 never locks the account. */
export interface Thresholds {
  readonly bounceRate: number;
  readonly complaintRate: number;
}

export const DEFAULT_THRESHOLDS: Thresholds = { bounceRate: 0.1, complaintRate: 0.0015 };

/** Delivered and bounced messages, recipients with a hard bounce, and recipients with a complaint. */
export interface WindowCounts {
  readonly emails: number;
  readonly bounces: number;
  readonly complaints: number;
  /** Sources (evidence.ts) that nobody could have forged. Only these lock the account. */
  readonly provenBounces: number;
  readonly provenComplaints: number;
}

type ReputationStatus =
  | { readonly kind: 'good' }
  /** At least half of a limit is reached, and the operator is warned. */
  | { readonly kind: 'warning'; readonly reason: string }
  | { readonly kind: 'lock'; readonly reason: string };

export interface ThresholdUsage {
  readonly metric: 'bounces' | 'complaints';
  readonly count: number;
  /** `rate`: `limit` is a fraction of 100 messages or more. `count`: a number. Null never locks the account. */
  readonly limitType: 'rate' | 'count';
  readonly limit: number | null;
  /** A value of 0.5 warns, and 1 locks the account. */
  readonly usage: number;
}

export function computeThresholdUsages(
  counts: Pick<WindowCounts, 'emails' | 'bounces' | 'complaints'>,
  thresholds: Thresholds,
): readonly [ThresholdUsage, ThresholdUsage] {
  const { emails, bounces, complaints } = counts;
  return [
    computeUsage('bounces', bounces, emails, thresholds.bounceRate, MAX_COUNTS.bounces),
    computeUsage('complaints', complaints, emails, thresholds.complaintRate, MAX_COUNTS.complaints),
  ];
}

function computeUsage(
  metric: ThresholdUsage['metric'],
  count: number,
  emails: number,
  rate: number,
  maxCount: number,
): ThresholdUsage {
  const limitType = emails < MIN_MESSAGES_FOR_RATES ? 'count' : 'rate';
  if (rate >= 1) return { metric, count, limitType, limit: null, usage: 0 };
  if (limitType === 'count') return { metric, count, limitType, limit: maxCount, usage: count / maxCount };
  const fraction = rate === 0 || count === 0 ? Math.min(1, count) : count / emails / rate;
  const isBelowMinimum = metric === 'complaints' && count < MIN_COMPLAINTS;
  return {
    metric,
    count,
    limitType,
    limit: rate,
    usage: isBelowMinimum ? Math.min(fraction, count / MIN_COMPLAINTS) : fraction,
  };
}

/** Proven counts decide about a lock, all counts about a warning. */
export function determineReputationStatus(
  counts: WindowCounts,
  thresholds: Thresholds,
  onReputation: OnReputation,
): ReputationStatus {
  const { emails, provenBounces, provenComplaints } = counts;
  const provenCounts = { emails, bounces: provenBounces, complaints: provenComplaints };
  const reachedUsage = computeThresholdUsages(provenCounts, thresholds).find(({ usage }) => usage >= 1);
  if (reachedUsage !== undefined && onReputation === 'lock')
    return { kind: 'lock', reason: describeUsage(reachedUsage, emails) };
  const highUsage = computeThresholdUsages(counts, thresholds).find(({ usage }) => usage >= 0.5);
  return highUsage === undefined ? { kind: 'good' } : { kind: 'warning', reason: describeUsage(highUsage, emails) };
}

function describeUsage({ metric, count, limitType, limit }: ThresholdUsage, emails: number): string {
  const noun = metric === 'bounces' ? 'hard bounces' : 'complaints';
  const limitText =
    limitType === 'count'
      ? `${limit} while there are fewer than ${MIN_MESSAGES_FOR_RATES} messages`
      : formatPercent(limit ?? 1);
  return `${count} ${count === 1 ? noun.slice(0, -1) : noun} of ${emails} messages in 7 days (${formatPercent(count / Math.max(1, emails))}; the limit is ${limitText})`;
}

/** Formats `0.0015` as `0.15 %`. */
export function formatPercent(fraction: number): string {
  return `${Number((fraction * 100).toFixed(2))} %`;
}

export type ReputationDelta = { -readonly [Count in keyof WindowCounts]: number };

type MessageDelta = Readonly<Pick<ReputationDelta, 'emails' | 'bounces' | 'complaints'>>;

const COUNTED_EMAIL: MessageDelta = { emails: 1, bounces: 0, complaints: 0 };
const HARD_BOUNCE: MessageDelta = { emails: 1, bounces: 1, complaints: 0 };
const COMPLAINED_EMAIL: MessageDelta = { emails: 1, bounces: 0, complaints: 1 };
const ASYNCHRONOUS_BOUNCE: MessageDelta = { emails: 0, bounces: 1, complaints: 0 };
const COMPLAINT_DELTA: MessageDelta = { emails: 0, bounces: 0, complaints: 1 };

/**
 * A message counts as one email at its first change to `delivered`, `bounced` or `complained`. `isNew`: the first hard
 * bounce that suppresses the recipient, or its first complaint in the window.
 */
export function getReputationDelta(from: State, to: State, isNew: boolean): MessageDelta | null {
  const wasCounted = from === 'delivered' || from === 'bounced';
  switch (to) {
    case 'delivered':
      return wasCounted ? null : COUNTED_EMAIL;
    case 'bounced':
      if (isNew) return wasCounted ? ASYNCHRONOUS_BOUNCE : HARD_BOUNCE;
      return wasCounted ? null : COUNTED_EMAIL;
    case 'complained':
      if (isNew) return wasCounted ? COMPLAINT_DELTA : COMPLAINED_EMAIL;
      return wasCounted ? null : COUNTED_EMAIL;
    case 'queued':
    case 'sending':
    case 'suppressed':
    case 'expired':
    case 'cancelled':
    case 'uncertain':
      return null;
  }
}

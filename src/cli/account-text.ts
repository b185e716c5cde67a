/** Accounts as the commands print them: JSON, tables, lines for people. Pure. */
import { formatRate, formatThrottle, isoTime } from '../config/units.ts';
import type { Account } from '../model/account.ts';
import { accountVersion } from '../model/account-version.ts';
import { measures, percent, standing, type WindowCounts } from '../model/reputation.ts';
import { span, time } from '../printing/text.ts';
import { type Cell, pairs, table } from './text.ts';

interface Usage {
  readonly volumeLeft: number | null;
  readonly volumeExpired: boolean;
  readonly rateUsed: number;
  readonly rateLeft: number | null;
  /** When the running period ends; null where none runs. */
  readonly rateResetsAt: number | null;
}

/** How much of its limits is used at `now`. */
function usageOf({ limits, volumeUsed, rateUsed, rateWindowAt }: Account, now: number): Usage {
  const running = limits.rate !== null && rateWindowAt !== null && now < rateWindowAt + limits.rate.periodMs;
  const used = running ? rateUsed : 0;
  return {
    volumeLeft: limits.volume === null ? null : Math.max(0, limits.volume - volumeUsed),
    volumeExpired: limits.volumeExpiresAt !== null && limits.volumeExpiresAt <= now,
    rateUsed: used,
    rateLeft: limits.rate === null ? null : Math.max(0, limits.rate.limit - used),
    rateResetsAt: running && limits.rate !== null ? rateWindowAt + limits.rate.periodMs : null,
  };
}

/** `counts` are those of the last 7 days, null where nobody has asked for them. */
export function accountJson(account: Account, now: number, counts: WindowCounts | null): object {
  const { limits, locked } = account;
  const usage = usageOf(account, now);
  return {
    name: account.name,
    state: locked === null ? 'active' : 'locked',
    reason: locked?.reason ?? null,
    lockedAt: isoOrNull(locked?.at ?? null),
    created: isoTime(account.createdAt),
    volume: limits.volume,
    volumeExpires: isoOrNull(limits.volumeExpiresAt),
    volumeUsed: account.volumeUsed,
    volumeLeft: usage.volumeLeft,
    rate: limits.rate === null ? null : formatRate(limits.rate),
    rateUsed: usage.rateUsed,
    rateLeft: usage.rateLeft,
    rateLimit: limits.rate?.limit ?? null,
    ratePeriodMs: limits.rate?.periodMs ?? null,
    rateResets: isoOrNull(usage.rateResetsAt),
    throttle: limits.throttle === null ? null : formatThrottle(limits.throttle),
    throttlePerSecond: limits.throttle?.perSecond ?? null,
    throttleBurst: limits.throttle?.burst ?? null,
    warning: warningOf(account, counts),
    maxBounces: account.thresholds.bounceRate,
    maxComplaints: account.thresholds.complaintRate,
    version: accountVersion(account),
    ...(counts === null ? {} : { reputation: reputationJson(counts, account) }),
  };
}

/** `reached` is the part of the limit that is used: at 1 the account locks itself; null where nothing locks it. */
function reputationJson(counts: WindowCounts, { thresholds }: Account): object {
  return { ...counts, standing: standing(counts, thresholds).kind, measures: measures(counts, thresholds) };
}

/** How near it is to locking itself by the counts of now; the stored text is of the last bounce or complaint. */
export function warningOf({ locked, warning, thresholds }: Account, counts: WindowCounts | null): string | null {
  if (counts === null || locked !== null) return warning;
  const now = standing(counts, thresholds);
  return now.kind === 'good' ? null : now.reason;
}

function isoOrNull(ms: number | null): string | null {
  return ms === null ? null : isoTime(ms);
}

/** One line of what a change may be about, for whom it was changed meanwhile. */
export function accountLine({ limits, locked, thresholds }: Account): string {
  const { volume, volumeExpiresAt, rate, throttle } = limits;
  return [
    locked === null ? 'active' : `locked (${locked.reason})`,
    `volume ${volume ?? 'unlimited'}${volumeExpiresAt === null ? '' : ` until ${time(volumeExpiresAt)}`}`,
    `rate ${rate === null ? 'none' : formatRate(rate)}`,
    `throttle ${throttle === null ? 'none' : formatThrottle(throttle)}`,
    `locks itself at ${percent(thresholds.bounceRate)} hard bounces or ${percent(thresholds.complaintRate)} complaints`,
  ].join(', ');
}

function stateOf(account: Account): Cell {
  return account.locked === null ? { text: 'active', style: 'good' } : { text: 'locked', style: 'bad' };
}

function volumeText(account: Account, now: number): string {
  const { volume, volumeExpiresAt } = account.limits;
  const usage = usageOf(account, now);
  const count = volume === null ? `unlimited (${account.volumeUsed} used)` : `${usage.volumeLeft} of ${volume} left`;
  if (volumeExpiresAt === null) return count;
  return usage.volumeExpired
    ? `${count}, expired ${time(volumeExpiresAt)}`
    : `${count}, until ${time(volumeExpiresAt)}`;
}

function rateText(account: Account, now: number): string {
  const { rate } = account.limits;
  return rate === null ? 'none' : `${formatRate(rate)} (${usageOf(account, now).rateLeft} left)`;
}

export function accountTable(accounts: readonly Account[], now: number): string {
  const rows = accounts.map((account) => {
    const { throttle } = account.limits;
    const limits = [
      volumeText(account, now),
      rateText(account, now),
      throttle === null ? 'none' : formatThrottle(throttle),
    ];
    return [account.name, stateOf(account), ...limits];
  });
  return table(['NAME', 'STATE', 'VOLUME', 'RATE', 'THROTTLE'], rows);
}

export function accountPairs(account: Account, now: number, counts: WindowCounts | null): string {
  const { throttle } = account.limits;
  const { bounceRate, complaintRate } = account.thresholds;
  const locked = account.locked === null ? [] : [['locked', lockText(account.locked, now)] as const];
  const warning = warningOf(account, counts);
  return pairs([
    ['name', account.name],
    ['state', stateOf(account)],
    ...locked,
    ['created', time(account.createdAt)],
    ['volume', volumeText(account, now)],
    ['rate', rateText(account, now)],
    ['throttle', throttle === null ? 'none' : formatThrottle(throttle)],
    ['locks itself at', `${percent(bounceRate)} hard bounces or ${percent(complaintRate)} complaints`],
    ...(counts === null ? [] : [['last 7 days', reputationText(counts)] as const]),
    ...(warning === null ? [] : [['warning', { text: warning, style: 'waiting' }] as const]),
  ]);
}

function reputationText({ emails, bounces, complaints }: WindowCounts): string {
  const many = (count: number, what: string) => `${count} ${what}${count === 1 ? '' : 's'}`;
  return [many(emails, 'email'), many(bounces, 'hard bounce'), many(complaints, 'complaint')].join(', ');
}

function lockText(locked: NonNullable<Account['locked']>, now: number): string {
  return `${span(now - locked.at)} ago: ${locked.reason}`;
}

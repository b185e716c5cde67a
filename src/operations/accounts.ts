/**
 * Accounts: what they may send, what they have sent, and whether they are locked. A change may name the version of the
 * account that its author saw; where the account has another by now, nothing changes.
 */

import {
  formatRate,
  formatThrottle,
  isoTime,
  isoTimeOrNull,
  parseCount,
  parsePercent,
  parseRate,
  parseThrottle,
  parseTimestamp,
  quote,
} from '../config/units.ts';
import {
  type Account,
  type AccountChange,
  type AccountLimits,
  formatPercent,
  type GuardedChangeResult,
  reputationStatus,
  thresholdUsage,
  type WindowCounts,
} from '../model/account.ts';
import { accountVersion } from '../model/account-version.ts';
import { Type } from '../model/schema.ts';
import { formatTime } from '../printing/text.ts';
import { AccountDetails, AccountEntry, limitMembers, thresholdMembers } from './accounts/schemas.ts';
import { conflict, type Failed, invalid, invalidTemplate, memberResult, notFound, ok, type Result } from './errors.ts';
import { parseName, parseVisibleText } from './labels.ts';
import { operation } from './operation.ts';
import { AccountName } from './schemas.ts';

const MAX_REASON_LENGTH = 500;

const Expected = Type.Optional(
  Type.String({ description: 'Only while the account has this `version`; otherwise nothing is done.' }),
);

const NO_LIMITS: AccountLimits = { volume: null, volumeExpiresAt: null, rate: null, throttle: null };

/** Makes an account with the default thresholds. */
export const createAccount = operation({
  name: 'account.create',
  id: 'createAccount',
  summary: 'Make an account',
  changes: true,
  input: Type.Object({ name: Type.String({ description: 'Its name.' }), ...limitMembers }),
  result: AccountEntry,
  errors: ['conflict'],
  async run({ name, ...given }, { store, clock }) {
    const now = clock.now();
    const named = parseName('name', name);
    if (!named.ok) return named;
    if (name === '*') {
      return invalid('name', '"*" stands for the suppression list of the whole service; choose another');
    }
    const limits = limitsOf(given, now);
    if (!limits.ok) return limits;
    return changed(name, await store.createAccount(name, { ...NO_LIMITS, ...limits.value }, now), now);
  },
});

/** Changes limits and thresholds. A new volume begins to count at zero. */
export const setAccount = operation({
  name: 'account.set',
  id: 'setAccount',
  summary: 'Change limits of an account; those left out stay',
  changes: true,
  input: Type.Object({ account: AccountName, ...limitMembers, ...thresholdMembers, expected: Expected }),
  result: AccountEntry,
  errors: ['not-found', 'conflict'],
  async run({ account, expected, ...given }, { store, clock }) {
    const now = clock.now();
    const change = changeOf(given, now);
    if (!change.ok) return change;
    return changed(account, await store.setAccount(account, change.value, now, expected), now);
  },
});

/** All accounts, in order of their names. */
export const listAccounts = operation({
  name: 'account.list',
  id: 'listAccounts',
  summary: 'List the accounts',
  changes: false,
  input: Type.Object({}),
  result: Type.Array(AccountDetails),
  errors: [],
  async run(_input, { store, clock }) {
    const now = clock.now();
    const [accounts, windows] = await Promise.all([store.listAccounts(), store.reputations(now)]);
    return ok(accounts.map((account) => toAccountDetails(account, now, windows.get(account.id) ?? NO_COUNTS)));
  },
});

/** One account. */
export const showAccount = operation({
  name: 'account.show',
  id: 'showAccount',
  summary: 'Show an account with its limits and its last 7 days',
  changes: false,
  input: Type.Object({ account: AccountName }),
  result: AccountDetails,
  errors: ['not-found'],
  async run({ account: name }, { store, clock }) {
    const now = clock.now();
    const account = (await store.listAccounts()).find((one) => one.name === name);
    if (account === undefined) return noAccount(name);
    const counts = await store.reputationOf(name, now);
    return ok(toAccountDetails(account, now, counts.kind === 'done' ? counts.value : NO_COUNTS));
  },
});

/** Refuses the keys of an account from now on, on every node within a second, and holds its queued messages. */
export const lockAccount = operation({
  name: 'account.lock',
  id: 'lockAccount',
  summary: 'Lock an account: refuse its keys and hold its queued messages',
  changes: true,
  input: Type.Object({
    account: AccountName,
    reason: Type.String({ description: 'Why, for the audit log.' }),
    expected: Expected,
  }),
  result: AccountEntry,
  errors: ['not-found', 'conflict'],
  async run({ account, reason, expected }, { store, clock }) {
    const text = parseVisibleText('reason', reason, MAX_REASON_LENGTH);
    if (!text.ok) return text;
    const now = clock.now();
    return changed(account, await store.lockAccount(account, reason, now, expected), now);
  },
});

/** Lets an account send again. Its 7 days of bounces and complaints begin anew. */
export const unlockAccount = operation({
  name: 'account.unlock',
  id: 'unlockAccount',
  summary: 'Unlock an account; its 7 days of bounces and complaints begin anew',
  changes: true,
  input: Type.Object({ account: AccountName, expected: Expected }),
  result: AccountEntry,
  errors: ['not-found', 'conflict'],
  async run({ account, expected }, { store, clock }) {
    const now = clock.now();
    return changed(account, await store.unlockAccount(account, now, expected), now);
  },
});

export function noAccount(name: string): Failed {
  return notFound('account', `there is no account ${quote(name)}; \`postrider account list\` shows them`);
}

/** What a change came to, as the operation answers it. */
function changed(name: string, answer: GuardedChangeResult<Account>, now: number): Result<AccountEntry> {
  switch (answer.kind) {
    case 'done':
      return ok(entryOf(answer.value, now));
    case 'missing':
      return noAccount(name);
    case 'exists':
      return conflict(
        'name',
        `there is an account ${quote(name)} already; choose another name, or change that one: \`postrider account set --help\``,
      );
    case 'stale':
      return conflict(
        null,
        `somebody else changed account ${quote(name)} meanwhile, so nothing was done; it is now: ${accountLine(answer.value)}`,
      );
  }
}

type GivenLimits = { readonly [member in keyof typeof limitMembers]?: string };
type GivenChange = GivenLimits & { readonly [member in keyof typeof thresholdMembers]?: string };

/** Those limits that are given. */
function limitsOf({ volume, volumeExpires, rate, throttle }: GivenLimits, now: number): Result<Partial<AccountLimits>> {
  const limits: { -readonly [K in keyof AccountLimits]?: AccountLimits[K] } = {};
  if (volume === 'unlimited') {
    // No end in number and none in time, unless volumeExpires says otherwise below.
    limits.volume = null;
    limits.volumeExpiresAt = null;
  } else if (volume !== undefined) {
    const count = memberResult('volume', parseCount(volume, 0, Number.MAX_SAFE_INTEGER));
    if (!count.ok) return count;
    limits.volume = count.value;
  }
  if (volumeExpires === 'never') limits.volumeExpiresAt = null;
  else if (volumeExpires !== undefined) {
    const moment = memberResult('volumeExpires', parseTimestamp(volumeExpires, now, 'ahead'));
    if (!moment.ok) return moment;
    limits.volumeExpiresAt = moment.value;
  }
  if (rate !== undefined) {
    const parsed = rate === 'none' ? ok(null) : memberResult('rate', parseRate(rate));
    if (!parsed.ok) return parsed;
    limits.rate = parsed.value;
  }
  if (throttle !== undefined) {
    const parsed = throttle === 'none' ? ok(null) : memberResult('throttle', parseThrottle(throttle));
    if (!parsed.ok) return parsed;
    limits.throttle = parsed.value;
  }
  return ok(limits);
}

const SETTABLE = [...Object.keys(limitMembers), ...Object.keys(thresholdMembers)];

function changeOf(given: GivenChange, now: number): Result<AccountChange> {
  const limits = limitsOf(given, now);
  if (!limits.ok) return limits;
  const change: { -readonly [K in keyof AccountChange]: AccountChange[K] } = { ...limits.value };
  const { maxBounces, maxComplaints } = given;
  if (maxBounces !== undefined) {
    const rate = memberResult('maxBounces', parsePercent(maxBounces));
    if (!rate.ok) return rate;
    change.bounceRate = rate.value;
  }
  if (maxComplaints !== undefined) {
    const rate = memberResult('maxComplaints', parsePercent(maxComplaints));
    if (!rate.ok) return rate;
    change.complaintRate = rate.value;
  }
  if (Object.keys(change).length > 0) return ok(change);
  return invalidTemplate(null, (member) => {
    const names = SETTABLE.map(member);
    return `nothing to set; give ${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
  });
}

const NO_COUNTS: WindowCounts = { emails: 0, bounces: 0, complaints: 0 };

/** How much of its limits is used at `now`. */
function usageOf({ limits, volumeUsed, rateUsed, rateWindowAt }: Account, now: number) {
  const running = limits.rate !== null && rateWindowAt !== null && now < rateWindowAt + limits.rate.periodMs;
  const used = running ? rateUsed : 0;
  return {
    volumeLeft: limits.volume === null ? null : Math.max(0, limits.volume - volumeUsed),
    rateUsed: used,
    rateLeft: limits.rate === null ? null : Math.max(0, limits.rate.limit - used),
    /** When the running period ends; null where none runs. */
    rateResetsAt: running && limits.rate !== null ? rateWindowAt + limits.rate.periodMs : null,
  };
}

function entryOf(account: Account, now: number): AccountEntry {
  const { limits, locked } = account;
  const usage = usageOf(account, now);
  return {
    name: account.name,
    state: locked === null ? 'active' : 'locked',
    reason: locked?.reason ?? null,
    lockedAt: isoTimeOrNull(locked?.at ?? null),
    created: isoTime(account.createdAt),
    volume: limits.volume,
    volumeExpires: isoTimeOrNull(limits.volumeExpiresAt),
    volumeUsed: account.volumeUsed,
    volumeLeft: usage.volumeLeft,
    rate: limits.rate === null ? null : formatRate(limits.rate),
    rateUsed: usage.rateUsed,
    rateLeft: usage.rateLeft,
    rateLimit: limits.rate?.limit ?? null,
    ratePeriodMs: limits.rate?.periodMs ?? null,
    rateResets: isoTimeOrNull(usage.rateResetsAt),
    throttle: limits.throttle === null ? null : formatThrottle(limits.throttle),
    throttlePerSecond: limits.throttle?.perSecond ?? null,
    throttleBurst: limits.throttle?.burst ?? null,
    warning: account.warning,
    maxBounces: account.thresholds.bounceRate,
    maxComplaints: account.thresholds.complaintRate,
    version: accountVersion(account),
  };
}

/** `counts` are those of the last 7 days. */
export function toAccountDetails(account: Account, now: number, counts: WindowCounts): AccountDetails {
  const { thresholds } = account;
  const entry = entryOf(account, now);
  const { emails, bounces, complaints } = counts;
  return {
    ...entry,
    warning: warningOf(account, counts),
    reputation: {
      emails,
      bounces,
      complaints,
      status: reputationStatus(counts, thresholds).kind,
      thresholds: [...thresholdUsage(counts, thresholds)],
    },
  };
}

/** How near it is to locking itself by the counts of now; the stored text is of the last bounce or complaint. */
function warningOf({ locked, warning, thresholds }: Account, counts: WindowCounts): string | null {
  if (locked !== null) return warning;
  const now = reputationStatus(counts, thresholds);
  return now.kind === 'good' ? null : now.reason;
}

/** One line of what a change may be about, for whom it was changed meanwhile. */
function accountLine({ limits, locked, thresholds }: Account): string {
  const { volume, volumeExpiresAt, rate, throttle } = limits;
  return [
    locked === null ? 'active' : `locked (${locked.reason})`,
    `volume ${volume ?? 'unlimited'}${volumeExpiresAt === null ? '' : ` until ${formatTime(volumeExpiresAt)}`}`,
    `rate ${rate === null ? 'none' : formatRate(rate)}`,
    `throttle ${throttle === null ? 'none' : formatThrottle(throttle)}`,
    `locks itself at ${formatPercent(thresholds.bounceRate)} hard bounces or ${formatPercent(thresholds.complaintRate)} complaints`,
  ].join(', ');
}

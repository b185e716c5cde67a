/** The operations on accounts: limits, usage, reputation and lock. */
import type { Static } from 'typebox';
import { isRelayParameterValue, RELAY_PARAMETER_FORM_TEXT } from '../config/relay-parameter.ts';
import {
  formatIsoTime,
  formatIsoTimeOrNull,
  formatRate,
  formatThrottle,
  parseCount,
  parsePercent,
  parseRate,
  parseThrottle,
  parseTimestamp,
  quote,
} from '../config/units.ts';
import { findTransportProvider } from '../domains/setup.ts';
import {
  type Account,
  type AccountChange,
  type AccountLimits,
  computeThresholdUsages,
  determineReputationStatus,
  formatPercent,
  type GuardedChangeResult,
  ON_REPUTATION,
  type WindowCounts,
} from '../model/account.ts';
import { computeAccountVersion } from '../model/account-version.ts';
import { Type } from '../model/schema.ts';
import { formatTime } from '../printing/text.ts';
import {
  createAccountNotFound,
  createConflict,
  createInvalid,
  createInvalidTemplate,
  ok,
  type Result,
  toMemberResult,
} from './errors.ts';
import { parseName, parseVisibleText } from './input.ts';
import { defineOperation } from './operation.ts';
import { AccountName, createNullable, createStringEnum, Time } from './schemas.ts';

/** The input members that set the limits of an account. */
export const limitMembers = {
  volume: Type.Optional(
    Type.String({ description: 'The number of messages that may be sent from now on, or `unlimited`.' }),
  ),
  volumeExpires: Type.Optional(
    Type.String({
      description: 'A date (UTC), a duration such as `30d`, or `never`. After this time, no message is accepted.',
    }),
  ),
  rate: Type.Optional(
    Type.String({
      description: 'A rate limit such as `1000/1h`, or `none`. Messages above the limit are refused with 403.',
    }),
  ),
  throttle: Type.Optional(
    Type.String({
      description:
        'A throttle such as `50/s` or `50/s:200` (with burst), or `none`. Requests above the limit are refused with 429.',
    }),
  ),
};
export const thresholdMembers = {
  maxBounces: Type.Optional(
    Type.String({
      description: 'The rate of hard bounces in 7 days that locks the account, such as `10%`; `100%` never locks it.',
    }),
  ),
  maxComplaints: Type.Optional(
    Type.String({
      description: 'The rate of complaints in 7 days that locks the account, such as `0.15%`; `100%` never locks it.',
    }),
  ),
};

export const reputationMembers = {
  onReputation: Type.Optional(
    createStringEnum(ON_REPUTATION, {
      description: '`lock` locks the account at a threshold (the default); `warn` never locks it.',
    }),
  ),
};

export const providerMembers = {
  sesConfigurationSet: Type.Optional(
    Type.String({
      minLength: 0,
      description:
        'The configuration set of Amazon SES for messages of the account; `none` or an empty value removes it, and the set of the transport applies.',
    }),
  ),
};

const Reputation = Type.Object(
  {
    emails: Type.Integer({ description: 'Messages that the next hop accepted or permanently refused.' }),
    bounces: Type.Integer({ description: 'Recipients that hard bounced.' }),
    complaints: Type.Integer({ description: 'Messages that the recipient reported as spam.' }),
    provenBounces: Type.Integer({
      description:
        'Organizations, or mailboxes at large mailbox providers, whose hard bounces were replies of the next hop or authenticated reports. Only these lock the account.',
    }),
    provenComplaints: Type.Integer({ description: 'As `provenBounces`, for complaints.' }),
    status: createStringEnum(['good', 'warning', 'lock'], {
      description: '`warning` if a count is at least half of its limit.',
    }),
    thresholds: Type.Array(
      Type.Object({
        metric: createStringEnum(['bounces', 'complaints']),
        count: Type.Integer(),
        limitType: createStringEnum(['rate', 'count'], {
          description: '`count` if fewer than 100 messages are counted, otherwise `rate`.',
        }),
        limit: createNullable(
          Type.Number({ description: 'A fraction or a count; null if this metric never locks the account.' }),
        ),
        usage: Type.Number({
          description: 'The used fraction of the limit. The account is locked when the proven count reaches the limit.',
        }),
      }),
    ),
  },
  { description: 'The counts of the last 7 days.' },
);

const accountMembers = {
  name: Type.String(),
  state: createStringEnum(['active', 'locked']),
  reason: createNullable(Type.String({ description: 'The reason for the lock.' })),
  lockedAt: createNullable(Time),
  created: Time,
  volume: createNullable(Type.Integer({ description: 'The number of messages that may be sent; null: unlimited.' })),
  volumeExpires: createNullable(Time),
  volumeUsed: Type.Integer(),
  volumeLeft: createNullable(Type.Integer()),
  rate: createNullable(Type.String({ description: 'The rate limit, such as `1000/1h`; null: no limit.' })),
  rateUsed: Type.Integer(),
  rateLeft: createNullable(Type.Integer()),
  rateLimit: createNullable(Type.Integer()),
  ratePeriodMs: createNullable(Type.Integer()),
  rateResets: createNullable(
    Type.String({ format: 'date-time', description: 'The end of the current period; null if no period is running.' }),
  ),
  throttle: createNullable(Type.String({ description: 'The throttle, such as `50/s:200`; null: no limit.' })),
  throttlePerSecond: createNullable(Type.Integer()),
  throttleBurst: createNullable(Type.Integer()),
  warning: createNullable(Type.String({ description: 'The counts that are at or above half of a lock threshold.' })),
  maxBounces: Type.Number({ description: 'The fraction of hard bounces that locks the account; 1 never locks it.' }),
  maxComplaints: Type.Number({ description: 'The fraction of complaints that locks the account; 1 never locks it.' }),
  onReputation: createStringEnum(ON_REPUTATION, {
    description: '`warn` if the account is never locked at a threshold.',
  }),
  sesConfigurationSet: createNullable(
    Type.String({ description: 'The configuration set of Amazon SES; null: the set of the transport.' }),
  ),
  version: Type.String({
    description:
      'A value that differs after each change of limits, thresholds, configuration set or lock. A request can pass it as `expected`.',
  }),
};
/** An account in the result of a change. */
export const AccountEntry = Type.Object(accountMembers);
export type AccountEntry = Static<typeof AccountEntry>;
/** An account with the counts of the last 7 days. */
export const AccountDetails = Type.Object({ ...accountMembers, reputation: Reputation });
export type AccountDetails = Static<typeof AccountDetails>;

const MAX_REASON_LENGTH = 500;

const ExpectedVersion = Type.Optional(
  Type.String({
    description:
      'The `version` of the account that the change is based on. If the stored version differs, the request fails with a conflict.',
  }),
);

const NO_LIMITS: AccountLimits = { volume: null, volumeExpiresAt: null, rate: null, throttle: null };

/** Creates an account with the default thresholds. */
export const createAccount = defineOperation({
  name: 'account.create',
  id: 'createAccount',
  summary: 'Create an account',
  makesChange: true,
  role: 'operator',
  readsContent: false,
  input: Type.Object({ name: Type.String({ description: 'The name of the account.' }), ...limitMembers }),
  result: AccountEntry,
  errors: ['conflict'],
  async run({ name, ...input }, { store, clock }) {
    const now = clock.now();
    const parsedName = parseName('name', name);
    if (!parsedName.ok) return parsedName;
    if (name === '*') {
      return createInvalid('name', '"*" names the suppression list of the whole service; choose another name');
    }
    const limits = parseLimits(input, now);
    if (!limits.ok) return limits;
    return toChangeResult(name, await store.createAccount(name, { ...NO_LIMITS, ...limits.value }, now), now);
  },
});

/**
 * Changes limits, thresholds and the configuration set of Amazon SES. A new volume resets the count of used messages to
 * zero.
 */
export const setAccount = defineOperation({
  name: 'account.set',
  id: 'setAccount',
  summary: 'Change limits, thresholds and configuration set of an account; omitted members do not change',
  makesChange: true,
  role: 'operator',
  readsContent: false,
  input: Type.Object({
    account: AccountName,
    ...limitMembers,
    ...thresholdMembers,
    ...reputationMembers,
    ...providerMembers,
    expected: ExpectedVersion,
  }),
  result: AccountEntry,
  errors: ['not-found', 'conflict'],
  async run({ account, expected, ...input }, { store, clock, settings, warn }) {
    const now = clock.now();
    const change = parseChange(input, now);
    if (!change.ok) return change;
    const result = toChangeResult(account, await store.setAccount(account, change.value, now, expected), now);
    const configurationSet = change.value.sesConfigurationSet ?? null;
    if (result.ok && configurationSet !== null && findTransportProvider(settings.transport)?.name !== 'ses')
      warn(
        'configuration-set',
        `the configuration set ${configurationSet} has no effect: POSTRIDER_TRANSPORT is not Amazon SES; send through SES, or remove the configuration set`,
      );
    return result;
  },
});

/** Lists all accounts by name. */
export const listAccounts = defineOperation({
  name: 'account.list',
  id: 'listAccounts',
  summary: 'List the accounts',
  makesChange: false,
  role: 'viewer',
  readsContent: false,
  input: Type.Object({}),
  result: Type.Array(AccountDetails),
  errors: [],
  async run(_input, { store, clock }) {
    const now = clock.now();
    const [accounts, countsByAccount] = await Promise.all([store.listAccounts(), store.readAllReputations(now)]);
    return ok(
      accounts.map((account) => toAccountDetails(account, now, countsByAccount.get(account.id) ?? ZERO_COUNTS)),
    );
  },
});

/** Shows one account. */
export const showAccount = defineOperation({
  name: 'account.show',
  id: 'showAccount',
  summary: 'Show an account with its limits and the counts of the last 7 days',
  makesChange: false,
  role: 'viewer',
  readsContent: false,
  input: Type.Object({ account: AccountName }),
  result: AccountDetails,
  errors: ['not-found'],
  async run({ account: name }, { store, clock }) {
    const now = clock.now();
    const account = (await store.listAccounts()).find((candidate) => candidate.name === name);
    if (account === undefined) return createAccountNotFound(name);
    const counts = await store.readReputation(name, now);
    return ok(toAccountDetails(account, now, counts.kind === 'done' ? counts.value : ZERO_COUNTS));
  },
});

/**
 * Locks an account. Every node refuses the keys of the account within one second, and the queued messages of the
 * account wait.
 */
export const lockAccount = defineOperation({
  name: 'account.lock',
  id: 'lockAccount',
  summary: 'Lock an account: refuse its keys and stop delivery of its queued messages',
  makesChange: true,
  role: 'operator',
  readsContent: false,
  input: Type.Object({
    account: AccountName,
    reason: Type.String({ description: 'The reason, for the audit log.' }),
    expected: ExpectedVersion,
  }),
  result: AccountEntry,
  errors: ['not-found', 'conflict'],
  async run({ account, reason, expected }, { store, clock }) {
    const parsedReason = parseVisibleText('reason', reason, MAX_REASON_LENGTH);
    if (!parsedReason.ok) return parsedReason;
    const now = clock.now();
    return toChangeResult(account, await store.lockAccount(account, reason, now, expected), now);
  },
});

/** Unlocks an account and resets its counts of bounces and complaints. */
export const unlockAccount = defineOperation({
  name: 'account.unlock',
  id: 'unlockAccount',
  summary: 'Unlock an account and reset its counts of bounces and complaints',
  makesChange: true,
  role: 'operator',
  readsContent: false,
  input: Type.Object({ account: AccountName, expected: ExpectedVersion }),
  result: AccountEntry,
  errors: ['not-found', 'conflict'],
  async run({ account, expected }, { store, clock }) {
    const now = clock.now();
    return toChangeResult(account, await store.unlockAccount(account, now, expected), now);
  },
});

/** Converts the store's result of a change to the result of an operation. */
function toChangeResult(name: string, result: GuardedChangeResult<Account>, now: number): Result<AccountEntry> {
  switch (result.kind) {
    case 'done':
      return ok(toAccountEntry(result.value, now));
    case 'missing':
      return createAccountNotFound(name);
    case 'exists':
      return createConflict(
        'name',
        `account ${quote(name)} already exists; choose another name, or change the account: \`postrider account set --help\``,
      );
    case 'stale':
      return createConflict(
        null,
        `account ${quote(name)} was changed by another request, so this change was not made; compare the current values and repeat the change: ${describeAccount(result.value)}`,
      );
  }
}

type LimitsInput = { readonly [member in keyof typeof limitMembers]?: string };
type AccountChangeInput = LimitsInput & {
  readonly [member in keyof typeof thresholdMembers | keyof typeof providerMembers]?: string;
} & Pick<AccountChange, 'onReputation'>;

/** Parses the limits that the input contains. */
function parseLimits(
  { volume, volumeExpires, rate, throttle }: LimitsInput,
  now: number,
): Result<Partial<AccountLimits>> {
  const limits: { -readonly [K in keyof AccountLimits]?: AccountLimits[K] } = {};
  if (volume === 'unlimited') {
    // The value `unlimited` also removes the expiry, unless `volumeExpires` sets a new expiry.
    limits.volume = null;
    limits.volumeExpiresAt = null;
  } else if (volume !== undefined) {
    const count = toMemberResult('volume', parseCount(volume, 0, Number.MAX_SAFE_INTEGER));
    if (!count.ok) return count;
    limits.volume = count.value;
  }
  if (volumeExpires === 'never') limits.volumeExpiresAt = null;
  else if (volumeExpires !== undefined) {
    const expiry = toMemberResult('volumeExpires', parseTimestamp(volumeExpires, now, 'ahead'));
    if (!expiry.ok) return expiry;
    limits.volumeExpiresAt = expiry.value;
  }
  if (rate !== undefined) {
    const rateResult = rate === 'none' ? ok(null) : toMemberResult('rate', parseRate(rate));
    if (!rateResult.ok) return rateResult;
    limits.rate = rateResult.value;
  }
  if (throttle !== undefined) {
    const throttleResult = throttle === 'none' ? ok(null) : toMemberResult('throttle', parseThrottle(throttle));
    if (!throttleResult.ok) return throttleResult;
    limits.throttle = throttleResult.value;
  }
  return ok(limits);
}

const SETTABLE_MEMBERS = [limitMembers, thresholdMembers, reputationMembers, providerMembers].flatMap((members) =>
  Object.keys(members),
);

function parseChange(input: AccountChangeInput, now: number): Result<AccountChange> {
  const limits = parseLimits(input, now);
  if (!limits.ok) return limits;
  const change: { -readonly [K in keyof AccountChange]: AccountChange[K] } = { ...limits.value };
  const { maxBounces, maxComplaints, onReputation, sesConfigurationSet } = input;
  if (onReputation !== undefined) change.onReputation = onReputation;
  if (sesConfigurationSet !== undefined) {
    const isRemoved = sesConfigurationSet === '' || sesConfigurationSet === 'none';
    if (!isRemoved && !isRelayParameterValue(sesConfigurationSet))
      return createInvalid(
        'sesConfigurationSet',
        `${quote(sesConfigurationSet)} is not ${RELAY_PARAMETER_FORM_TEXT}; give the name of a configuration set of Amazon SES, or none to remove it`,
      );
    change.sesConfigurationSet = isRemoved ? null : sesConfigurationSet;
  }
  if (maxBounces !== undefined) {
    const rate = toMemberResult('maxBounces', parsePercent(maxBounces));
    if (!rate.ok) return rate;
    change.bounceRate = rate.value;
  }
  if (maxComplaints !== undefined) {
    const rate = toMemberResult('maxComplaints', parsePercent(maxComplaints));
    if (!rate.ok) return rate;
    change.complaintRate = rate.value;
  }
  if (Object.keys(change).length > 0) return ok(change);
  return createInvalidTemplate(null, (member) => {
    const names = SETTABLE_MEMBERS.map(member);
    return `there is nothing to change; give ${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
  });
}

const ZERO_COUNTS: WindowCounts = { emails: 0, bounces: 0, complaints: 0, provenBounces: 0, provenComplaints: 0 };

/** Returns the usage of the limits at `now`. */
function getLimitUsage({ limits, volumeUsed, rateUsed, rateWindowAt }: Account, now: number) {
  const hasCurrentPeriod = limits.rate !== null && rateWindowAt !== null && now < rateWindowAt + limits.rate.periodMs;
  const currentRateUsed = hasCurrentPeriod ? rateUsed : 0;
  return {
    volumeLeft: limits.volume === null ? null : Math.max(0, limits.volume - volumeUsed),
    rateUsed: currentRateUsed,
    rateLeft: limits.rate === null ? null : Math.max(0, limits.rate.limit - currentRateUsed),
    /** The end of the current rate period. Null if no period is running. */
    rateResetsAt: hasCurrentPeriod && limits.rate !== null ? rateWindowAt + limits.rate.periodMs : null,
  };
}

function toAccountEntry(account: Account, now: number): AccountEntry {
  const { limits, locked } = account;
  const usage = getLimitUsage(account, now);
  return {
    name: account.name,
    state: locked === null ? 'active' : 'locked',
    reason: locked?.reason ?? null,
    lockedAt: formatIsoTimeOrNull(locked?.at ?? null),
    created: formatIsoTime(account.createdAt),
    volume: limits.volume,
    volumeExpires: formatIsoTimeOrNull(limits.volumeExpiresAt),
    volumeUsed: account.volumeUsed,
    volumeLeft: usage.volumeLeft,
    rate: limits.rate === null ? null : formatRate(limits.rate),
    rateUsed: usage.rateUsed,
    rateLeft: usage.rateLeft,
    rateLimit: limits.rate?.limit ?? null,
    ratePeriodMs: limits.rate?.periodMs ?? null,
    rateResets: formatIsoTimeOrNull(usage.rateResetsAt),
    throttle: limits.throttle === null ? null : formatThrottle(limits.throttle),
    throttlePerSecond: limits.throttle?.perSecond ?? null,
    throttleBurst: limits.throttle?.burst ?? null,
    warning: account.warning,
    maxBounces: account.thresholds.bounceRate,
    maxComplaints: account.thresholds.complaintRate,
    onReputation: account.onReputation,
    sesConfigurationSet: account.sesConfigurationSet,
    version: computeAccountVersion(account),
  };
}

/** Builds the details of an account. `counts` are the counts of the last 7 days. */
export function toAccountDetails(account: Account, now: number, counts: WindowCounts): AccountDetails {
  const { thresholds, onReputation } = account;
  const entry = toAccountEntry(account, now);
  const { emails, bounces, complaints, provenBounces, provenComplaints } = counts;
  return {
    ...entry,
    warning: getCurrentWarning(account, counts),
    reputation: {
      emails,
      bounces,
      complaints,
      provenBounces,
      provenComplaints,
      status: determineReputationStatus(counts, thresholds, onReputation).kind,
      thresholds: [...computeThresholdUsages(counts, thresholds)],
    },
  };
}

/**
 * Returns the warning for the current counts. The stored warning contains the counts at the last bounce or complaint.
 */
function getCurrentWarning(
  { locked, warning, thresholds, onReputation }: Account,
  counts: WindowCounts,
): string | null {
  if (locked !== null) return warning;
  const status = determineReputationStatus(counts, thresholds, onReputation);
  return status.kind === 'good' ? null : status.reason;
}

/** Describes limits, thresholds, configuration set and lock in one line, for the error of a conflicting change. */
function describeAccount({ limits, locked, thresholds, onReputation, sesConfigurationSet }: Account): string {
  const { volume, volumeExpiresAt, rate, throttle } = limits;
  return [
    locked === null ? 'active' : `locked (${locked.reason})`,
    `volume ${volume ?? 'unlimited'}${volumeExpiresAt === null ? '' : ` until ${formatTime(volumeExpiresAt)}`}`,
    `rate ${rate === null ? 'none' : formatRate(rate)}`,
    `throttle ${throttle === null ? 'none' : formatThrottle(throttle)}`,
    `${onReputation} thresholds: ${formatPercent(thresholds.bounceRate)} hard bounces, ${formatPercent(thresholds.complaintRate)} complaints`,
    ...(sesConfigurationSet === null ? [] : [`configuration set ${sesConfigurationSet}`]),
  ].join(', ');
}

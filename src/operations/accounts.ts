/** The operations on accounts: limits, usage, reputation and lock. */
import type { Static, TObject } from 'typebox';
import {
  createFault,
  createParseResult,
  formatDurationSetting,
  formatRate,
  formatThrottle,
  isRelayParameterValue,
  type ParseResult,
  parseCount,
  parseDuration,
  parsePercent,
  parseRate,
  parseThrottle,
  parseTimestamp,
  quote,
  RELAY_PARAMETER_FORM_TEXT,
} from '../config/units.ts';
import { hasProviderRoute } from '../domains/setup.ts';
import {
  type Account,
  type AccountChange,
  type AccountLimits,
  computeThresholdUsages,
  determineReputationStatus,
  formatPercent,
  type GuardedChangeResult,
  ON_REPUTATION,
  UNKNOWN_FIELDS,
  type WindowCounts,
} from '../model/account.ts';
import { parseAddressPattern } from '../model/address-pattern.ts';
import { computeAccountVersion } from '../model/credentials.ts';
import { formatIsoTime, formatIsoTimeOrNull, formatTime } from '../printing/text.ts';
import { createAccountNotFound, createConflict, createInvalidTemplate, ok, type Result } from './errors.ts';
import { splitList } from './input.ts';
import { changes, defineOperation, reads } from './operation.ts';
import { AccountName, createParsed, type ParseText, parseName, parseVisibleText, Time, Type } from './schemas.ts';

function createClearable<T>(description: string, noneTexts: readonly string[], parse: ParseText<T>) {
  // The operation checks empty texts, because an empty text can clear a member.
  return Type.OptionalParsed<T | null>({ minLength: 0, description }, (text, now) =>
    noneTexts.includes(text) ? createParseResult(null) : parse(text, now),
  );
}

export const limitMembers = {
  volume: createClearable(
    'The number of messages that may be sent from now on, or `unlimited`.',
    ['unlimited'],
    (text) => parseCount(text, 0, Number.MAX_SAFE_INTEGER),
  ),
  volumeExpires: createClearable(
    'A date (UTC), a duration such as `30d`, or `never`. After this time, no message is accepted.',
    ['never'],
    (text, now) => parseTimestamp(text, now, 'ahead'),
  ),
  rate: createClearable(
    'A rate limit such as `1000/1h`, or `none`. Messages above the limit are refused with 403.',
    ['none'],
    parseRate,
  ),
  throttle: createClearable(
    'A throttle such as `50/s` or `50/s:200` (with burst), or `none`. Requests above the limit are refused with 429.',
    ['none'],
    parseThrottle,
  ),
};
export const thresholdMembers = {
  maxBounces: Type.OptionalParsed(
    'The rate of hard bounces in 7 days that locks the account, such as `10%`; `100%` never locks it.',
    parsePercent,
  ),
  maxComplaints: Type.OptionalParsed(
    'The rate of complaints in 7 days that locks the account, such as `0.15%`; `100%` never locks it.',
    parsePercent,
  ),
};

/** So that a recipient is compared with few patterns. */
const MAX_ONLY_TO = 100;
/** Shorter than any retry would be useful. */
const MIN_MAX_AGE_MS = 1_000;

export const optionMembers = {
  maxAge: createClearable(
    'The maximum age of a message, such as `10m`; `none` or the maximum age of the installation, if that is earlier.',
    ['none'],
    (text) => {
      const maxAge = parseDuration(text);
      return maxAge.ok && maxAge.value < MIN_MAX_AGE_MS
        ? createFault(`${quote(text)} is less than 1s; give a duration such as 10m, or none`)
        : maxAge;
    },
  ),
  onlyTo: createClearable(
    'The allowed recipients: addresses, `@example.com` (that domain alone) and `@*.example.com` (its subdomains), separated by commas; `any` allows every recipient. Messages to others are suppressed.',
    ['any'],
    parseOnlyTo,
  ),
  unknownFields: Type.Optional(
    Type.Enum(UNKNOWN_FIELDS, '`refuse` answers a request with unknown members with 400; the default is `ignore`.'),
  ),
};

function parseOnlyTo(text: string): ParseResult<readonly string[]> {
  const patterns: string[] = [];
  for (const entry of splitList(text)) {
    const pattern = parseAddressPattern(entry);
    if (!pattern.ok) return pattern;
    patterns.push(pattern.value);
  }
  if (patterns.length === 0) return createFault('names no recipient; give addresses or domains, or any');
  return patterns.length > MAX_ONLY_TO
    ? createFault(`has ${patterns.length} entries; the maximum is ${MAX_ONLY_TO}`)
    : createParseResult(patterns);
}

const settableMembers = {
  ...limitMembers,
  ...thresholdMembers,
  ...optionMembers,
  onReputation: Type.Optional(
    Type.Enum(ON_REPUTATION, '`lock` locks the account at a threshold (the default); `warn` never locks it.'),
  ),
  sesConfigurationSet: createClearable(
    'The configuration set of Amazon SES for messages of the account; `none` or an empty value removes it, and the set of the transport applies.',
    ['', 'none'],
    (text) =>
      isRelayParameterValue(text)
        ? createParseResult(text)
        : createFault(
            `${quote(text)} is not ${RELAY_PARAMETER_FORM_TEXT}; give the name of a configuration set of Amazon SES, or none to remove it`,
          ),
  ),
};

const Reputation = Type.Object(
  {
    emails: Type.Integer('Messages that the next hop accepted or permanently refused.'),
    bounces: Type.Integer('Recipients that hard bounced.'),
    complaints: Type.Integer('Messages that the recipient reported as spam.'),
    provenBounces: Type.Integer(
      'Organizations, or mailboxes at large mailbox providers, whose hard bounces were replies of the next hop or authenticated reports. Only these lock the account.',
    ),
    provenComplaints: Type.Integer('As `provenBounces`, for complaints.'),
    status: Type.Enum(['good', 'warning', 'lock'], '`warning` if a count is at least half of its limit.'),
    thresholds: Type.Array(
      Type.Object({
        metric: Type.Enum(['bounces', 'complaints']),
        count: Type.Integer(),
        limitType: Type.Enum(['rate', 'count'], '`count` if fewer than 100 messages are counted, otherwise `rate`.'),
        limit: Type.NullableNumber('A fraction or a count; null if this metric never locks the account.'),
        usage: Type.Number(
          'The used fraction of the limit. The account is locked when the proven count reaches the limit.',
        ),
      }),
    ),
  },
  'The counts of the last 7 days.',
);

const accountMembers = {
  name: Type.String(),
  state: Type.Enum(['active', 'locked']),
  reason: Type.NullableString('The reason for the lock.'),
  lockedAt: Type.Nullable(Time),
  created: Time,
  volume: Type.NullableInteger('The number of messages that may be sent; null: unlimited.'),
  volumeExpires: Type.Nullable(Time),
  volumeUsed: Type.Integer(),
  volumeLeft: Type.Nullable(Type.Integer()),
  rate: Type.NullableString('The rate limit, such as `1000/1h`; null: no limit.'),
  rateUsed: Type.Integer(),
  rateLeft: Type.Nullable(Type.Integer()),
  rateLimit: Type.Nullable(Type.Integer()),
  ratePeriodMs: Type.Nullable(Type.Integer()),
  rateResets: Type.NullableTime('The end of the current period; null if no period is running.'),
  throttle: Type.NullableString('The throttle, such as `50/s:200`; null: no limit.'),
  throttlePerSecond: Type.Nullable(Type.Integer()),
  throttleBurst: Type.Nullable(Type.Integer()),
  warning: Type.NullableString('The counts that are at or above half of a lock threshold.'),
  maxBounces: Type.Number('The fraction of hard bounces that locks the account; 1 never locks it.'),
  maxComplaints: Type.Number('The fraction of complaints that locks the account; 1 never locks it.'),
  onReputation: Type.Enum(ON_REPUTATION, '`warn` if the account is never locked at a threshold.'),
  sesConfigurationSet: Type.NullableString('The configuration set of Amazon SES; null: the set of the transport.'),
  maxAge: Type.NullableString('The maximum age of a message, such as `10m`; null: that of the installation.'),
  onlyTo: Type.Nullable(Type.Array(Type.String(), 'The allowed recipients; null: any.')),
  unknownFields: Type.Enum(UNKNOWN_FIELDS, '`refuse` if requests with unknown members are refused.'),
  version: Type.String(
    'A value that differs after each change of the settings or the lock. A request can pass it as `expected`.',
  ),
};
export const AccountEntry = Type.Object(accountMembers);
export type AccountEntry = Static<typeof AccountEntry>;
export const AccountDetails = Type.Object({ ...accountMembers, reputation: Reputation });
export type AccountDetails = Static<typeof AccountDetails>;

const MAX_REASON_LENGTH = 500;

const ExpectedVersion = Type.OptionalString(
  'The `version` of the account that the change is based on. If the stored version differs, the request fails with a conflict.',
);

const NO_LIMITS: AccountLimits = { volume: null, volumeExpiresAt: null, rate: null, throttle: null };

export const createAccount = defineOperation({
  name: 'account.create',
  id: 'createAccount',
  summary: 'Create an account',
  ...changes('operator'),
  input: Type.Object({
    name: createParsed('The name of the account.', (name) =>
      name === '*'
        ? createFault('"*" names the suppression list of the whole service; choose another name')
        : parseName(name),
    ),
    ...limitMembers,
  }),
  result: AccountEntry,
  errors: ['conflict'],
  async run({ name, ...limits }, { store, clock }) {
    const now = clock.now();
    return toChangeResult(name, await store.createAccount(name, { ...NO_LIMITS, ...toLimits(limits) }, now), now);
  },
});

export const setAccount = defineOperation({
  name: 'account.set',
  id: 'setAccount',
  summary: 'Change limits, thresholds and options of an account; omitted members do not change',
  ...changes('operator'),
  input: Type.Object({ account: AccountName, ...settableMembers, expected: ExpectedVersion }),
  result: AccountEntry,
  errors: ['not-found', 'conflict'],
  async run({ account, expected, ...input }, { store, clock, settings, warn }) {
    if (Object.keys(input).length === 0)
      return createInvalidTemplate(null, (member) => {
        const names = Object.keys(settableMembers).map(member);
        return `there is nothing to change; give ${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
      });
    const now = clock.now();
    const { maxBounces, maxComplaints, onReputation, sesConfigurationSet, ...others } = input;
    const { maxAge, onlyTo, unknownFields, ...limits } = others;
    const change: AccountChange = {
      ...toLimits(limits),
      ...(onReputation === undefined ? {} : { onReputation }),
      ...(sesConfigurationSet === undefined ? {} : { sesConfigurationSet }),
      ...(maxBounces === undefined ? {} : { bounceRate: maxBounces }),
      ...(maxComplaints === undefined ? {} : { complaintRate: maxComplaints }),
      ...(maxAge === undefined ? {} : { maxAgeMs: maxAge }),
      ...(onlyTo === undefined ? {} : { onlyTo }),
      ...(unknownFields === undefined ? {} : { unknownFields }),
    };
    const result = toChangeResult(account, await store.setAccount(account, change, now, expected), now);
    if (result.ok && typeof sesConfigurationSet === 'string' && !hasProviderRoute(settings.routes, 'ses'))
      warn(
        'configuration-set',
        `the configuration set ${sesConfigurationSet} has no effect: no route is Amazon SES; send through SES, or remove the configuration set`,
      );
    return result;
  },
});

export const listAccounts = defineOperation({
  name: 'account.list',
  id: 'listAccounts',
  summary: 'List the accounts',
  ...reads('viewer'),
  input: Type.Object({}),
  result: Type.Array(AccountDetails),
  async run(_input, { store, clock }) {
    const now = clock.now();
    const [accounts, countsByAccount] = await Promise.all([store.listAccounts(), store.readAllReputations(now)]);
    return ok(
      accounts.map((account) => toAccountDetails(account, now, countsByAccount.get(account.id) ?? ZERO_COUNTS)),
    );
  },
});

export const showAccount = defineOperation({
  name: 'account.show',
  id: 'showAccount',
  summary: 'Show an account with its limits and the counts of the last 7 days',
  ...reads('viewer'),
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

export const lockAccount = defineOperation({
  name: 'account.lock',
  id: 'lockAccount',
  summary: 'Lock an account: refuse its keys and stop delivery of its queued messages',
  ...changes('operator'),
  input: Type.Object({
    account: AccountName,
    reason: createParsed('The reason, for the audit log.', (text) => parseVisibleText(text, MAX_REASON_LENGTH)),
    expected: ExpectedVersion,
  }),
  result: AccountEntry,
  errors: ['not-found', 'conflict'],
  async run({ account, reason, expected }, { store, clock }) {
    const now = clock.now();
    return toChangeResult(account, await store.lockAccount(account, reason, now, expected), now);
  },
});

export const unlockAccount = defineOperation({
  name: 'account.unlock',
  id: 'unlockAccount',
  summary: 'Unlock an account and reset its counts of bounces and complaints',
  ...changes('operator'),
  input: Type.Object({ account: AccountName, expected: ExpectedVersion }),
  result: AccountEntry,
  errors: ['not-found', 'conflict'],
  async run({ account, expected }, { store, clock }) {
    const now = clock.now();
    return toChangeResult(account, await store.unlockAccount(account, now, expected), now);
  },
});

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

type LimitsInput = Static<TObject<typeof limitMembers>>;

/** Without a new expiry, the volume `unlimited` also removes the expiry. */
function toLimits({ volumeExpires, ...limits }: LimitsInput): Partial<AccountLimits> {
  if (volumeExpires !== undefined) return { ...limits, volumeExpiresAt: volumeExpires };
  return limits.volume === null ? { ...limits, volumeExpiresAt: null } : limits;
}

const ZERO_COUNTS: WindowCounts = { emails: 0, bounces: 0, complaints: 0, provenBounces: 0, provenComplaints: 0 };

function toAccountEntry(account: Account, now: number): AccountEntry {
  const { locked, volumeUsed, thresholds, rateWindowAt } = account;
  const { volume, volumeExpiresAt, rate, throttle } = account.limits;
  const periodEnd = rate === null || rateWindowAt === null ? null : rateWindowAt + rate.periodMs;
  const rateResetsAt = periodEnd !== null && now < periodEnd ? periodEnd : null;
  const rateUsed = rateResetsAt === null ? 0 : account.rateUsed;
  return {
    name: account.name,
    state: locked === null ? 'active' : 'locked',
    reason: locked?.reason ?? null,
    lockedAt: formatIsoTimeOrNull(locked?.at ?? null),
    created: formatIsoTime(account.createdAt),
    volume,
    volumeExpires: formatIsoTimeOrNull(volumeExpiresAt),
    volumeUsed,
    volumeLeft: volume === null ? null : Math.max(0, volume - volumeUsed),
    rate: rate === null ? null : formatRate(rate),
    rateUsed,
    rateLeft: rate === null ? null : Math.max(0, rate.limit - rateUsed),
    rateLimit: rate?.limit ?? null,
    ratePeriodMs: rate?.periodMs ?? null,
    rateResets: formatIsoTimeOrNull(rateResetsAt),
    throttle: throttle === null ? null : formatThrottle(throttle),
    throttlePerSecond: throttle?.perSecond ?? null,
    throttleBurst: throttle?.burst ?? null,
    warning: account.warning,
    maxBounces: thresholds.bounceRate,
    maxComplaints: thresholds.complaintRate,
    onReputation: account.onReputation,
    sesConfigurationSet: account.sesConfigurationSet,
    maxAge: account.maxAgeMs === null ? null : formatDurationSetting(account.maxAgeMs),
    onlyTo: account.onlyTo === null ? null : [...account.onlyTo],
    unknownFields: account.unknownFields,
    version: computeAccountVersion(account),
  };
}

export function toAccountDetails(account: Account, now: number, counts: WindowCounts): AccountDetails {
  const { locked, warning, thresholds, onReputation } = account;
  const status = determineReputationStatus(counts, thresholds, onReputation);
  const currentWarning = status.kind === 'good' ? null : status.reason;
  const { emails, bounces, complaints, provenBounces, provenComplaints } = counts;
  return {
    ...toAccountEntry(account, now),
    // The stored warning contains the counts at the last bounce or complaint.
    warning: locked === null ? currentWarning : warning,
    reputation: {
      ...{ emails, bounces, complaints, provenBounces, provenComplaints },
      status: status.kind,
      thresholds: [...computeThresholdUsages(counts, thresholds)],
    },
  };
}

function describeAccount(account: Account): string {
  const { limits, locked, thresholds, onReputation, sesConfigurationSet, maxAgeMs, onlyTo, unknownFields } = account;
  const { volume, volumeExpiresAt, rate, throttle } = limits;
  return [
    locked === null ? 'active' : `locked (${locked.reason})`,
    `volume ${volume ?? 'unlimited'}${volumeExpiresAt === null ? '' : ` until ${formatTime(volumeExpiresAt)}`}`,
    `rate ${rate === null ? 'none' : formatRate(rate)}`,
    `throttle ${throttle === null ? 'none' : formatThrottle(throttle)}`,
    `${onReputation} thresholds: ${formatPercent(thresholds.bounceRate)} hard bounces, ${formatPercent(thresholds.complaintRate)} complaints`,
    ...(sesConfigurationSet === null ? [] : [`configuration set ${sesConfigurationSet}`]),
    ...(maxAgeMs === null ? [] : [`maximum age ${formatDurationSetting(maxAgeMs)}`]),
    ...(onlyTo === null ? [] : [`only to ${onlyTo.join(', ')}`]),
    ...(unknownFields === 'ignore' ? [] : ['refuses unknown fields']),
  ].join(', ');
}

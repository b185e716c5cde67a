/**
 * The schemas of the operations on accounts: the limits in the input, and the results. The file imports no module of
 * Node, because the dashboard imports the types.
 */
import type { Static } from 'typebox';
import { ON_REPUTATION } from '../../model/account.ts';
import { Type } from '../../model/schema.ts';
import { createNullable, createStringEnum, Time } from '../schemas.ts';

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

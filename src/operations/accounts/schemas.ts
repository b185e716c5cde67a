/** Limits in the input of the operations on accounts, and the results. Imports nothing of Node: the dashboard imports the types. */
import type { Static } from 'typebox';
import { Type } from '../../model/schema.ts';
import { nullable, stringEnum, Time } from '../schemas.ts';

/** Limits in an input. */
export const limitMembers = {
  volume: Type.Optional(
    Type.String({ description: 'The number of emails that may be sent, counted from now; or `unlimited`.' }),
  ),
  volumeExpires: Type.Optional(
    Type.String({
      description: 'A date (UTC) or a duration such as `30d`, after which no message is accepted; or `never`.',
    }),
  ),
  rate: Type.Optional(
    Type.String({ description: 'A rate limit such as `1000/1h`; messages over it get 403; or `none`.' }),
  ),
  throttle: Type.Optional(
    Type.String({
      description: 'A throttle such as `50/s` or `50/s:200` (with burst); requests over it get 429; or `none`.',
    }),
  ),
};
export const thresholdMembers = {
  maxBounces: Type.Optional(
    Type.String({ description: 'Hard bounces of 7 days that lock the account, such as `10%`; `100%` never does.' }),
  ),
  maxComplaints: Type.Optional(
    Type.String({ description: 'Complaints of 7 days that lock it, such as `0.15%`; `100%` never does.' }),
  ),
};

const Reputation = Type.Object(
  {
    emails: Type.Integer({ description: 'Emails handed over or hard bounced.' }),
    bounces: Type.Integer({ description: 'Recipients that hard bounced.' }),
    complaints: Type.Integer({ description: 'Recipients that complained.' }),
    status: stringEnum(['good', 'warning', 'lock'], { description: '`warning` from half of a limit on.' }),
    thresholds: Type.Array(
      Type.Object({
        metric: stringEnum(['bounces', 'complaints']),
        count: Type.Integer(),
        limitType: stringEnum(['rate', 'count'], { description: '`count` while there are fewer than 100 emails.' }),
        limit: nullable(Type.Number({ description: 'A fraction or a count; null: it never locks.' })),
        usage: Type.Number({ description: 'The part of the limit that is used; at 1 the account locks itself.' }),
      }),
    ),
  },
  { description: 'Of the last 7 days.' },
);

const accountMembers = {
  name: Type.String(),
  state: stringEnum(['active', 'locked']),
  reason: nullable(Type.String({ description: 'The reason of the lock.' })),
  lockedAt: nullable(Time),
  created: Time,
  volume: nullable(Type.Integer({ description: 'The number of emails that may be sent; null: unlimited.' })),
  volumeExpires: nullable(Time),
  volumeUsed: Type.Integer(),
  volumeLeft: nullable(Type.Integer()),
  rate: nullable(Type.String({ description: 'The rate limit, such as `1000/1h`; null: no limit. Its parts follow.' })),
  rateUsed: Type.Integer(),
  rateLeft: nullable(Type.Integer()),
  rateLimit: nullable(Type.Integer()),
  ratePeriodMs: nullable(Type.Integer()),
  rateResets: nullable(
    Type.String({ format: 'date-time', description: 'When the current period ends; null: there is none.' }),
  ),
  throttle: nullable(
    Type.String({ description: 'The throttle, such as `50/s:200`; null: no limit. Its parts follow.' }),
  ),
  throttlePerSecond: nullable(Type.Integer()),
  throttleBurst: nullable(Type.Integer()),
  warning: nullable(Type.String({ description: 'The counts that are at or above half of a lock threshold.' })),
  maxBounces: Type.Number({ description: 'The fraction of hard bounces that locks it; 1 never does.' }),
  maxComplaints: Type.Number({ description: 'The fraction of complaints that locks it; 1 never does.' }),
  version: Type.String({
    description: 'Changes with limits, thresholds and lock; the value of `expected` of a change.',
  }),
};
/** An account in the result of a change. */
export const AccountEntry = Type.Object(accountMembers);
export type AccountEntry = Static<typeof AccountEntry>;
/** An account with the counts of the last 7 days. */
export const AccountDetails = Type.Object({ ...accountMembers, reputation: Reputation });
export type AccountDetails = Static<typeof AccountDetails>;

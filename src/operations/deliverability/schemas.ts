/**
 * The schema of the deliverability figures. The file imports no module of Node, because the dashboard imports the
 * types.
 */
import type { Static } from 'typebox';
import type { SpanMs } from '../../model/deliverability.ts';
import { Type } from '../../model/schema.ts';
import { createNullable, createStringEnum, Time } from '../schemas.ts';

/** The properties by which the figures are grouped. */
export const GROUPINGS = ['provider', 'recipient-domain', 'account', 'sending-domain'] as const;
export type Grouping = (typeof GROUPINGS)[number];

/** The time ranges and the steps of each range. A step is as long as the period that one stored row covers. */
export const DELIVERABILITY_RANGES = {
  '1h': { stepMs: 300_000, steps: 12 },
  '24h': { stepMs: 3_600_000, steps: 24 },
  '7d': { stepMs: 21_600_000, steps: 28 },
  '30d': { stepMs: 86_400_000, steps: 30 },
} as const satisfies Readonly<Record<string, { readonly stepMs: SpanMs; readonly steps: number }>>;
export type DeliverabilityRange = keyof typeof DELIVERABILITY_RANGES;
// `Object.keys` returns `string[]`; the keys are exactly those of the type.
export const DELIVERABILITY_RANGE_NAMES = Object.keys(DELIVERABILITY_RANGES) as DeliverabilityRange[];

const createCounter = (description: string) => Type.Integer({ description });
const createRate = (description: string) => createNullable(Type.Number({ description }));
const createPercentiles = (description: string) =>
  createNullable(Type.Object({ p50: Type.Number(), p99: Type.Number() }, { description }));

const figureMembers = {
  accepted: createCounter('Messages accepted.'),
  delivered: createCounter('Messages delivered.'),
  confirmed: createCounter('Messages whose delivery an event of the provider confirmed.'),
  deferred: createCounter('Delivery attempts that were deferred.'),
  ended: createCounter('Messages that became `delivered`, and messages that became `bounced` because of an attempt.'),
  bounced: createCounter('Messages bounced by an attempt or by a later report.'),
  bounces: Type.Object(
    { hard: Type.Integer(), soft: Type.Integer(), block: Type.Integer() },
    { description: 'Bounced messages by the class of the failure.' },
  ),
  complained: createCounter('Messages with a complaint.'),
  deliveredRate: createRate('`delivered` / `ended`; null if no message ended.'),
  deferralRate: createRate(
    '`deferred` / (`deferred` + `ended`), the share of the attempts that were deferred; null without an attempt.',
  ),
  bounceRate: createRate('`bounced` / `ended`; null if no message ended.'),
  complaintRate: createRate('`complained` / `delivered`; null if no message was delivered.'),
  latencyMs: createPercentiles('Time from acceptance to delivery; null without a delivery.'),
  confirmationMs: createPercentiles(
    'Time from acceptance until the delivery event of the provider was recorded; null without such an event.',
  ),
};
export const DeliverabilityFigures = Type.Object(figureMembers);
export type DeliverabilityFigures = Static<typeof DeliverabilityFigures>;

const comparedMembers = {
  ...figureMembers,
  previous: Type.Object(figureMembers, { description: 'The figures of the previous period.' }),
};
const ComparedFigures = Type.Object(comparedMembers);
export type ComparedFigures = Static<typeof ComparedFigures>;

export const DeliverabilityTableRow = Type.Object({
  key: Type.String({
    description:
      'The code of the mailbox provider such as `google`, the domain, or the name of the account. `unknown`: DNS has not yet answered for the domain. `other`: the mailbox provider has no code. `none`: the domain receives no mail.',
  }),
  name: Type.String({ description: 'The display name, such as `Google`.' }),
  ...comparedMembers,
  lockThresholds: createNullable(
    Type.Object(
      { bounceRate: Type.Number(), complaintRate: Type.Number() },
      {
        description:
          'With `by=account`: the rates in seven days at which the account is locked; 1 never locks it. Otherwise null.',
      },
    ),
  ),
});
export type DeliverabilityTableRow = Static<typeof DeliverabilityTableRow>;

/** The codes of the changes. */
export const CHANGE_CODES = [
  'complaint-rate-rose',
  'complaint-rate-fell',
  'bounce-rate-rose',
  'bounce-rate-fell',
  'deferral-rate-rose',
  'deferral-rate-fell',
  'delivery-slower',
  'delivery-faster',
  'confirmation-slower',
  'confirmation-faster',
  'traffic-rose',
  'traffic-fell',
  'traffic-began',
  'traffic-ended',
] as const;
export type ChangeCode = (typeof CHANGE_CODES)[number];

export const DeliverabilityChange = Type.Object({
  code: createStringEnum(CHANGE_CODES, { description: 'The kind of the change. Codes are stable.' }),
  key: createNullable(Type.String({ description: 'The key of the row; null for the total.' })),
  judgement: createStringEnum(['worse', 'better', 'neutral'], {
    description: 'The effect of the change on deliverability.',
  }),
  before: Type.Number({
    description:
      'The value of the previous period: a rate, the p50 in milliseconds, or accepted messages per hour, depending on the code.',
  }),
  after: Type.Number({ description: 'The value in the range, in the unit of `before`.' }),
  text: Type.String({ description: 'One sentence that states the change with its numbers.' }),
});
export type DeliverabilityChange = Static<typeof DeliverabilityChange>;

export const Deliverability = Type.Object({
  by: createStringEnum(GROUPINGS),
  range: createStringEnum(DELIVERABILITY_RANGE_NAMES),
  stepMs: Type.Integer({ description: 'The length of one step of `points` in milliseconds.' }),
  from: Time,
  until: Time,
  previousFrom: Type.String({
    format: 'date-time',
    description: 'The start of the previous period, which ends at `from` and has the same number of steps.',
  }),
  rows: Type.Array(DeliverabilityTableRow, {
    description: 'The rows with the most accepted messages, in descending order; at most `limit` rows.',
  }),
  other: Type.Object(comparedMembers, {
    description: 'The sum of all keys without a row. The rows and `other` add up to `total`.',
  }),
  total: ComparedFigures,
  points: Type.Array(Type.Object({ at: Time, ...figureMembers }), {
    description:
      'The figures of `key`, or of the total if `key` is not given: oldest step first, without gaps; `at` is the start of the step. The last step has not ended.',
  }),
  changes: Type.Array(DeliverabilityChange, {
    description: 'The significant changes since the previous period, the worst first; at most 20.',
  }),
});
export type Deliverability = Static<typeof Deliverability>;

/**
 * The schema of the result of the overview. The file imports no module of Node, because the dashboard imports the
 * types.
 */
import type { Static } from 'typebox';
import { ATTENTION_CODE_NAMES } from '../../model/attention.ts';
import { FAILURE_CATEGORIES, FAILURE_CLASSES } from '../../model/failure.ts';
import { Type } from '../../model/schema.ts';
import { HOUR_MS, MINUTE_MS } from '../../model/traffic.ts';
import { createNullable, createStringEnum, Time } from '../schemas.ts';

/** The ranges of time and the steps of each range. */
export const RANGES = {
  '1h': { stepMs: MINUTE_MS, steps: 60 },
  '24h': { stepMs: 10 * MINUTE_MS, steps: 144 },
  '7d': { stepMs: HOUR_MS, steps: 168 },
  '30d': { stepMs: 6 * HOUR_MS, steps: 120 },
} as const;
export type Range = keyof typeof RANGES;

// `Object.keys` returns `string[]`; the keys are exactly the members of `Range`.
export const RANGE_NAMES = Object.keys(RANGES) as Range[];

const createCounter = (description: string) => Type.Integer({ description });
const figureMembers = {
  accepted: createCounter('Messages accepted.'),
  delivered: createCounter('Messages delivered.'),
  deferred: createCounter('Delivery attempts that were deferred.'),
  bounced: createCounter('Messages bounced.'),
  complained: createCounter('Messages with a complaint.'),
  suppressed: createCounter('Messages suppressed.'),
  expired: createCounter('Messages expired.'),
  confirmed: createCounter('Messages whose delivery an event of the provider confirmed.'),
  latencyMs: createNullable(
    Type.Object(
      { p50: Type.Number(), p99: Type.Number() },
      { description: 'Time from acceptance to delivery; null without a delivery.' },
    ),
  ),
  confirmationMs: createNullable(
    Type.Object(
      { p50: Type.Number(), p99: Type.Number() },
      {
        description:
          'Time from acceptance until the delivery event of the provider was recorded; null without such an event.',
      },
    ),
  ),
};
export const Figures = Type.Object(figureMembers);
export type Figures = Static<typeof Figures>;
const Totals = Type.Object({
  ...figureMembers,
  bounces: Type.Array(
    Type.Object({
      class: createStringEnum(FAILURE_CLASSES),
      category: createStringEnum(FAILURE_CATEGORIES),
      count: Type.Integer(),
    }),
    { description: 'Bounced messages by class and category of the failure, the most frequent first.' },
  ),
});

const HEALTH_PARTS = ['database', 'transport', 'domains', 'feedback', 'nodes'] as const;
const LEVELS = ['warning', 'failure'] as const;
const TRENDS = ['empty', 'draining', 'steady', 'growing', 'waiting'] as const;
export type Trend = (typeof TRENDS)[number];

export const HealthItem = Type.Object({
  part: createStringEnum(HEALTH_PARTS),
  level: createStringEnum(['ok', ...LEVELS]),
  text: Type.String(),
});
export type HealthItem = Static<typeof HealthItem>;

export const AttentionItem = Type.Object({
  code: createStringEnum(ATTENTION_CODE_NAMES, { description: 'The kind of the problem. Codes are stable.' }),
  subject: createNullable(
    Type.String({ description: 'The object with the problem, such as `example.com`; null for the installation.' }),
  ),
  level: createStringEnum(LEVELS),
  text: Type.String(),
  remedy: Type.String(),
  page: createNullable(
    Type.String({ description: 'The page of the dashboard with details, such as `/accounts/shop`.' }),
  ),
});
export type AttentionItem = Static<typeof AttentionItem>;

const createOptionalTime = (description: string) => createNullable(Type.String({ format: 'date-time', description }));

export const Overview = Type.Object({
  range: createStringEnum(RANGE_NAMES),
  stepMs: Type.Integer({ description: 'The length of one step of `points` in milliseconds.' }),
  from: Type.String({ format: 'date-time', description: 'The start of the first step of `points`.' }),
  until: Type.String({
    format: 'date-time',
    description: 'The time at which the figures were read. The last step of `points` contains this time.',
  }),
  previousFrom: Type.String({
    format: 'date-time',
    description: 'The start of the previous period, one range before `from`.',
  }),
  previousUntil: Type.String({
    format: 'date-time',
    description: 'The end of the previous period, one range before `until`.',
  }),
  everAccepted: Type.Boolean({ description: 'False until the first message has been accepted.' }),
  points: Type.Array(Type.Object({ at: Time, ...figureMembers }), {
    description:
      'One point for each step, oldest first. `at` is the beginning of the step. The last step has not ended.',
  }),
  totals: Totals,
  previous: Type.Object(figureMembers, {
    description:
      'The totals of the period from `previousFrom` to `previousUntil`. The period has the length of the period from `from` to `until`, rounded up to a minute, or to an hour for `7d` and `30d`.',
  }),
  queue: Type.Object({
    queued: Type.Integer(),
    sending: Type.Integer(),
    uncertain: Type.Integer(),
    departuresPerMinute: Type.Number({ description: 'Messages that left the queue, averaged over the last minutes.' }),
    arrivalsPerMinute: Type.Number({ description: 'Messages that entered the queue, averaged over the last minutes.' }),
    trend: createStringEnum(TRENDS),
    oldestId: createNullable(Type.String({ format: 'uuid' })),
    oldestAt: createOptionalTime('The time of acceptance of the oldest message in the queue.'),
    emptyAt: createOptionalTime('While the queue drains: the estimated time at which it is empty.'),
    nextDueAt: createOptionalTime('While the queue waits: the due time of the next message.'),
  }),
  aliveNodes: Type.Integer({ description: 'The number of nodes whose liveness timeout has not expired.' }),
  health: Type.Array(HealthItem),
  attention: Type.Array(AttentionItem, { description: 'Failures first.' }),
});
export type Overview = Static<typeof Overview>;

/** The result of the overview. Imports nothing of Node: the dashboard imports the types. */
import type { Static } from 'typebox';
import { Type } from '../../model/schema.ts';
import { HOUR_MS, MINUTE_MS } from '../../model/traffic.ts';
import { nullable, oneOf, Time } from '../schemas.ts';

/** The ranges with their steps. */
export const RANGES = {
  '1h': { stepMs: MINUTE_MS, steps: 60 },
  '24h': { stepMs: 10 * MINUTE_MS, steps: 144 },
  '7d': { stepMs: HOUR_MS, steps: 168 },
  '30d': { stepMs: 6 * HOUR_MS, steps: 120 },
} as const;
export type Range = keyof typeof RANGES;

// The keys of the table are its type's.
export const RANGE_NAMES = Object.keys(RANGES) as Range[];

const count = (description: string) => Type.Integer({ description });
const figures = {
  accepted: count('Messages accepted.'),
  delivered: count('Messages delivered.'),
  deferred: count('Delivery attempts that were deferred.'),
  bounced: count('Messages bounced.'),
  complained: count('Messages with a complaint.'),
  suppressed: count('Messages suppressed.'),
  expired: count('Messages expired.'),
  latencyMs: nullable(
    Type.Object(
      { p50: Type.Number(), p99: Type.Number() },
      { description: 'Time from acceptance to delivery; null without a delivery.' },
    ),
  ),
};
export const Figures = Type.Object(figures);
export type Figures = Static<typeof Figures>;

const PARTS = ['database', 'transport', 'domains', 'feedback', 'nodes'] as const;
const LEVELS = ['warning', 'failure'] as const;
const TRENDS = ['empty', 'draining', 'steady', 'growing', 'waiting'] as const;
export type Trend = (typeof TRENDS)[number];

export const HealthItem = Type.Object({ part: oneOf(PARTS), level: oneOf(['ok', ...LEVELS]), text: Type.String() });
export type HealthItem = Static<typeof HealthItem>;

export const AttentionItem = Type.Object({
  level: oneOf(LEVELS),
  text: Type.String(),
  remedy: Type.String(),
  page: nullable(Type.String({ description: 'The page of the dashboard with details, such as `/accounts/shop`.' })),
});
export type AttentionItem = Static<typeof AttentionItem>;

const when = (description: string) => nullable(Type.String({ format: 'date-time', description }));

export const Overview = Type.Object({
  range: oneOf(RANGE_NAMES),
  stepMs: Type.Integer({ description: 'The length of one step of `points` in milliseconds.' }),
  everAccepted: Type.Boolean({ description: 'False until the first message was accepted.' }),
  points: Type.Array(Type.Object({ at: Time, ...figures }), {
    description: 'Oldest first, without gaps; `at` is the beginning of the step. The last step has not ended.',
  }),
  totals: Figures,
  queue: Type.Object({
    queued: Type.Integer(),
    sending: Type.Integer(),
    uncertain: Type.Integer(),
    departuresPerMinute: Type.Number({ description: 'Messages that left the queue, averaged over the last minutes.' }),
    arrivalsPerMinute: Type.Number({ description: 'Messages that entered the queue, averaged over the last minutes.' }),
    trend: oneOf(TRENDS),
    oldestId: nullable(Type.String({ format: 'uuid' })),
    oldestAt: when('The time of acceptance of the oldest message in the queue.'),
    emptyAt: when('While the queue drains: the estimated time at which it is empty.'),
    nextDueAt: when('While the queue waits: when the next message is due.'),
  }),
  health: Type.Array(HealthItem),
  attention: Type.Array(AttentionItem, { description: 'Failures first.' }),
});
export type Overview = Static<typeof Overview>;

import type { Static } from 'typebox';
import { listDeliveries, readFacts } from '../checks/facts.ts';
import { listAttention, listHealth } from '../checks/list.ts';
import { listRoutes } from '../checks/routes.ts';
import { ATTENTION_CODE_NAMES } from '../model/attention.ts';
import { FAILURE_CATEGORIES, FAILURE_CLASSES } from '../model/failure.ts';
import { getHoldState } from '../model/hold.ts';
import { formatIsoTime, formatIsoTimeOrNull } from '../printing/text.ts';
import {
  computeQueueStatus,
  computeTrafficFigures,
  getPreviousPeriod,
  getRangeStart,
  RANGES,
  RATE_WINDOW_MS,
  type Range,
  sumTraffic,
  TRENDS,
  toFigures,
} from '../statistics/figures.ts';
import { ok } from './errors.ts';
import { defineOperation, reads } from './operation.ts';
import { createPercentiles, Time, Type } from './schemas.ts';

// `Object.keys` returns `string[]`; the keys are exactly the members of `Range`.
const RANGE_NAMES = Object.keys(RANGES) as Range[];

const figureMembers = {
  accepted: Type.Integer('Messages accepted.'),
  delivered: Type.Integer('Messages delivered.'),
  deferred: Type.Integer('Delivery attempts that were deferred.'),
  bounced: Type.Integer('Messages bounced.'),
  complained: Type.Integer('Messages with a complaint.'),
  suppressed: Type.Integer('Messages suppressed.'),
  expired: Type.Integer('Messages expired.'),
  confirmed: Type.Integer('Messages whose delivery an event of the provider confirmed.'),
  latencyMs: createPercentiles('Time from acceptance to delivery; null without a delivery.'),
  confirmationMs: createPercentiles(
    'Time from acceptance until the delivery event of the provider was recorded; null without such an event.',
  ),
};
const Figures = Type.Object(figureMembers);
export type Figures = Static<typeof Figures>;

const LEVELS = ['warning', 'failure'] as const;

const Overview = Type.Object({
  range: Type.Enum(RANGE_NAMES),
  stepMs: Type.Integer('The length of one step of `points` in milliseconds.'),
  from: Type.Time('The start of the first step of `points`.'),
  until: Type.Time('The time at which the figures were read. The last step of `points` contains this time.'),
  previousFrom: Type.Time('The start of the previous period, one range before `from`.'),
  previousUntil: Type.Time('The end of the previous period, one range before `until`.'),
  everAccepted: Type.Boolean('False until the first message has been accepted.'),
  points: Type.Array(
    Type.Object({ at: Time, ...figureMembers }),
    'One point for each step, oldest first. `at` is the beginning of the step. The last step has not ended.',
  ),
  totals: Type.Object({
    ...figureMembers,
    bounces: Type.Array(
      Type.Object({
        class: Type.Enum(FAILURE_CLASSES),
        category: Type.Enum(FAILURE_CATEGORIES),
        count: Type.Integer(),
      }),
      'Bounced messages by class and category of the failure, the most frequent first.',
    ),
  }),
  previous: Type.Object(
    figureMembers,
    'The totals of the period from `previousFrom` to `previousUntil`. The period has the length of the period from `from` to `until`, rounded up to a minute, or to an hour for `7d` and `30d`.',
  ),
  queue: Type.Object({
    queued: Type.Integer(),
    sending: Type.Integer(),
    uncertain: Type.Integer(),
    held: Type.Integer('The queued messages that holds stop.'),
    departuresPerMinute: Type.Number('Messages that left the queue, averaged over the last minutes.'),
    arrivalsPerMinute: Type.Number('Messages that entered the queue, averaged over the last minutes.'),
    trend: Type.Enum(TRENDS),
    oldestId: Type.Nullable(Type.Uuid()),
    oldestAt: Type.NullableTime(
      'The time of acceptance of the oldest message in the queue that no hold stops, later by the time for which it was held.',
    ),
    emptyAt: Type.NullableTime('While the queue drains: the estimated time at which it is empty.'),
    nextDueAt: Type.NullableTime('While the queue waits: the due time of the next message.'),
  }),
  activeHolds: Type.Integer('The number of holds in force.'),
  aliveNodes: Type.Integer('The number of nodes whose liveness timeout has not expired.'),
  health: Type.Array(
    Type.Object({
      part: Type.Enum(['database', 'transport', 'domains', 'feedback', 'nodes']),
      level: Type.Enum(['ok', ...LEVELS]),
      text: Type.String(),
    }),
  ),
  attention: Type.Array(
    Type.Object({
      code: Type.Enum(ATTENTION_CODE_NAMES, 'The kind of the problem. Codes are stable.'),
      subject: Type.NullableString('The object with the problem, such as `example.com`; null for the installation.'),
      level: Type.Enum(LEVELS),
      text: Type.String(),
      remedy: Type.String(),
      page: Type.NullableString('The page of the dashboard with details, such as `/accounts/shop`.'),
    }),
    'Failures first.',
  ),
});
export type Overview = Static<typeof Overview>;

export const showOverview = defineOperation({
  name: 'overview.show',
  id: 'showOverview',
  summary: 'Show traffic over time, the queue, the health of the components, and problems that need attention',
  ...reads('viewer'),
  input: Type.Object({
    range: Type.Enum(RANGE_NAMES, {
      default: '24h',
      description: '`1h`, `24h`, `7d` or `30d`; the default is `24h`.',
    }),
  }),
  result: Overview,
  errors: [],
  async run({ range }, { store, settings, clock, status }) {
    const now = clock.now();
    const { stepMs } = RANGES[range];
    const from = getRangeStart(range, now);
    const previous = getPreviousPeriod(range, now);
    const [facts, rangeSteps, previousSteps] = await Promise.all([
      readFacts(store, settings, status?.() ?? null, now),
      range === '1h' ? null : store.readTraffic(from, now + RATE_WINDOW_MS, stepMs),
      store.readTraffic(previous.from, previous.until, stepMs),
    ]);
    const deliveries = listDeliveries(facts);
    const { recentSteps } = facts;
    const isNoRouteUsable = deliveries.length > 0 && listRoutes(facts).every(({ isUsable }) => !isUsable);
    const { nextDueAt: storedDueAt, everAccepted } = facts.store;
    const { oldest, emptyAt, nextDueAt, ...queue } = computeQueueStatus(
      { figures: facts.queue, recentSteps, nextDueAt: storedDueAt, isNoRouteUsable },
      now,
    );
    return ok({
      ...{ range, stepMs, everAccepted, from: formatIsoTime(from), until: formatIsoTime(now) },
      previousFrom: formatIsoTime(previous.from),
      previousUntil: formatIsoTime(previous.until),
      ...computeTrafficFigures(range, now, rangeSteps ?? recentSteps),
      previous: toFigures(sumTraffic(previousSteps)),
      queue: {
        ...queue,
        oldestId: oldest?.id ?? null,
        oldestAt: formatIsoTimeOrNull(oldest?.acceptedAt ?? null),
        emptyAt: formatIsoTimeOrNull(emptyAt),
        nextDueAt: formatIsoTimeOrNull(nextDueAt),
      },
      activeHolds: facts.holds.filter((hold) => getHoldState(hold, now) === 'active').length,
      aliveNodes: facts.nodes.filter(({ isAlive }) => isAlive).length,
      health: listHealth(facts).map(({ code, level, text }) => ({ part: code, level, text })),
      attention: [...listAttention(facts)],
    });
  },
});

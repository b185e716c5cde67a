/**
 * The operation of the overview: traffic over time, the queue, the health of the components, and problems that need
 * attention.
 */

import { formatIsoTime } from '../config/units.ts';
import { Type } from '../model/schema.ts';
import { ok } from './errors.ts';
import { defineOperation } from './operation.ts';
import { listAttention } from './overview/attention.ts';
import {
  computeTotals,
  computeTrafficFigures,
  getPreviousEnd,
  getPreviousStart,
  getRangeStart,
} from './overview/figures.ts';
import { listHealth } from './overview/health.ts';
import { listDeliveries, type OverviewInput, readOverviewInput } from './overview/input.ts';
import { computeQueueStatus, type QueueStatus } from './overview/queue.ts';
import { Overview, RANGE_NAMES, RANGES } from './overview/schemas.ts';
import { createStringEnum } from './schemas.ts';

/** Shows the overview. The duration of the operation does not depend on the number of stored messages. */
export const showOverview = defineOperation({
  name: 'overview.show',
  id: 'showOverview',
  summary: 'Show traffic over time, the queue, the health of the components, and problems that need attention',
  makesChange: false,
  role: 'viewer',
  readsContent: false,
  input: Type.Object({
    range: createStringEnum(RANGE_NAMES, {
      default: '24h',
      description: '`1h`, `24h`, `7d` or `30d`; the default is `24h`.',
    }),
  }),
  result: Overview,
  errors: [],
  async run({ range }, { store, settings, clock, status }) {
    const now = clock.now();
    const [overviewInput, previousSteps] = await Promise.all([
      readOverviewInput(store, settings, status?.() ?? null, range, now),
      store.readTraffic(getPreviousStart(range, now), getPreviousEnd(range, now), RANGES[range].stepMs),
    ]);
    const { oldest, emptyAt, nextDueAt, ...queue } = readQueueStatus(overviewInput);
    return ok({
      range,
      stepMs: RANGES[range].stepMs,
      from: formatIsoTime(getRangeStart(range, now)),
      until: formatIsoTime(now),
      previousFrom: formatIsoTime(getPreviousStart(range, now)),
      previousUntil: formatIsoTime(getPreviousEnd(range, now)),
      everAccepted: overviewInput.store.everAccepted,
      ...computeTrafficFigures(range, overviewInput.now, overviewInput.steps),
      previous: computeTotals(previousSteps),
      queue: {
        ...queue,
        oldestId: oldest?.id ?? null,
        oldestAt: toIsoOrNull(oldest?.acceptedAt ?? null),
        emptyAt: toIsoOrNull(emptyAt),
        nextDueAt: toIsoOrNull(nextDueAt),
      },
      aliveNodes: overviewInput.nodes.filter(({ isAlive }) => isAlive).length,
      health: [...listHealth(overviewInput)],
      attention: [...listAttention(overviewInput)],
    });
  },
});

function readQueueStatus(input: OverviewInput): QueueStatus {
  const { queue: queued, recentSteps, store, now } = input;
  const deliveries = listDeliveries(input);
  const isBreakerOpen = deliveries.length > 0 && deliveries.every(({ breaker }) => breaker.state === 'open');
  return computeQueueStatus({ figures: queued, recentSteps, nextDueAt: store.nextDueAt, isBreakerOpen }, now);
}

function toIsoOrNull(at: number | null): string | null {
  return at === null ? null : formatIsoTime(at);
}

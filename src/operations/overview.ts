/** The overview: figures over time, the queue, the health of the parts, and what needs attention. */

import { isoTime } from '../config/units.ts';
import { Type } from '../model/schema.ts';
import { ok } from './errors.ts';
import { operation } from './operation.ts';
import { listAttention } from './overview/attention.ts';
import { trafficFigures } from './overview/figures.ts';
import { listHealth } from './overview/health.ts';
import { type OverviewInput, readOverviewInput } from './overview/input.ts';
import { type QueueStatus, queueStatus } from './overview/queue.ts';
import { Overview, RANGE_NAMES, RANGES } from './overview/schemas.ts';
import { oneOf } from './schemas.ts';

/** What the service is doing and what an operator should look at. Answers within 100 ms, however much is stored. */
export const showOverview = operation({
  name: 'overview.show',
  id: 'showOverview',
  summary: 'Show figures over time, the queue, the health of the parts, and what needs attention',
  changes: false,
  input: Type.Object({
    range: oneOf(RANGE_NAMES, { default: '24h', description: '`1h`, `24h`, `7d` or `30d`; 24h unless given.' }),
  }),
  result: Overview,
  errors: [],
  async run({ range }, { store, settings, clock, status }) {
    const facts = await readOverviewInput(store, settings, status?.() ?? null, range, clock.now());
    const { oldest, emptyAt, nextDueAt, ...queue } = standingOf(facts);
    return ok({
      range,
      stepMs: RANGES[range].stepMs,
      everAccepted: facts.store.everAccepted,
      ...trafficFigures(range, facts.now, facts.steps),
      queue: {
        ...queue,
        oldestId: oldest?.id ?? null,
        oldestAt: isoOrNull(oldest?.acceptedAt ?? null),
        emptyAt: isoOrNull(emptyAt),
        nextDueAt: isoOrNull(nextDueAt),
      },
      health: [...listHealth(facts)],
      attention: [...listAttention(facts)],
    });
  },
});

function standingOf({ queue: queued, recent, store, status: service, now }: OverviewInput): QueueStatus {
  const held = service?.delivery?.breaker.state === 'open';
  return queueStatus({ figures: queued, recent, nextDueAt: store.nextDueAt, breakerOpen: held }, now);
}

function isoOrNull(at: number | null): string | null {
  return at === null ? null : isoTime(at);
}

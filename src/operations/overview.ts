/** The overview: figures over time, the queue, the health of the parts, and what needs attention. */
import { type Static, Type } from 'typebox';
import { isoTime } from '../config/units.ts';
import { ok } from './errors.ts';
import { operation } from './operation.ts';
import { attentionOf, LEVELS } from './overview/attention.ts';
import { type Facts, gather } from './overview/facts.ts';
import { figuresOver, RANGES, type Range } from './overview/figures.ts';
import { healthOf, PARTS } from './overview/health.ts';
import { type QueueStanding, queueStanding, TRENDS } from './overview/queue.ts';
import { nullable, oneOf, Time } from './schemas.ts';

// The keys of the table are its type's.
const RANGE_NAMES = Object.keys(RANGES) as Range[];

const count = (description: string) => Type.Integer({ description });
const figures = {
  accepted: count('Messages accepted.'),
  delivered: count('Messages delivered.'),
  deferred: count('Delivery attempts that were deferred.'),
  bounced: count('Messages bounced.'),
  complained: count('Messages complained of.'),
  suppressed: count('Messages suppressed.'),
  expired: count('Messages expired.'),
  latencyMs: nullable(
    Type.Object(
      { p50: Type.Number(), p99: Type.Number() },
      { description: 'From accepted to delivered; null for none.' },
    ),
  ),
};
export const Figures = Type.Object(figures);
export type Figures = Static<typeof Figures>;

const Health = Type.Object({ part: oneOf(PARTS), level: oneOf(['ok', ...LEVELS]), text: Type.String() });
const Attention = Type.Object({
  level: oneOf(LEVELS),
  text: Type.String(),
  remedy: Type.String(),
  page: nullable(Type.String({ description: 'The page of the dashboard, such as `/accounts/shop`.' })),
});
const when = (description: string) => nullable(Type.String({ format: 'date-time', description }));

/** What the service is doing and what an operator should look at. Answers within 100 ms, however much is stored. */
export const showOverview = operation({
  name: 'overview.show',
  id: 'showOverview',
  summary: 'Show figures over time, the queue, the health of the parts, and what needs attention',
  changes: false,
  input: Type.Object({
    range: oneOf(RANGE_NAMES, { default: '24h', description: '`1h`, `24h`, `7d` or `30d`; 24h unless given.' }),
  }),
  result: Type.Object({
    range: oneOf(RANGE_NAMES),
    stepMs: Type.Integer({ description: 'Length of one step of `points` in milliseconds.' }),
    everAccepted: Type.Boolean({ description: 'False on a new installation.' }),
    points: Type.Array(Type.Object({ at: Time, ...figures }), {
      description: 'The oldest first, without gaps; `at` is the beginning of the step. The last step is under way.',
    }),
    totals: Figures,
    queue: Type.Object({
      queued: Type.Integer(),
      sending: Type.Integer(),
      uncertain: Type.Integer(),
      leavingPerMinute: Type.Number({ description: 'Messages that leave the queue, over the last minutes.' }),
      comingPerMinute: Type.Number({ description: 'Messages that enter it.' }),
      trend: oneOf(TRENDS),
      oldestId: nullable(Type.String({ format: 'uuid' })),
      oldestAt: when('When the oldest message in the queue was accepted.'),
      emptyAt: when('Where the queue is draining: when it will be empty.'),
      nextDueAt: when('Where the queue waits for a time: when the next message is due.'),
    }),
    health: Type.Array(Health),
    attention: Type.Array(Attention, { description: 'Failures first.' }),
  }),
  errors: [],
  async run({ range }, { store, settings, clock, status }) {
    const facts = await gather(store, settings, status?.() ?? null, range, clock.now());
    const { oldest, emptyAt, nextDueAt, ...queue } = standingOf(facts);
    return ok({
      range,
      stepMs: RANGES[range].stepMs,
      everAccepted: facts.store.everAccepted,
      ...figuresOver(range, facts.now, facts.steps),
      queue: {
        ...queue,
        oldestId: oldest?.id ?? null,
        oldestAt: isoOrNull(oldest?.acceptedAt ?? null),
        emptyAt: isoOrNull(emptyAt),
        nextDueAt: isoOrNull(nextDueAt),
      },
      health: [...healthOf(facts)],
      attention: [...attentionOf(facts)],
    });
  },
});

export type Overview = Static<typeof showOverview.result>;

function standingOf({ queue: queued, recent, store, service, now }: Facts): QueueStanding {
  const held = service?.delivery?.breaker.state === 'open';
  return queueStanding({ figures: queued, recent, nextDueAt: store.nextDueAt, held }, now);
}

function isoOrNull(at: number | null): string | null {
  return at === null ? null : isoTime(at);
}

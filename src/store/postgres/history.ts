import type { RecordedFailure } from '../../model/failure.ts';
import { getEventBit } from '../../model/webhook.ts';
import type { EndedMessage, NewEntry } from '../messages.ts';
import { getFacts } from '../rules/feedback.ts';
import { inheritsFailure, setsLastFailure } from '../rules/messages.ts';
import * as rows from '../rules/rows.ts';
import { findEventType } from '../rules/webhooks.ts';
import { type Session, toColumns } from './session.ts';

const APPEND_EVENTS = `WITH entries AS MATERIALIZED (
      SELECT e.*, nextval('event_n') AS n
      FROM unnest($1::uuid[], $2::int[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::boolean[], $9::text[],
        $10::text[], $11::boolean[], $12::int[])
        WITH ORDINALITY AS e(id, account_id, at, verb, by, detail, failure, inherits, attempt, state, suppresses, bit, o) ORDER BY e.o
    ), history AS (
      INSERT INTO event (id, account_id, n, at, verb, by, detail, failure, attempt)
      SELECT id, account_id, n, at, verb, by, detail, CASE WHEN inherits THEN (
          SELECT h.failure FROM event h WHERE h.id = e.id AND h.failure IS NOT NULL ORDER BY h.n DESC LIMIT 1
        ) ELSE failure END, attempt
      FROM entries e ORDER BY n
    )
    INSERT INTO outbox (type, account_id, message_id, n, state, suppressed)
    SELECT 'message.' || e.verb, e.account_id, e.id, e.n, e.state, e.suppresses
    FROM webhook_subscription s CROSS JOIN entries e WHERE s.events & e.bit <> 0 ORDER BY e.n`;

// The array condition makes the planner use the index, as in `WRITE_END`. A row that already has these values is not
// written.
const UPDATE_SUMMARIES = `UPDATE mail_request m SET failure_class = coalesce(s.class, m.failure_class),
      failure_category = coalesce(s.category, m.failure_category), facts = m.facts | s.facts
    FROM unnest($1::uuid[], $2::text[], $3::text[], $4::int[]) AS s(id, class, category, facts)
    WHERE m.id = s.id AND m.id = ANY($1::uuid[])
      AND (m.failure_class IS DISTINCT FROM coalesce(s.class, m.failure_class)
        OR m.failure_category IS DISTINCT FROM coalesce(s.category, m.failure_category) OR m.facts | s.facts <> m.facts)`;

/** The transaction must have locked the messages or their queue rows. The entries of one message keep their order. */
export async function appendEvents(session: Session, events: readonly NewEntry[]): Promise<void> {
  if (events.length === 0) return;
  await Promise.all([insertEvents(session, events), updateSummaries(session, events)]);
}

async function updateSummaries(session: Session, events: readonly NewEntry[]): Promise<void> {
  const summaries = new Map<string, { failure: RecordedFailure | null; facts: number }>();
  for (const event of events) {
    const { id, verb, state, failure } = event;
    const lastFailure = failure !== null && setsLastFailure(verb, state, failure.class) ? failure : null;
    const facts = getFacts(event);
    if (lastFailure === null && facts === 0) continue;
    const earlier = summaries.get(id);
    summaries.set(id, { failure: lastFailure ?? earlier?.failure ?? null, facts: facts | (earlier?.facts ?? 0) });
  }
  if (summaries.size === 0) return;
  await session.query(
    UPDATE_SUMMARIES,
    toColumns([...summaries], ([id, { failure, facts }]) => [
      id,
      failure?.class ?? null,
      failure?.category ?? null,
      facts,
    ]),
  );
}

async function insertEvents(session: Session, events: readonly NewEntry[]): Promise<void> {
  await session.query(APPEND_EVENTS, [
    events.map(({ id }) => id),
    events.map(({ accountId }) => accountId),
    events.map(({ at }) => at),
    events.map(({ verb }) => verb),
    events.map(({ by }) => by),
    events.map(({ detail }) => detail),
    events.map(({ failure }) => rows.toFailureColumn(failure)),
    events.map(({ verb, failure }) => failure === null && inheritsFailure(verb)),
    events.map(({ attempt }) => attempt),
    events.map(({ state }) => state),
    events.map(({ suppresses = false }) => suppresses),
    events.map(({ verb }) => {
      const type = findEventType(verb);
      return type === null ? 0 : getEventBit(type);
    }),
  ]);
}

const DELETE_QUEUE_ROWS = 'DELETE FROM queue WHERE id = ANY($1::uuid[])';
// The array condition is redundant because of the join. With this condition the planner uses the index of each partition,
// even if the statistics of a partition are outdated.
const WRITE_END = `UPDATE mail_request m SET state = e.state, ended_at = e.ended_at, attempts = e.attempts, route = coalesce(e.route, m.route)
    FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::int[], $5::text[]) AS e(id, state, ended_at, attempts, route)
    WHERE m.id = e.id AND m.id = ANY($1::uuid[])`;

/** The transaction must have locked the queue rows. */
export async function endMessages(session: Session, endedMessages: readonly EndedMessage[]): Promise<void> {
  if (endedMessages.length === 0) return;
  const ids = endedMessages.map(({ id }) => id);
  await Promise.all([
    session.query(DELETE_QUEUE_ROWS, [ids]),
    session.query(
      WRITE_END,
      toColumns(endedMessages, ({ id, state, endedAt, attempts, route = null }) => [
        ...[id, state, endedAt, attempts, route],
      ]),
    ),
  ]);
}

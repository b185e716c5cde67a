/** Appending to histories, many events in one statement. */
import type { Session, Statement } from './session.ts';

export interface NewEvent {
  readonly id: string;
  readonly accountId: number;
  readonly at: number;
  readonly verb: string;
  readonly by: string;
  readonly detail: string | null;
  /** JSON. */
  readonly attempt: string | null;
}

const APPEND: Statement = {
  name: 'event_append',
  text: `INSERT INTO event (id, account_id, n, at, verb, by, detail, attempt)
    SELECT id, account_id, nextval('event_n'), at, verb, by, detail, attempt
    FROM unnest($1::uuid[], $2::int[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[])
      WITH ORDINALITY AS e(id, account_id, at, verb, by, detail, attempt, o) ORDER BY o`,
};

/** Appends events, those of one mail request in the order given. */
export async function appendEvents(session: Session, events: readonly NewEvent[]): Promise<void> {
  if (events.length === 0) return;
  await session.query(APPEND, [
    events.map(({ id }) => id),
    events.map(({ accountId }) => accountId),
    events.map(({ at }) => at),
    events.map(({ verb }) => verb),
    events.map(({ by }) => by),
    events.map(({ detail }) => detail),
    events.map(({ attempt }) => attempt),
  ]);
}

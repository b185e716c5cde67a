/** The end of mail requests: out of the queue, the terminal state into their own row. */
import type { State } from '../../model/state-machine.ts';
import type { Session, Statement } from './session.ts';

export interface Ended {
  readonly id: string;
  readonly state: State;
  readonly endedAt: number;
  readonly attempts: number;
}

const LEAVE: Statement = { name: 'end_leave', text: 'DELETE FROM queue WHERE id = ANY($1::uuid[])' };
// The array beside the join lets the planner leave out every partition but those of these ids.
const WRITE: Statement = {
  name: 'end_write',
  text: `UPDATE mail_request m SET state = e.state, ended_at = e.ended_at, attempts = e.attempts
    FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::int[]) AS e(id, state, ended_at, attempts)
    WHERE m.id = e.id AND m.id = ANY($1::uuid[])`,
};

/** Ends mail requests whose queue rows this transaction holds. */
export async function endMail(session: Session, ended: readonly Ended[]): Promise<void> {
  if (ended.length === 0) return;
  const ids = ended.map(({ id }) => id);
  await Promise.all([
    session.query(LEAVE, [ids]),
    session.query(WRITE, [
      ids,
      ended.map(({ state }) => state),
      ended.map(({ endedAt }) => endedAt),
      ended.map(({ attempts }) => attempts),
    ]),
  ]);
}

/**
 * Whose turn it is: the accounts of one lane with something due, one after another round a circle. The look is a loose scan
 * of the index, one seek for each account, so what an account has queued costs nothing; the looks of one round are bounded,
 * and the next round goes on where this one ended. Each node has its own place in the circle.
 */
import * as rows from '../rules/rows.ts';
import type { Session, Statement } from './session.ts';

/** Accounts looked at in one round. */
const LOOKS = 2_000;

/** Accounts of a lane behind $2 up to $3 in order, the time their earliest row is due, and whether they are locked. */
const LOOK: Statement = {
  name: 'turn_look',
  text: `WITH RECURSIVE seen AS (
      (SELECT account_id, due_at FROM queue WHERE state = 'queued' AND lane = $1 AND account_id > $2 AND account_id <= $3
       ORDER BY account_id, due_at LIMIT 1)
      UNION ALL
      SELECT n.account_id, n.due_at FROM seen s CROSS JOIN LATERAL (
        SELECT q.account_id, q.due_at FROM queue q
        WHERE q.state = 'queued' AND q.lane = $1 AND q.account_id > s.account_id AND q.account_id <= $3
        ORDER BY q.account_id, q.due_at LIMIT 1) n
    ), looked AS (SELECT * FROM seen LIMIT ${LOOKS})
    SELECT l.account_id, l.due_at, a.locked_at IS NULL AS free FROM looked l JOIN account a ON a.id = l.account_id
    ORDER BY l.account_id`,
};
const LAST_ACCOUNT = 2_147_483_647;

export interface Turn {
  /** Up to `most` accounts with something due, in turn, and whether there may be more that were not looked at. */
  next(
    session: Session,
    now: number,
    most: number,
  ): Promise<{ readonly accounts: readonly number[]; readonly more: boolean }>;
  /** The next round begins behind this account. */
  servedUntil(account: number): void;
}

/** The turn in `lane`, beginning with the first account. */
export function createTurn(lane: number): Turn {
  /** The account looked at last; 0 is before the first. */
  let position = 0;
  /** Where the looks began that have found nothing since, or null. */
  let barrenSince: number | null = null;
  return {
    async next(session, now, most) {
      const end = barrenSince ?? position;
      const wrapped = barrenSince !== null && position < end;
      const [behind, before] = await Promise.all([
        wrapped ? [] : session.query(LOOK, [lane, position, LAST_ACCOUNT]),
        end === 0 ? [] : session.query(LOOK, [lane, wrapped ? position : 0, end]),
      ]);
      const all = behind.length >= LOOKS ? behind : [...behind, ...before];
      const full = behind.length >= LOOKS || before.length >= LOOKS;
      const due = all.filter((row) => row.free === true && rows.int(row, 'due_at') <= now);
      const accounts = due.slice(0, most).map((row) => rows.int(row, 'account_id'));
      const last = accounts.at(-1);
      // Where the looks were used up on accounts with nothing due, the next round goes on behind them, once round.
      barrenSince = full && last === undefined ? end : null;
      const looked = all.at(-1);
      if (last !== undefined) position = last;
      else if (full && looked !== undefined) position = rows.int(looked, 'account_id');
      return { accounts, more: full || due.length > accounts.length };
    },
    servedUntil(account) {
      position = account;
      barrenSince = null;
    },
  };
}

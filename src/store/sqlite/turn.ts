/**
 * Whose turn it is: the accounts of one lane with something due, one after another round a circle. Each look is one seek
 * of the index, which meets the earliest queued row of the next account, so what an account has queued costs nothing; the
 * looks of one round are bounded, and the next round goes on where this one ended.
 */
import type { DatabaseSync } from 'node:sqlite';
import * as rows from './rows.ts';

/** Accounts looked at in one round: about 5 ms. */
const LOOKS = 2_000;

export interface Turn {
  /** Up to `most` accounts with something due, in turn. Afterwards it is the turn of the one behind the last of them. */
  next(now: number, most: number): readonly number[];
  /** Sets the turn back: of those given, `account` was the last to be served. */
  servedUntil(account: number): void;
  /** True where the last round ended before all accounts had been looked at since one was last found. */
  readonly more: boolean;
}

/** The turn in `lane`, beginning with the first account. */
export function createTurn(database: DatabaseSync, lane: number): Turn {
  const nextAccount = database.prepare(
    `SELECT account_id, due_at FROM mail_request INDEXED BY mail_request_due
     WHERE state = 'queued' AND lane = ? AND account_id > ? ORDER BY account_id, due_at LIMIT 1`,
  );
  const lockOf = database.prepare('SELECT locked_at FROM account WHERE id = ?');
  /** The account looked at last; 0 is before the first. */
  let position = 0;
  /** Where the looks began that have found nothing since, or null. */
  let barrenSince: number | null = null;
  let more = false;

  function isLocked(account: number): boolean {
    const row = lockOf.get(account);
    return row === undefined || rows.intOrNull(row, 'locked_at') !== null;
  }

  return {
    next(now, most) {
      const found: number[] = [];
      const start = position;
      const end: number = barrenSince ?? start;
      let wrapped = barrenSince !== null && position < end;
      more = false;
      for (let looks = 0; ; looks += 1) {
        if (found.length >= most || looks >= LOOKS) {
          more = true;
          break;
        }
        const row = nextAccount.get(lane, position);
        if (row === undefined && !wrapped && end > 0) {
          wrapped = true;
          position = 0;
          continue;
        }
        const account = row === undefined ? null : rows.int(row, 'account_id');
        // Once round: everything behind where it began has been looked at before.
        if (row === undefined || account === null || (wrapped && account > end)) break;
        position = account;
        if (rows.int(row, 'due_at') <= now && !isLocked(account)) found.push(account);
      }
      barrenSince = more && found.length === 0 ? end : null;
      if (!more) position = found.at(-1) ?? start;
      return found;
    },
    servedUntil(account) {
      position = account;
      more = true;
    },
    get more() {
      return more;
    },
  };
}

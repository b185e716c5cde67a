/**
 * Whose turn it is: the accounts of one lane with something due, one after another round a circle. Each look is one seek
 * of the index, which meets the earliest queued row of the next account, so what an account has queued costs nothing; the
 * looks of one round are bounded, and the next round goes on where this one ended.
 */
import type { DatabaseSync } from 'node:sqlite';
import * as rows from '../rules/rows.ts';

/** Accounts looked at in one round: about 5 ms. */
const LOOKS = 2_000;

export interface Turn {
  /** Begins a round behind the account that was found last. */
  begin(): void;
  /** The next account of this round with something due, or null at its end: once round, or the looks are used up. */
  next(now: number): number | null;
  /** Sets the turn back: `account` was the last to be served. */
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
  /** The round: where it is once round, whether it has passed the first account, its looks, and the account found last. */
  let end = 0;
  let wrapped = false;
  let looks = 0;
  let found: number | null = null;

  function isLocked(account: number): boolean {
    const row = lockOf.get(account);
    return row === undefined || rows.intOrNull(row, 'locked_at') !== null;
  }

  return {
    begin() {
      end = barrenSince ?? position;
      wrapped = barrenSince !== null && position < end;
      looks = 0;
      found = null;
      more = true;
    },
    next(now) {
      while (looks < LOOKS) {
        looks += 1;
        const row = nextAccount.get(lane, position);
        if (row === undefined && !wrapped && end > 0) {
          wrapped = true;
          position = 0;
          continue;
        }
        const account = row === undefined ? null : rows.int(row, 'account_id');
        // Once round: everything behind where it began has been looked at before.
        if (row === undefined || account === null || (wrapped && account > end)) {
          more = false;
          barrenSince = null;
          position = found ?? end;
          return null;
        }
        position = account;
        if (rows.int(row, 'due_at') <= now && !isLocked(account)) {
          found = account;
          barrenSince = null;
          return account;
        }
      }
      barrenSince = found === null ? end : null;
      return null;
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

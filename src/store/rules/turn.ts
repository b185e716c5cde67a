/**
 * How many messages an account may have leased in its turn, in both databases.
 *
 * Fairness: while others have something due, an account gets at most `rowsPerTurn` of a claim, and a claim that is filled so
 * serves at least `MIN_ACCOUNTS` accounts. So the backlog of one account delays the first message of another by at most one claim.
 * With one row for each turn a claim reads and writes a page of the index of due messages for each of its rows; with 8 of them
 * an account's rows lie together (docs/decisions/hot-path.md has the figures).
 */

const MAX_ROWS = 8;
/** Accounts that one claim serves at least, where so many have something due. */
const MIN_ACCOUNTS = 64;

/** Rows of one account in its turn, in a claim of so many messages. */
export function rowsPerTurn(mails: number): number {
  return Math.min(MAX_ROWS, Math.max(1, Math.floor(mails / MIN_ACCOUNTS)));
}

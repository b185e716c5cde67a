/**
 * Claiming: due mail requests leased to one node, fairly over lanes and accounts. The embedded store has one writer, so
 * a few indexed statements in its transaction do what one statement with SKIP LOCKED does on PostgreSQL.
 *
 * Fairness: the lanes (first attempts, retries) begin in turn, the one that begins gets half of the room, and what one
 * leaves the other takes; within a lane, accounts take turns (`turn.ts`) of a few rows each (`rules/turn.ts`), so no backlog of
 * one starves another.
 */

import type { DatabaseSync } from 'node:sqlite';
import type { Lease, LeasedMail } from '../../model/message.ts';
import { suppressedEntry } from '../../model/stored-entries.ts';
import type { Claimed, ClaimRoom } from '../contract.ts';
import * as rows from '../rules/rows.ts';
import { transition } from '../rules/transition.ts';
import { rowsPerTurn } from '../rules/turn.ts';
import { prepareAppend } from './event.ts';
import type { Turn } from './turn.ts';
import { createTurn } from './turn.ts';

/** What one claim has left. Mail requests that end suppressed take room too: they are work. */
interface Left {
  mails: number;
  bytes: number;
  /** True until something was taken: the first is taken whatever its size. */
  untouched: boolean;
}

/** What a claim has come to so far. */
interface Gathered {
  readonly mails: LeasedMail[];
  readonly suppressed: Pick<LeasedMail, 'id' | 'accountId' | 'to'>[];
}

export function prepareClaim(database: DatabaseSync): (room: ClaimRoom, lease: Lease, now: number) => Claimed {
  const sending = transition('queued', 'sending', 'queue');
  const suppressed = transition('queued', 'suppressed', 'queue');
  const due = database.prepare(
    `SELECT m.seq, m.id, m.account_id, m."to", m.recipient, m."from", m.subject, m.accepted_at, m.attempts, b.message,
       octet_length(b.message) AS bytes
     FROM mail_request m INDEXED BY mail_request_due JOIN body b ON b.seq = m.seq
     WHERE m.state = 'queued' AND m.lane = ? AND m.account_id = ? AND m.due_at <= ? ORDER BY m.due_at LIMIT ?`,
  );
  const isSuppressed = database.prepare(
    'SELECT 1 AS found FROM suppression WHERE recipient = ? AND account_id IN (?, 0) LIMIT 1',
  );
  const lend = database.prepare(
    `UPDATE mail_request SET state = '${sending}', due_at = ?, owner = ?, attempts = attempts + 1, handing_over = 0 WHERE seq = ?`,
  );
  const suppress = database.prepare(
    `UPDATE mail_request SET state = '${suppressed}', due_at = NULL, ended_at = ? WHERE seq = ?`,
  );
  const append = prepareAppend(database);
  const lanes = [0, 1].map((lane) => ({ lane, turn: createTurn(database, lane) }));

  function lendOne(row: rows.Row, lease: Lease, now: number, claimed: Gathered): void {
    const seq = rows.int(row, 'seq');
    const id = rows.text(row, 'id');
    const to = rows.text(row, 'to');
    const accountId = rows.int(row, 'account_id');
    if (isSuppressed.get(rows.textOrNull(row, 'recipient') ?? to, accountId) !== undefined) {
      suppress.run(now, seq);
      append(seq, suppressedEntry(now, 'store'));
      claimed.suppressed.push({ id, accountId, to });
      return;
    }
    lend.run(lease.until, lease.owner, seq);
    claimed.mails.push(rows.leasedMail(row, lease, rows.int(row, 'attempts') + 1));
  }

  /** The account's due rows that fit, earliest first, and whether one was left because it did not. */
  function fitting(lane: number, account: number, wanted: number, left: Left, now: number) {
    const found: rows.Row[] = [];
    // Read one at a time, so that no more message text is in memory than what fits, and one message.
    for (const row of due.iterate(lane, account, now, wanted)) {
      const bytes = rows.int(row, 'bytes');
      if (bytes > left.bytes && !left.untouched) return { found, full: true };
      left.untouched = false;
      left.bytes -= bytes;
      left.mails -= 1;
      found.push(row);
    }
    return { found, full: false };
  }

  /**
   * Leases from one lane what fits into `left`: `share` rows of each account in turn, and once all have had their turn, equal
   * shares of what is left. True where more may be due in it.
   */
  function claimLane(
    { lane, turn }: { readonly lane: number; readonly turn: Turn },
    share: number,
    left: Left,
    lease: Lease,
    now: number,
    claimed: Gathered,
  ): boolean {
    if (left.mails <= 0 || (left.bytes <= 0 && !left.untouched)) return true;
    let unserved: number[] = [];
    let served: number | null = null;
    turn.begin();
    for (let account = turn.next(now); account !== null; account = turn.next(now)) {
      const wanted = Math.min(share, left.mails);
      const { found, full } = fitting(lane, account, wanted, left, now);
      for (const row of found) lendOne(row, lease, now, claimed);
      if (full) {
        // An account that got something has had its turn.
        turn.servedUntil(found.length > 0 ? account : (served ?? account - 1));
        return true;
      }
      if (left.mails === 0) return true;
      served = account;
      if (found.length === wanted) unserved.push(account);
    }
    // Others, at which this round has not looked, come first.
    if (turn.more) return true;
    while (unserved.length > 0) {
      const equal = Math.max(1, Math.floor(left.mails / unserved.length));
      const more: number[] = [];
      for (const account of unserved) {
        const wanted = Math.min(equal, left.mails);
        const { found, full } = fitting(lane, account, wanted, left, now);
        for (const row of found) lendOne(row, lease, now, claimed);
        if (full || left.mails === 0) return true;
        if (found.length === wanted) more.push(account);
      }
      unserved = more;
    }
    return false;
  }

  return function claim(room, lease, now) {
    const claimed: Gathered = { mails: [], suppressed: [] };
    const left: Left = { mails: room.mails, bytes: room.bytes, untouched: true };
    const share = rowsPerTurn(room.mails);
    const [first, second] = lanes;
    lanes.reverse();
    if (first === undefined || second === undefined) return { ...claimed, more: false };
    const half: Left = { ...left, mails: Math.ceil(room.mails / 2), bytes: Math.ceil(room.bytes / 2) };
    const begun = { ...half };
    let firstMore = claimLane(first, share, half, lease, now, claimed);
    left.mails -= begun.mails - half.mails;
    left.bytes -= begun.bytes - half.bytes;
    left.untouched = half.untouched;
    const secondMore = claimLane(second, share, left, lease, now, claimed);
    // What the second lane has left is the first one's again.
    if (firstMore) firstMore = claimLane(first, share, left, lease, now, claimed);
    return { ...claimed, more: firstMore || secondMore };
  };
}

/**
 * Claiming: due mail requests leased to one node, fairly over lanes and accounts. Rows that another node is leasing at the
 * same time are skipped (`FOR UPDATE SKIP LOCKED`), so no node waits for another and none gets what another has.
 *
 * Fairness: the lanes (first attempts, retries) begin in turn, the one that begins gets half of the room, and what one
 * leaves the other takes; within a lane, accounts take turns (`turn.ts`) of a few rows each (`rules/turn.ts`); where they are
 * few, each has an equal share of the room.
 */

import type { Lease } from '../../model/message.ts';
import { suppressedEntry } from '../../model/stored-entries.ts';
import type { Claimed, Store } from '../contract.ts';
import * as rows from '../rules/rows.ts';
import { transition } from '../rules/transition.ts';
import { rowsPerTurn } from '../rules/turn.ts';
import { endMail } from './end.ts';
import { appendEvents } from './event.ts';
import type { Database, Row, Statement, Transaction } from './session.ts';
import type { Turn } from './turn.ts';
import { createTurn } from './turn.ts';

// The first one is taken whatever its size ($7), so that none is too large for ever. What does not fit is unlocked again
// by the commit.
const LEASE: Statement = {
  name: 'claim_lease',
  text: `WITH picked AS MATERIALIZED (
      SELECT q.id, q.account_id, q.bytes, q.due_at, t.turn FROM unnest($1::int[]) WITH ORDINALITY AS t(account_id, turn)
      CROSS JOIN LATERAL (
        SELECT w.id, w.account_id, w.bytes, w.due_at FROM queue w
        WHERE w.state = 'queued' AND w.lane = $2 AND w.account_id = t.account_id AND w.due_at <= $3
        ORDER BY w.due_at LIMIT $4 FOR UPDATE SKIP LOCKED) q
    ), fitting AS (
      SELECT id, account_id, turn, due_at, count(*) OVER all_picked AS n,
        row_number() OVER in_turn AS place, sum(bytes) OVER in_turn AS bytes FROM picked
      WINDOW in_turn AS (ORDER BY turn, due_at, id), all_picked AS ()
    ), leased AS (
      UPDATE queue q SET state = 'sending', due_at = $5, owner = $6, attempts = q.attempts + 1, handing_over = false
      FROM fitting f WHERE q.id = f.id AND q.account_id = f.account_id
        AND (f.bytes <= $8 OR ($7 AND f.place = 1)) AND f.place <= $9
      RETURNING q.id, q.account_id, q.attempts, q.accepted_at, q.bytes, f.place, f.n
    )
    SELECT l.*, m."to", m."from", m.subject, b.message, EXISTS (SELECT 1 FROM suppression s
        WHERE s.recipient = coalesce(m.recipient, m."to") AND s.account_id IN (l.account_id, 0)) AS suppressed
    FROM leased l JOIN mail_request m ON m.id = l.id AND m.account_id = l.account_id
      JOIN body b ON b.id = l.id AND b.account_id = l.account_id ORDER BY l.place`,
};

interface Left {
  mails: number;
  bytes: number;
  untouched: boolean;
}

const suppressedState = transition('queued', 'suppressed', 'queue');
transition('queued', 'sending', 'queue');

export function prepareClaim(database: Database): Store['claim'] {
  const lanes = [0, 1].map((lane) => ({ lane, turn: createTurn(lane) }));

  /** Leases from one lane what fits into `left`; resolves to whether more may be due in it. */
  async function claimLane(
    transaction: Transaction,
    { lane, turn }: { readonly lane: number; readonly turn: Turn },
    perTurn: number,
    left: Left,
    lease: Lease,
    now: number,
    found: Row[],
  ): Promise<boolean> {
    if (left.mails <= 0 || (left.bytes <= 0 && !left.untouched)) return true;
    const next = await turn.next(transaction, now, left.mails);
    let waiting = next.accounts;
    while (waiting.length > 0) {
      const share = Math.max(waiting === next.accounts ? perTurn : 1, Math.floor(left.mails / waiting.length));
      /** Accounts that had their whole share, and may have more. */
      const unserved: number[] = [];
      /** What an account is expected to have due, so that few rows are locked in vain. */
      let expected = share;
      for (let at = 0; at < waiting.length; ) {
        const some = waiting.slice(at, at + Math.ceil(left.mails / expected));
        at += some.length;
        const { until, owner } = lease;
        const values = [some, lane, now, share, until, owner, left.untouched, left.bytes, left.mails];
        const leased = await transaction.query(LEASE, values);
        const perAccount = new Map<number, number>();
        for (const row of leased) {
          const account = rows.int(row, 'account_id');
          perAccount.set(account, (perAccount.get(account) ?? 0) + 1);
          left.mails -= 1;
          left.bytes -= rows.int(row, 'bytes');
          left.untouched = false;
          found.push(row);
        }
        const last = leased.at(-1);
        // The first one did not fit, or others are leasing the same rows: then it is its turn again.
        if (last === undefined && !left.untouched) turn.servedUntil((some[0] ?? 1) - 1);
        // One that did not fit: its account is the next to be served.
        else if (last !== undefined && leased.length < rows.int(last, 'n'))
          turn.servedUntil(rows.int(last, 'account_id'));
        else if (left.mails <= 0) turn.servedUntil(some.at(-1) ?? 0);
        else {
          unserved.push(...some.filter((account) => perAccount.get(account) === share));
          expected = Math.max(1, expected / 4, leased.length / some.length);
          continue;
        }
        return true;
      }
      // Others are leasing all that is due.
      if (left.untouched) return false;
      waiting = unserved;
    }
    return next.more;
  }

  async function claimIn(
    transaction: Transaction,
    room: { mails: number; bytes: number },
    lease: Lease,
    now: number,
  ): Promise<Claimed> {
    const found: Row[] = [];
    const left: Left = { mails: room.mails, bytes: room.bytes, untouched: true };
    const [first, second] = lanes;
    if (first === undefined || second === undefined) return { mails: [], suppressed: [], more: false };
    const half: Left = { mails: Math.ceil(room.mails / 2), bytes: Math.ceil(room.bytes / 2), untouched: true };
    const begun = { ...half };
    const perTurn = rowsPerTurn(room.mails);
    let firstMore = await claimLane(transaction, first, perTurn, half, lease, now, found);
    left.mails -= begun.mails - half.mails;
    left.bytes -= begun.bytes - half.bytes;
    left.untouched = half.untouched;
    const secondMore = await claimLane(transaction, second, perTurn, left, lease, now, found);
    // What the second lane has left is the first one's again.
    if (firstMore) firstMore = await claimLane(transaction, first, perTurn, left, lease, now, found);
    const suppressed = found.filter((row) => row.suppressed === true);
    await endSuppressed(transaction, suppressed, now);
    return {
      mails: found
        .filter((row) => row.suppressed !== true)
        .map((row) => rows.leasedMail(row, lease, rows.int(row, 'attempts'))),
      suppressed: suppressed.map((row) => ({
        id: rows.text(row, 'id'),
        accountId: rows.int(row, 'account_id'),
        to: rows.text(row, 'to'),
      })),
      more: firstMore || secondMore,
    };
  }

  return async (room, lease, now) => {
    lanes.reverse();
    return database.transaction((transaction) => claimIn(transaction, room, lease, now));
  };
}

async function endSuppressed(transaction: Transaction, suppressed: readonly Row[], now: number): Promise<void> {
  if (suppressed.length === 0) return;
  await Promise.all([
    endMail(
      transaction,
      suppressed.map((row) => ({
        id: rows.text(row, 'id'),
        state: suppressedState,
        endedAt: now,
        attempts: rows.int(row, 'attempts') - 1,
      })),
    ),
    appendEvents(
      transaction,
      suppressed.map((row) => ({
        ...suppressedEntry(now, 'store'),
        id: rows.text(row, 'id'),
        accountId: rows.int(row, 'account_id'),
      })),
    ),
  ]);
}

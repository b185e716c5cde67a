/**
 * The end of leases: marks before handing over, settlements fenced by owner and attempt, and leases taken back. Rows are
 * locked in order of their id, so that batches of several nodes never wait for each other in a circle.
 */

import type { SettleAnswer, Settlement } from '../../model/message.ts';
import type { State } from '../../model/state-machine.ts';
import { TERMINAL } from '../../model/state-machine.ts';
import { lostLease } from '../../model/stored-entries.ts';
import type { Store } from '../contract.ts';
import { referenceOf } from '../rules/feedback.ts';
import * as rows from '../rules/rows.ts';
import { laneAfter, settledState } from '../rules/settlement.ts';
import { Tallies } from '../rules/tallies.ts';
import { transition } from '../rules/transition.ts';
import type { ServerTime } from '../surroundings.ts';
import { type Ended, endMail } from './end.ts';
import { appendEvents, type NewEvent } from './event.ts';
import { prove } from './proof.ts';
import { count } from './reputation.ts';
import type { Database, Statement, Transaction } from './session.ts';

// One look into the key for each lease, in its order. The state is compared in a way that no partial index answers: what the
// statistics say of leases is old within a second, and to read all that are under way takes longer.
const FENCED = `SELECT q.id, q.account_id, s.o
  FROM (SELECT * FROM unnest($1::uuid[], $2::text[], $3::int[]) WITH ORDINALITY AS u(id, owner, attempts, o) ORDER BY id, o) s
  CROSS JOIN LATERAL (
    SELECT w.id, w.account_id FROM queue w
    WHERE w.id = s.id AND w.owner = s.owner AND w.attempts = s.attempts AND w.state || '' = 'sending' FOR UPDATE) q`;
const HOLD: Statement = { name: 'settle_hold', text: FENCED };
const MARK: Statement = {
  name: 'settle_mark',
  text: `WITH held AS MATERIALIZED (${FENCED}), one AS (SELECT id, account_id, min(o) AS o FROM held GROUP BY 1, 2)
    UPDATE queue q SET handing_over = true FROM one h WHERE q.id = h.id AND q.account_id = h.account_id RETURNING h.o`,
};
// First attempts stand in the order of acceptance; what was leased and not used goes back to its place.
const RELEASE: Statement = {
  name: 'settle_release',
  text: `WITH held AS MATERIALIZED (${FENCED}), one AS (SELECT id, account_id, min(o) AS o FROM held GROUP BY 1, 2)
    UPDATE queue q SET state = '${transition('sending', 'queued', 'queue')}', due_at = CASE q.lane WHEN 0 THEN least(q.accepted_at, $4) ELSE $4 END,
      owner = NULL, handing_over = false, attempts = q.attempts - 1
    FROM one h WHERE q.id = h.id AND q.account_id = h.account_id RETURNING h.o`,
};
const GO_ON: Statement = {
  name: 'settle_go_on',
  text: `UPDATE queue q SET state = s.state, due_at = s.due_at, owner = NULL, handing_over = false,
      lane = greatest(q.lane, s.lane)::smallint, attempts = q.attempts - s.uncount
    FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::int[], $5::int[]) AS s(id, state, due_at, lane, uncount)
    WHERE q.id = s.id AND q.id = ANY($1::uuid[])`,
};
// In the order of every import, so that none waits for another in a circle.
/** Puts the recipients of mail requests on their accounts' lists; returns those that are new there. */
export const SUPPRESS: Statement = {
  name: 'settle_suppress',
  text: `INSERT INTO suppression (recipient, account_id, reason, source, at)
    SELECT DISTINCT ON (r.recipient COLLATE "C", m.account_id) r.recipient, m.account_id, s.reason, m.id, s.at
    FROM unnest($1::uuid[], $2::text[], $3::bigint[]) AS s(id, reason, at) JOIN mail_request m ON m.id = s.id
      CROSS JOIN LATERAL (SELECT coalesce(m.recipient, m."to") AS recipient) r
    WHERE m.id = ANY($1::uuid[]) ORDER BY r.recipient COLLATE "C", m.account_id, s.at
    ON CONFLICT DO NOTHING RETURNING source`,
};
const OVERDUE: Statement = {
  name: 'settle_overdue',
  text: `SELECT q.id, q.account_id, q.owner, q.handing_over FROM queue q
    WHERE q.state = 'sending' AND NOT q.id = ANY($1::uuid[]) AND ($2
      OR (q.owner = $3 AND q.due_at <= $7)
      OR (q.owner <> $3 AND ($5 OR q.due_at <= $4) AND NOT EXISTS (SELECT 1 FROM node n
        WHERE n.name = q.owner AND n.alive_until > coalesce($8::bigint, extract(epoch FROM clock_timestamp()) * 1000))))
    ORDER BY q.id LIMIT $6 FOR UPDATE OF q SKIP LOCKED`,
};
const TAKE_BACK: Statement = {
  name: 'settle_take_back',
  text: `UPDATE queue q SET state = s.state, due_at = CASE s.state WHEN 'queued' THEN $3::bigint END, owner = NULL, handing_over = false,
      attempts = q.attempts - s.uncount
    FROM unnest($1::uuid[], $2::text[], $4::int[]) AS s(id, state, uncount)
    WHERE q.id = s.id AND q.id = ANY($1::uuid[])`,
};
const REFER: Statement = {
  name: 'settle_refer',
  text: `INSERT INTO provider_reference (reference, id, at)
    SELECT DISTINCT ON (reference COLLATE "C") * FROM unnest($1::text[], $2::text[], $3::bigint[]) AS r(reference, id, at)
    ORDER BY reference COLLATE "C" ON CONFLICT DO NOTHING`,
};
/** Leases taken back in one transaction. */
const ROUND = 2_000;

/** What one batch of settlements writes. */
interface Written {
  readonly ended: Ended[];
  readonly goingOn: { id: string; state: State; dueAt: number | null; lane: number; uncount: number }[];
  readonly events: NewEvent[];
  readonly suppressed: { id: string; reason: string; at: number }[];
  readonly references: { reference: string; id: string; at: number }[];
}

export function prepareSettle(
  database: Database,
  time: ServerTime,
): Pick<Store, 'mark' | 'settle' | 'release' | 'recover'> {
  return {
    async mark(batch) {
      return answersOf(batch, await database.query(MARK, fencesOf(batch)));
    },
    async release(batch, now) {
      return answersOf(batch, await database.query(RELEASE, [...fencesOf(batch), now]));
    },
    settle: (batch) => database.transaction((transaction) => settleIn(transaction, batch)),
    async recover(options) {
      let taken = 0;
      for (;;) {
        const round = await database.transaction((transaction) => recoverIn(transaction, options, time()));
        taken += round;
        if (round < ROUND) return taken;
      }
    },
  };
}

async function settleIn(transaction: Transaction, batch: readonly Settlement[]): Promise<SettleAnswer[]> {
  const held = await transaction.query(HOLD, fencesOf(batch));
  const accounts = new Map(held.map((row) => [rows.int(row, 'o'), rows.int(row, 'account_id')]));
  const over = new Set<string>();
  const written: Written = { ended: [], goingOn: [], events: [], suppressed: [], references: [] };
  const settled: (readonly [settlement: Settlement, accountId: number])[] = [];
  const answers = batch.map((one, index): SettleAnswer => {
    const accountId = accounts.get(index + 1);
    // A lease ends once.
    if (accountId === undefined || over.has(one.id)) return 'lost';
    over.add(one.id);
    plan(one, accountId, written);
    settled.push([one, accountId]);
    return 'settled';
  });
  // The outcome of a lease that is lost is dropped: what ended the lease must hold.
  if (settled.length === 0) await prove(transaction);
  const { goingOn, suppressed, references } = written;
  const [fresh] = await Promise.all([
    suppressed.length === 0
      ? []
      : transaction.query(SUPPRESS, [
          suppressed.map(({ id }) => id),
          suppressed.map(({ reason }) => reason),
          suppressed.map(({ at }) => at),
        ]),
    endMail(transaction, written.ended),
    goingOn.length === 0
      ? []
      : transaction.query(GO_ON, [
          goingOn.map(({ id }) => id),
          goingOn.map(({ state }) => state),
          goingOn.map(({ dueAt }) => dueAt),
          goingOn.map(({ lane }) => lane),
          goingOn.map(({ uncount }) => uncount),
        ]),
    appendEvents(transaction, written.events),
    references.length === 0
      ? []
      : transaction.query(REFER, [
          references.map(({ reference }) => reference),
          references.map(({ id }) => id),
          references.map(({ at }) => at),
        ]),
  ]);
  const news = new Set(fresh.map((row) => rows.text(row, 'source')));
  const tallies = new Tallies();
  for (const [{ id, changes, untallied }, accountId] of settled) {
    if (untallied === true) continue;
    // What comes of an address that is suppressed already is no new evidence against the account.
    let from: State = 'sending';
    for (const { to, suppress, event } of changes) {
      tallies.add(accountId, from, to, suppress !== null && news.has(id), event.at);
      from = to;
    }
  }
  for (const [accountId, tally, at] of tallies.all()) await count(transaction, accountId, tally, at);
  return answers;
}

/** Adds to `written` what one settlement writes. */
function plan({ id, attempts, uncount, changes }: Settlement, accountId: number, written: Written): void {
  let from: State = 'sending';
  let lane = 0;
  for (const [index, { to, event, suppress }] of changes.entries()) {
    from = settledState(from, to, index === 0);
    if (index === 0) lane = laneAfter(event.verb);
    const { at, verb, by, detail } = event;
    const attempt = event.attempt === null ? null : JSON.stringify(event.attempt);
    written.events.push({ id, accountId, at, verb, by, detail, attempt });
    const reference = referenceOf(event.attempt);
    if (reference !== null) written.references.push({ reference, id, at });
    if (suppress !== null) written.suppressed.push({ id, reason: suppress, at });
  }
  const last = changes.at(-1);
  if (last === undefined) return;
  const back = uncount ? 1 : 0;
  if (TERMINAL.has(last.to))
    written.ended.push({ id, state: last.to, endedAt: last.event.at, attempts: attempts - back });
  else written.goingOn.push({ id, state: last.to, dueAt: last.dueAt, lane, uncount: back });
}

async function recoverIn(
  transaction: Transaction,
  { now, everyLease, deadNodes, onUncertain, by, ownUntil, except = [] }: Parameters<Store['recover']>[0],
  serverNow: number | null,
): Promise<number> {
  const found = await transaction.query(OVERDUE, [
    except,
    everyLease,
    by,
    now,
    deadNodes,
    ROUND,
    ownUntil ?? now,
    serverNow,
  ]);
  if (found.length === 0) return 0;
  const taken = found.map((row) => {
    const { to, entry, ...lost } = lostLease(onUncertain, row.handing_over === true, now, by);
    transition('sending', to, 'queue');
    // A node's own lease keeps its count: with it, what the node may still say about that lease stays fenced off.
    const uncount = lost.uncount && row.owner !== by ? 1 : 0;
    return { id: rows.text(row, 'id'), accountId: rows.int(row, 'account_id'), to, entry, uncount };
  });
  await Promise.all([
    transaction.query(TAKE_BACK, [
      taken.map(({ id }) => id),
      taken.map(({ to }) => to),
      now,
      taken.map(({ uncount }) => uncount),
    ]),
    appendEvents(
      transaction,
      taken.map(({ id, accountId, entry }) => ({ ...entry, id, accountId })),
    ),
  ]);
  return found.length;
}

type Fences = Parameters<Store['mark']>[0];

function fencesOf(batch: Fences): unknown[] {
  return [batch.map(({ id }) => id), batch.map(({ owner }) => owner), batch.map(({ attempts }) => attempts)];
}

/** `held` has the places in the batch, from 1, of those that held their lease. */
function answersOf(batch: Fences, held: readonly Readonly<Record<string, unknown>>[]): SettleAnswer[] {
  const places = new Set(held.map((row) => rows.int(row, 'o')));
  return batch.map((_, index) => (places.has(index + 1) ? 'settled' : 'lost'));
}

/** Ends and purges what is too old. */
import { createExpiredEntry, PARKED_FOR_ROUTE } from '../model/message.ts';
import type { MessageTransaction } from './messages.ts';
import { QUEUE_SQL } from './parking.ts';
import { getMaxIdAt, getMaxSeqAt, getMinIdAt, requireTransition } from './rules/messages.ts';
import * as rows from './rules/rows.ts';
import { deleteRows, type Transaction } from './transaction.ts';

/** Of one statement on PostgreSQL. */
const MAX_SCANNED_BODIES = 5_000;
const MIN_ID = getMinIdAt(0);
const EXPIRED_STATE = requireTransition('queued', 'expired', 'queue');

const QUEUED_IN_LANE = `FROM mail_request q INDEXED BY mail_request_due WHERE q.state = 'queued' AND q.lane`;
const { isWaiting, ageStart } = QUEUE_SQL;

/**
 * `resetDueTimes` finds the latest due row of each account and lane with one index lookup, so its cost depends on the
 * number of accounts and not on the length of the queue.
 */
const DIALECTS = {
  sqlite: {
    queue: 'mail_request INDEXED BY mail_request_waiting',
    expiringQueue: 'mail_request INDEXED BY mail_request_expires',
    // SQLite would compare only the lane of a row value with columns of `seen`.
    resetDueTimes: `WITH RECURSIVE seen AS (
        SELECT l.lane, (SELECT min(q.account_id) ${QUEUED_IN_LANE} = l.lane) AS account_id
        FROM (SELECT 0 AS lane UNION ALL SELECT 1) l
        UNION ALL
        SELECT s.lane, (SELECT min(q.account_id) ${QUEUED_IN_LANE} = s.lane AND q.account_id > s.account_id)
        FROM seen s WHERE s.account_id IS NOT NULL
      )
      UPDATE mail_request SET due_at = $2 WHERE seq IN (
        SELECT q.seq FROM seen s CROSS JOIN mail_request q INDEXED BY mail_request_due
        WHERE q.state = 'queued' AND q.lane = s.lane AND q.account_id = s.account_id AND q.due_at > $1 AND q.due_at < ${PARKED_FOR_ROUTE}
        LIMIT $3)
      RETURNING 1 AS one`,
  },
  postgres: {
    queue: 'queue',
    expiringQueue: 'queue',
    resetDueTimes: `WITH RECURSIVE seen AS (
        (SELECT lane, account_id FROM queue WHERE state = 'queued' ORDER BY lane, account_id LIMIT 1)
        UNION ALL
        SELECT n.lane, n.account_id FROM seen s CROSS JOIN LATERAL (
          SELECT q.lane, q.account_id FROM queue q WHERE q.state = 'queued' AND (q.lane, q.account_id) > (s.lane, s.account_id)
          ORDER BY q.lane, q.account_id LIMIT 1) n
      ), excessive AS MATERIALIZED (
        SELECT f.id FROM seen s CROSS JOIN LATERAL (
          SELECT q.id FROM queue q
          WHERE q.state = 'queued' AND q.lane = s.lane AND q.account_id = s.account_id AND q.due_at > $1 AND q.due_at < ${PARKED_FOR_ROUTE}
          ORDER BY q.due_at DESC LIMIT $3 FOR UPDATE SKIP LOCKED) f LIMIT $3
      )
      UPDATE queue SET due_at = $2 WHERE id = ANY(ARRAY(SELECT id FROM excessive)) RETURNING 1 AS one`,
  },
} as const;

/**
 * Expires up to `limit` queued messages that were accepted at or before `acceptedBefore`, or whose own expiry has
 * passed. The age of a message does not include the time for which a hold stopped it.
 */
export async function expire(
  tx: MessageTransaction,
  acceptedBefore: number,
  now: number,
  limit: number,
  node: string,
): Promise<readonly string[]> {
  const { queue, expiringQueue } = DIALECTS[tx.dialect];
  const oldest = await tx.query(
    `SELECT id, account_id, attempts FROM ${queue} WHERE ${isWaiting} AND ${ageStart} <= $1
     ORDER BY ${ageStart} LIMIT $2 FOR UPDATE SKIP LOCKED`,
    [acceptedBefore, limit],
  );
  const past = await tx.query(
    `SELECT id, account_id, attempts FROM ${expiringQueue} WHERE ${isWaiting} AND expires_at <= $1
     ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED`,
    [now, limit - oldest.length],
  );
  const found = new Map([...oldest, ...past].map((row) => [row.id, row]));
  const expired = [...found.values()].map((row) => ({
    id: rows.readText(row, 'id'),
    accountId: rows.readInteger(row, 'account_id'),
    attempts: rows.readInteger(row, 'attempts'),
    state: EXPIRED_STATE,
    endedAt: now,
  }));
  const entry = createExpiredEntry(now, node);
  await Promise.all([
    tx.endMessages(expired),
    tx.appendEntries(expired.map(({ id, accountId, state }) => ({ ...entry, id, accountId, state }))),
  ]);
  return expired.map(({ id }) => id);
}

/**
 * No retry is due after `latestDueAt`: such a due time was stored before the clock was set back. Resolves to the
 * number of messages that are now due.
 */
export async function resetExcessiveDueTimes(
  tx: Transaction,
  latestDueAt: number,
  now: number,
  limit: number,
): Promise<number> {
  return (await tx.query(DIALECTS[tx.dialect].resetDueTimes, [latestDueAt, now, limit])).length;
}

/**
 * Purges up to `limit` bodies and up to `limit` idempotency keys. Resolves to the greater of the counts. If it equals
 * `limit`, more rows may remain.
 */
export async function purgeBodiesAndKeys(
  tx: Transaction,
  endedBefore: number,
  keysBefore: number,
  limit: number,
): Promise<number> {
  const [purgedBodies, purgedKeys] = await Promise.all([
    purgeBodies(tx, endedBefore, limit),
    deleteRows(tx, 'idempotency', 'account_id, key', 'WHERE at <= $1 ORDER BY at LIMIT $2', [keysBefore, limit]),
  ]);
  return Math.max(purgedBodies, purgedKeys);
}

// A message cannot end before it is accepted, so only messages that were accepted before `endedBefore` are read. On
// PostgreSQL each message is looked up individually, because a join would read all messages.
const PURGE_BODIES = {
  sqlite: `DELETE FROM body WHERE seq IN (
      SELECT b.seq FROM body b JOIN mail_request m ON m.seq = b.seq
      WHERE b.seq <= $1 AND m.ended_at <= $2 ORDER BY b.seq LIMIT $3) RETURNING 1 AS one`,
  postgres: `WITH scanned AS MATERIALIZED (
      SELECT id, account_id FROM body WHERE id > $1::uuid AND id <= $2::uuid ORDER BY id LIMIT ${MAX_SCANNED_BODIES}
    ), expired AS MATERIALIZED (
      SELECT s.id FROM scanned s CROSS JOIN LATERAL (
        SELECT 1 FROM mail_request m WHERE m.id = s.id AND m.account_id = s.account_id AND m.ended_at <= $3 LIMIT 1) m
      ORDER BY s.id LIMIT $4
    ), purged AS (
      DELETE FROM body WHERE id = ANY(ARRAY(SELECT id FROM expired)) AND id > $1::uuid AND id <= $2::uuid RETURNING 1
    )
    SELECT (SELECT count(*) FROM purged)::int AS purged, (SELECT count(*) FROM scanned)::int AS scanned,
      (SELECT id FROM scanned ORDER BY id DESC LIMIT 1) AS last`,
} as const;

async function purgeBodies(tx: Transaction, endedBefore: number, limit: number): Promise<number> {
  if (tx.dialect === 'sqlite')
    return (await tx.query(PURGE_BODIES.sqlite, [getMaxSeqAt(endedBefore), endedBefore, limit])).length;
  let purgedCount = 0;
  let afterId = MIN_ID;
  for (;;) {
    const values = [afterId, getMaxIdAt(endedBefore), endedBefore, limit - purgedCount];
    const [row = {}] = await tx.query(PURGE_BODIES.postgres, values);
    purgedCount += rows.readInteger(row, 'purged');
    if (purgedCount >= limit || rows.readInteger(row, 'scanned') < MAX_SCANNED_BODIES) return purgedCount;
    afterId = rows.readText(row, 'last');
  }
}

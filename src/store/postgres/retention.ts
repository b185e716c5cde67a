import { createExpiredEntry } from '../../model/message.ts';
import type { Store } from '../contract.ts';
import type { ServerTimeOverride } from '../environment.ts';
import { getMaxIdAt, getMinIdAt, requireTransition } from '../rules/messages.ts';
import * as rows from '../rules/rows.ts';
import { appendEvents, endMessages } from './history.ts';
import { dropExpiredBodies, ensurePartitions } from './partitions.ts';
import type { Database } from './session.ts';

const MAX_SCANNED_BODIES = 5_000;
// The order of the ids is the order of acceptance, so a range of the primary key contains the oldest messages.
const SELECT_EXPIRED = `SELECT id, account_id, attempts FROM queue WHERE state = 'queued' AND id <= $1::uuid ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED`;
// Finding the latest due row of each account and lane takes one index lookup. The cost therefore depends on the number
// of accounts and not on the length of the queue.
const RESET_DUE_TIMES = `WITH RECURSIVE seen AS (
      (SELECT lane, account_id FROM queue WHERE state = 'queued' ORDER BY lane, account_id LIMIT 1)
      UNION ALL
      SELECT n.lane, n.account_id FROM seen s CROSS JOIN LATERAL (
        SELECT q.lane, q.account_id FROM queue q WHERE q.state = 'queued' AND (q.lane, q.account_id) > (s.lane, s.account_id)
        ORDER BY q.lane, q.account_id LIMIT 1) n
    ), excessive AS MATERIALIZED (
      SELECT f.id FROM seen s CROSS JOIN LATERAL (
        SELECT q.id FROM queue q
        WHERE q.state = 'queued' AND q.lane = s.lane AND q.account_id = s.account_id AND q.due_at > $1
        ORDER BY q.due_at DESC LIMIT $3 FOR UPDATE SKIP LOCKED) f LIMIT $3
    )
    UPDATE queue SET due_at = $2 WHERE id = ANY(ARRAY(SELECT id FROM excessive)) RETURNING id`;
// A message cannot end before it is accepted, so only messages that were accepted before `endedBefore` are read. Each
// message is looked up individually, because a join would read all messages. One statement scans a limited number of
// bodies.
const PURGE_BODIES = `WITH scanned AS MATERIALIZED (
      SELECT id, account_id FROM body WHERE id > $1::uuid AND id <= $2::uuid ORDER BY id LIMIT ${MAX_SCANNED_BODIES}
    ), expired AS MATERIALIZED (
      SELECT s.id FROM scanned s CROSS JOIN LATERAL (
        SELECT 1 FROM mail_request m WHERE m.id = s.id AND m.account_id = s.account_id AND m.ended_at <= $3 LIMIT 1) m
      ORDER BY s.id LIMIT $4
    ), purged AS (
      DELETE FROM body WHERE id = ANY(ARRAY(SELECT id FROM expired)) AND id > $1::uuid AND id <= $2::uuid RETURNING 1
    )
    SELECT (SELECT count(*) FROM purged)::int AS purged, (SELECT count(*) FROM scanned)::int AS scanned,
      (SELECT id FROM scanned ORDER BY id DESC LIMIT 1) AS last`;
const PURGE_IDEMPOTENCY_KEYS = `DELETE FROM idempotency WHERE (account_id, key) IN (
    SELECT account_id, key FROM idempotency WHERE at <= $1 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING 1 AS one`;

const EXPIRED_STATE = requireTransition('queued', 'expired', 'queue');
const PARTITION_INTERVAL_MS = 3_600_000;
const MIN_ID = getMinIdAt(0);

/** `serverTime` and `monotonic` determine which partitions are created, and when the next ones are. */
export function prepareRetention(
  database: Database,
  serverTime: ServerTimeOverride,
  monotonic: () => number,
): Pick<Store, 'resetExcessiveDueTimes' | 'expire' | 'purgeBodiesAndKeys'> {
  let partitionsCheckedAt = 0;
  return {
    async resetExcessiveDueTimes(latestDueAt, now, limit) {
      return (await database.query(RESET_DUE_TIMES, [latestDueAt, now, limit])).length;
    },
    expire(acceptedBefore, now, limit, node) {
      return database.transaction(async (transaction) => {
        const expiredRows = await transaction.query(SELECT_EXPIRED, [getMaxIdAt(acceptedBefore), limit]);
        const ids = expiredRows.map((row) => rows.readText(row, 'id'));
        const entry = createExpiredEntry(now, node);
        await Promise.all([
          endMessages(
            transaction,
            expiredRows.map((row) => ({
              id: rows.readText(row, 'id'),
              state: EXPIRED_STATE,
              endedAt: now,
              attempts: rows.readInteger(row, 'attempts'),
            })),
          ),
          appendEvents(
            transaction,
            expiredRows.map((row) => ({
              ...entry,
              id: rows.readText(row, 'id'),
              accountId: rows.readInteger(row, 'account_id'),
              ...{ state: EXPIRED_STATE, suppresses: false },
            })),
          ),
        ]);
        return ids;
      });
    },
    async purgeBodiesAndKeys(endedBefore, keysBefore, limit) {
      const now = monotonic();
      if (partitionsCheckedAt === 0 || now - partitionsCheckedAt > PARTITION_INTERVAL_MS) {
        const isComplete = await ensurePartitions(database, serverTime() ?? undefined);
        await dropExpiredBodies(database, endedBefore);
        partitionsCheckedAt = isComplete ? now : 0;
      }
      const [purgedBodies, purgedKeys] = await Promise.all([
        purgeBodies(database, endedBefore, limit),
        database.query(PURGE_IDEMPOTENCY_KEYS, [keysBefore, limit]),
      ]);
      return Math.max(purgedBodies, purgedKeys.length);
    },
  };
}

async function purgeBodies(database: Database, endedBefore: number, limit: number): Promise<number> {
  let purgedCount = 0;
  let afterId = MIN_ID;
  for (;;) {
    const values = [afterId, getMaxIdAt(endedBefore), endedBefore, limit - purgedCount];
    const [row = {}] = await database.query(PURGE_BODIES, values);
    purgedCount += rows.readInteger(row, 'purged');
    if (purgedCount >= limit || rows.readInteger(row, 'scanned') < MAX_SCANNED_BODIES) return purgedCount;
    afterId = rows.readText(row, 'last');
  }
}

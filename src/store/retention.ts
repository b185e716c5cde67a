/** Ends and purges what is too old. */
import { createExpiredEntry, PARKED_FOR_ROUTE } from '../model/message.ts';
import type { MessageTransaction } from './messages.ts';
import { QUEUE_SQL } from './parking.ts';
import { getMaxIdAt, getMaxSeqAt, getMinIdAt, MESSAGE_KEYS, requireTransition } from './rules/messages.ts';
import * as rows from './rules/rows.ts';
import { acquireIndexLock, deleteDocuments, deleteEmptyBlocks } from './search/indexer.ts';
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

/** Read by one step. Few messages outlive those that were accepted after them, so few are read in vain. */
const MAX_SCANNED_MESSAGES = 2_000;

/**
 * The range lets PostgreSQL skip the other partitions. On SQLite all writes wait for a step, most of which removes the terms
 * of the messages from the index; on PostgreSQL a step occupies one of many connections.
 */
const PURGE_MESSAGES = {
  sqlite: {
    ...MESSAGE_KEYS.sqlite,
    toLastKeyAt: getMaxSeqAt,
    isPurged: 'seq = ANY($1::bigint[])',
    maxMessages: 50,
    pauseSteps: 10,
  },
  postgres: {
    ...MESSAGE_KEYS.postgres,
    toLastKeyAt: getMaxIdAt,
    isPurged: 'id = ANY($1::uuid[]) AND id >= $2::uuid AND id <= $3::uuid',
    maxMessages: 500,
    pauseSteps: 2,
  },
} as const;

export interface PurgeStep {
  readonly endedBefore: number;
  /** The `next` of the step before, or null for the first step of a pass over all messages. */
  readonly after: string | null;
  readonly limit: number;
}

export interface PurgedMessages {
  readonly purgedCount: number;
  /** Null at the end of the pass. */
  readonly next: string | null;
  /** How many times as long as the step the pause after it must be, so that messages are not delayed. */
  readonly pauseSteps: number;
}

/**
 * Purges up to `limit` messages that ended at or before `endedBefore`, with everything that names them; accounts keep
 * their suppressions, figures and idempotency keys.
 */
export async function purgeMessages(
  tx: Transaction,
  { endedBefore, after, limit: maxLimit }: PurgeStep,
): Promise<PurgedMessages> {
  const first = after ?? MIN_ID;
  const { key, toKey, toLastKeyAt, maxMessages, pauseSteps } = PURGE_MESSAGES[tx.dialect];
  if (!(await acquireIndexLock(tx))) return { purgedCount: 0, next: first, pauseSteps };
  const limit = Math.min(maxLimit, maxMessages);
  const range = [toKey(first), toLastKeyAt(endedBefore)];
  const scanned = `FROM mail_request WHERE ${key} > $1 AND ${key} <= $2 ORDER BY ${key}`;
  const [found, [lastScanned], references] = await Promise.all([
    tx.query(
      `SELECT id FROM (SELECT id, ended_at ${scanned} LIMIT ${MAX_SCANNED_MESSAGES}) m WHERE ended_at <= $3
       ORDER BY id LIMIT $4`,
      [...range, endedBefore, limit],
    ),
    tx.query(`SELECT id ${scanned} LIMIT 1 OFFSET ${MAX_SCANNED_MESSAGES - 1}`, range),
    // A reference is stored when its message ends.
    deleteRows(tx, 'provider_reference', 'reference', 'WHERE at <= $1 ORDER BY at LIMIT $2', [endedBefore, limit]),
  ]);
  const ids = found.map((row) => rows.readText(row, 'id'));
  const purgedCount = await purgeFound(tx, ids);
  const scannedTo =
    ids.length >= limit ? ids.at(-1) : lastScanned === undefined ? null : rows.readText(lastScanned, 'id');
  if (scannedTo === null && references < limit) await deleteEmptyBlocks(tx);
  return { purgedCount, next: scannedTo ?? (references < limit ? null : first), pauseSteps };
}

/** Leaves out the messages that another transaction has locked. */
async function purgeFound(tx: Transaction, candidates: readonly string[]): Promise<number> {
  if (candidates.length === 0) return 0;
  const { key, toKey, isPurged } = PURGE_MESSAGES[tx.dialect];
  const toValues = (ids: readonly string[]) => {
    const keys = ids.map((id) => toKey(id));
    return tx.dialect === 'sqlite' ? [keys] : [keys, keys[0], keys.at(-1)];
  };
  const messages = await tx.query(
    `SELECT id, account_id, "to", recipient, "from", subject FROM mail_request WHERE ${isPurged}
     ORDER BY ${key} FOR UPDATE SKIP LOCKED`,
    toValues(candidates),
  );
  const ids = messages.map((row) => rows.readText(row, 'id'));
  if (ids.length === 0) return 0;
  await deleteDocuments(tx, messages.map(rows.toSearchableMessage));
  const values = toValues(ids);
  await Promise.all([
    // Before the deliveries, because a worker may be moving an event of the outbox to them.
    tx.query('DELETE FROM outbox WHERE message_id = ANY($1::uuid[])', [ids]),
    // A notification stays, without the message that contained it.
    tx.query('UPDATE webhook_delivery SET message_id = NULL WHERE webhook_id < 0 AND message_id = ANY($1::uuid[])', [
      ids,
    ]),
    tx.query(
      `DELETE FROM webhook_delivery WHERE ctid = ANY(ARRAY(
         SELECT ctid FROM webhook_delivery WHERE message_id = ANY($1::uuid[]) ORDER BY webhook_id, id FOR UPDATE))`,
      [ids],
    ),
    tx.query('DELETE FROM feedback WHERE mail_id = ANY($1::text[])', [ids]),
    tx.query('UPDATE inbox_rule SET last_message = NULL, last_recipient = NULL WHERE last_message = ANY($1::uuid[])', [
      ids,
    ]),
    ...['event', 'body', 'mail_request'].map((table) => tx.query(`DELETE FROM ${table} WHERE ${isPurged}`, values)),
  ]);
  return ids.length;
}

/** The time of the oldest end among the oldest messages, from which a late purge is seen. */
export async function findOldestEnd(tx: Transaction): Promise<number | null> {
  const [row = { at: null }] = await tx.query(
    `SELECT min(ended_at) AS at FROM (
       SELECT ended_at FROM mail_request ORDER BY ${MESSAGE_KEYS[tx.dialect].key} LIMIT ${MAX_SCANNED_MESSAGES}) m`,
  );
  return rows.readIntegerOrNull(row, 'at');
}

/** Entries are nearly in the order of their times, so only the oldest are read. */
const MAX_SCANNED_ENTRIES = 5_000;

export async function purgeAudit(tx: Transaction, before: number, limit: number): Promise<number> {
  const purged = await tx.query(
    `DELETE FROM audit WHERE id IN (
       SELECT id FROM (SELECT id, at FROM audit ORDER BY id LIMIT ${MAX_SCANNED_ENTRIES}) oldest
       WHERE at <= $1 ORDER BY id LIMIT $2) RETURNING 1 AS one`,
    [before, limit],
  );
  return purged.length;
}

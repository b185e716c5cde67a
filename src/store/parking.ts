/** Parked messages (model/message.ts): their list, and their return to the queue. */
import type { HoldableMessage } from '../model/hold.ts';
import {
  ATTEMPT_OWED,
  PARKED_BY_HOLD,
  PARKED_FOR_ROUTE,
  type ParkedMessage,
  toParkedDueTime,
} from '../model/message.ts';
import { MESSAGE_KEYS } from './rules/messages.ts';
import * as rows from './rules/rows.ts';
import type { Transaction } from './transaction.ts';

const IS_PARKED = `state = 'queued' AND due_at >= ${PARKED_FOR_ROUTE}`;

/** Parts of statements on the queue. The conditions are those of the partial indexes. */
export const QUEUE_SQL = {
  isHeld: `${IS_PARKED} AND due_at >= ${PARKED_BY_HOLD}`,
  /** No hold stops the message. */
  isWaiting: `state = 'queued' AND due_at + 0 < ${PARKED_BY_HOLD}`,
  /** The order of the waiting messages by age. */
  ageStart: 'accepted_at + held_ms',
  /** Makes queued messages due at the time `$2`. Their age does not include the held time. */
  setDue: `due_at = $2, held_ms = CASE WHEN state = 'queued' AND due_at >= ${PARKED_BY_HOLD}
    THEN ${ATTEMPT_OWED} + held_ms % ${ATTEMPT_OWED} + greatest(0, $2::bigint - (due_at - ${PARKED_BY_HOLD})) ELSE held_ms END`,
} as const;
const { isWaiting, ageStart, setDue } = QUEUE_SQL;
const MIN_ID = '00000000-0000-0000-0000-000000000000';

const DIALECTS = {
  sqlite: {
    ...MESSAGE_KEYS.sqlite,
    table: 'mail_request',
    list: `SELECT id, account_id, "from", "to", due_at FROM mail_request INDEXED BY mail_request_parked
      WHERE ${IS_PARKED} AND seq > $1 ORDER BY seq LIMIT $2`,
    listExpiring: `SELECT id, account_id, "from", "to" FROM mail_request INDEXED BY mail_request_waiting
      WHERE ${isWaiting} AND ${ageStart} <= $1 ORDER BY ${ageStart} LIMIT $2`,
  },
  postgres: {
    ...MESSAGE_KEYS.postgres,
    table: 'queue',
    list: `SELECT q.id, q.account_id, m."from", m."to", q.due_at
      FROM (SELECT id, account_id, due_at FROM queue WHERE ${IS_PARKED} AND id > $1::uuid ORDER BY id LIMIT $2) q
        JOIN mail_request m ON m.id = q.id AND m.account_id = q.account_id ORDER BY q.id`,
    listExpiring: `SELECT q.id, q.account_id, m."from", m."to"
      FROM (SELECT id, account_id FROM queue WHERE ${isWaiting} AND ${ageStart} <= $1 ORDER BY ${ageStart} LIMIT $2) q
        JOIN mail_request m ON m.id = q.id AND m.account_id = q.account_id`,
  },
} as const;

/** In order of id. Null: from the first. */
export async function listParked(
  tx: Transaction,
  afterId: string | null,
  limit: number,
): Promise<readonly ParkedMessage[]> {
  const { list, toKey } = DIALECTS[tx.dialect];
  const first = tx.dialect === 'sqlite' ? -1 : MIN_ID;
  return (await tx.query(list, [afterId === null ? first : toKey(afterId), limit])).map(rows.toParkedMessage);
}

/** The messages that are still parked become due at once. Resolves to their number. */
export async function unpark(tx: Transaction, ids: readonly string[], now: number): Promise<number> {
  const { table, key, toKey } = DIALECTS[tx.dialect];
  const unparked = await tx.query(
    `UPDATE ${table} SET ${setDue} WHERE ${key} = ANY(ARRAY(
       SELECT ${key} FROM ${table} WHERE ${key} = ANY($1::uuid[]) AND ${IS_PARKED} ORDER BY ${key} FOR UPDATE SKIP LOCKED))
     RETURNING 1 AS one`,
    [ids.map((id) => toKey(id)), now],
  );
  return unparked.length;
}

/** The messages that `RetentionStore.expire` with these arguments expires. */
export async function listExpiring(
  tx: Transaction,
  acceptedBefore: number,
  limit: number,
): Promise<readonly (HoldableMessage & { readonly id: string })[]> {
  return (await tx.query(DIALECTS[tx.dialect].listExpiring, [acceptedBefore, limit])).map((row) => ({
    id: rows.readText(row, 'id'),
    accountId: rows.readInteger(row, 'account_id'),
    from: rows.readText(row, 'from'),
    to: rows.readText(row, 'to'),
  }));
}

/** Parks queued messages, which no node has leased, by a hold. Resolves to their number. */
export async function parkQueued(tx: Transaction, ids: readonly string[], now: number): Promise<number> {
  const { table, key, toKey } = DIALECTS[tx.dialect];
  const parked = await tx.query(
    `UPDATE ${table} SET due_at = $2 WHERE ${key} = ANY(ARRAY(
       SELECT ${key} FROM ${table} WHERE ${key} = ANY($1::uuid[]) AND ${isWaiting} ORDER BY ${key} FOR UPDATE SKIP LOCKED))
     RETURNING 1 AS one`,
    [ids.map((id) => toKey(id)), toParkedDueTime('hold', now)],
  );
  return parked.length;
}

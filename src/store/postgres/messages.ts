/** Reads messages, and writes the changes that an operator makes to a message. */

import type { Actor } from '../../model/audit.ts';
import {
  type MessageHistory,
  type OperatorChangeResult,
  SHOWN_ENTRIES,
  type StoredMessage,
  type StoredMessageSummary,
} from '../../model/message.ts';
import type { QueueStatistics } from '../../model/overview.ts';
import { isUuid } from '../../model/uuid.ts';
import { insertAuditEntry } from '../audit.ts';
import type { Store } from '../contract.ts';
import { decideOperatorChange, getMaxIdAt, type OperatorTargetState, requireTransition } from '../rules/messages.ts';
import * as rows from '../rules/rows.ts';
import { appendEvents, endMessages } from './history.ts';
import { type Database, forceDurableCommit, type Row, type Statement, type Transaction } from './session.ts';

const OPEN_STATES: readonly string[] = ['queued', 'sending', 'uncertain'];

const HISTORY_COLUMNS = `m.id, m.account_id, m.key_id, m.accepted_at, m.ended_at, m."to", m."from", m.subject,
      coalesce(q.state, m.state) AS state, coalesce(q.attempts, m.attempts) AS attempts, q.due_at, q.owner, m.further_reports`;
const SELECT_MESSAGE: Statement = {
  name: 'message_select',
  text: `SELECT ${HISTORY_COLUMNS}, b.message
    FROM mail_request m LEFT JOIN queue q ON q.id = m.id AND q.account_id = m.account_id
      LEFT JOIN body b ON b.id = m.id AND b.account_id = m.account_id AND b.id = $1::uuid WHERE m.id = $1::uuid`,
};
const SELECT_HISTORY: Statement = {
  name: 'message_history',
  text: `SELECT ${HISTORY_COLUMNS}
    FROM mail_request m LEFT JOIN queue q ON q.id = m.id AND q.account_id = m.account_id WHERE m.id = $1::uuid`,
};
const SELECT_EVENTS: Statement = {
  name: 'message_events',
  // The entry `accepted` is not a row.
  text: `WITH oldest AS (SELECT * FROM event WHERE id = $1::uuid ORDER BY n LIMIT ${SHOWN_ENTRIES.oldest - 1}),
    newest AS (SELECT * FROM event WHERE id = $1::uuid AND n > (SELECT max(n) FROM oldest) ORDER BY n DESC LIMIT ${SHOWN_ENTRIES.newest})
    SELECT at, verb, by, detail, failure, attempt, (SELECT count(*) FROM event WHERE id = $1::uuid)::int AS total
    FROM (SELECT * FROM oldest UNION ALL SELECT * FROM newest) h ORDER BY n`,
};
const LOCK_QUEUE_ROW: Statement = {
  name: 'message_lock_queue_row',
  text: 'SELECT id, account_id, state, due_at, attempts FROM queue WHERE id = $1::uuid FOR UPDATE',
};
const SELECT_STATE: Statement = { name: 'message_state', text: 'SELECT state FROM mail_request WHERE id = $1::uuid' };
const REQUEUE_MESSAGE: Statement = {
  name: 'message_requeue',
  text: `UPDATE queue SET state = '${requireTransition('uncertain', 'queued', 'operator')}', due_at = $2, owner = NULL, handing_over = false WHERE id = $1::uuid`,
};
// Counts all rows, and uses a small partial index to count the rows that are not queued. With 1,000,000 queued messages
// this query takes a third of the time of a query that counts by state. The order of the ids is the order of
// acceptance. A message that contains a notification to operators is not selected as the oldest message, because a
// notification that cannot be delivered must not cause another notification.
const SELECT_STATISTICS: Statement = {
  name: 'message_statistics',
  text: `SELECT (SELECT count(*) FROM queue)::int AS total,
    (SELECT count(*) FROM queue WHERE state <> 'queued' AND state = 'sending')::int AS sending,
    (SELECT count(*) FROM queue WHERE state <> 'queued' AND state = 'uncertain')::int AS uncertain,
    oldest.id AS oldest_id, oldest.accepted_at AS oldest_at
    FROM (VALUES (1)) one LEFT JOIN
      (SELECT q.id, q.accepted_at FROM queue q WHERE q.state <> 'uncertain'
        AND NOT EXISTS (SELECT 1 FROM notification n WHERE n.message_id = q.id) ORDER BY q.id LIMIT 1) oldest ON true`,
};
const SELECT_NEWEST_ID: Statement = {
  name: 'message_newest',
  text: 'SELECT id FROM mail_request ORDER BY id DESC LIMIT 1',
};

const CANCELLED_STATE = requireTransition('queued', 'cancelled', 'operator');

type Operations = Pick<
  Store,
  | 'listMessages'
  | 'findMessage'
  | 'readMessageHistories'
  | 'retryMessage'
  | 'cancelMessage'
  | 'readQueueStatistics'
  | 'findNewestId'
>;

/** Changes one message in the transaction of the caller. `id` is a UUID. */
export async function changeMessageInTransaction(
  transaction: Transaction,
  id: string,
  to: OperatorTargetState,
  now: number,
  actor: Actor | undefined,
): Promise<OperatorChangeResult> {
  const [queueRow] = await transaction.query(LOCK_QUEUE_ROW, [id]);
  if (queueRow === undefined) {
    const [[ended]] = await Promise.all([transaction.query(SELECT_STATE, [id]), forceDurableCommit(transaction)]);
    return ended === undefined ? { kind: 'missing' } : { kind: 'wrong-state', state: rows.readState(ended) };
  }
  const before = { id, from: rows.readState(queueRow), dueAt: rows.readIntegerOrNull(queueRow, 'due_at') };
  const decision = decideOperatorChange(before, to, now, actor);
  if (decision.kind === 'wrong-state') return decision;
  const { entry, audit } = decision;
  const attempts = rows.readInteger(queueRow, 'attempts');
  await Promise.all([
    to === 'queued'
      ? transaction.query(REQUEUE_MESSAGE, [id, now])
      : endMessages(transaction, [{ id, state: CANCELLED_STATE, endedAt: now, attempts }]),
    appendEvents(transaction, [
      { ...entry, id, accountId: rows.readInteger(queueRow, 'account_id'), state: to, suppresses: false },
    ]),
    audit === null ? undefined : insertAuditEntry(transaction, audit),
  ]);
  return { kind: 'done' };
}

export function prepareMessages(database: Database): Operations {
  async function findMessage(id: string): Promise<StoredMessage | null> {
    if (!isUuid(id)) return null;
    const [row] = await database.query(SELECT_MESSAGE, [id]);
    return row === undefined ? null : { ...(await readHistory(row)), message: rows.readTextOrNull(row, 'message') };
  }

  async function findHistory(id: string): Promise<readonly MessageHistory[]> {
    const [row] = isUuid(id) ? await database.query(SELECT_HISTORY, [id]) : [];
    return row === undefined ? [] : [await readHistory(row)];
  }

  async function readHistory(row: Row): Promise<MessageHistory> {
    return rows.toMessageHistory(row, await database.query(SELECT_EVENTS, [rows.readText(row, 'id')]));
  }

  const changeMessage = async (
    id: string,
    to: OperatorTargetState,
    now: number,
    actor: Actor | undefined,
  ): Promise<OperatorChangeResult> =>
    isUuid(id)
      ? database.transaction((transaction) => changeMessageInTransaction(transaction, id, to, now, actor))
      : { kind: 'missing' };

  return {
    async listMessages(filter): Promise<StoredMessageSummary[]> {
      const { accountId, state, to, since, failureClass = null, failureCategory = null, before = null, limit } = filter;
      const conditions: string[] = [];
      const values: unknown[] = [];
      const addCondition = (clause: (parameter: string) => string, value: unknown) => {
        values.push(value);
        conditions.push(clause(`$${values.length}`));
      };
      if (accountId !== null) addCondition((value) => `m.account_id = ${value}`, accountId);
      const isOpen = state !== null && OPEN_STATES.includes(state);
      if (state !== null) addCondition((value) => `${isOpen ? 'q' : 'm'}.state = ${value}`, state);
      if (failureClass !== null) addCondition((value) => `m.failure_class = ${value}`, failureClass);
      if (failureCategory !== null) addCondition((value) => `m.failure_category = ${value}`, failureCategory);
      if (to !== null)
        addCondition((value) => `(lower(m."to") = lower(${value}) OR lower(m.recipient) = lower(${value}))`, to);
      if (since !== null) addCondition((value) => `m.id > ${value}::uuid`, getMaxIdAt(since - 1));
      if (before !== null) addCondition((value) => `m.id < ${value}::uuid`, before);
      values.push(limit);
      const text = `SELECT m.id, m.account_id, coalesce(q.state, m.state) AS state, m."to", m."from", m.subject, m.accepted_at
        FROM mail_request m ${isOpen ? '' : 'LEFT '}JOIN queue q ON q.id = m.id AND q.account_id = m.account_id
        ${conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`} ORDER BY m.id DESC LIMIT $${values.length}`;
      return (await database.query({ name: '', text }, values)).map(rows.toMessageSummary);
    },
    findMessage,
    readMessageHistories: async (ids) => (await Promise.all(ids.map(findHistory))).flat(),
    retryMessage: (id, now, by) => changeMessage(id, 'queued', now, by),
    cancelMessage: (id, now, by) => changeMessage(id, 'cancelled', now, by),
    async readQueueStatistics(): Promise<QueueStatistics> {
      const [row = {}] = await database.query(SELECT_STATISTICS, []);
      const [id, acceptedAt] = [rows.readTextOrNull(row, 'oldest_id'), rows.readIntegerOrNull(row, 'oldest_at')];
      const [sending, uncertain] = [rows.readInteger(row, 'sending'), rows.readInteger(row, 'uncertain')];
      return {
        queued: rows.readInteger(row, 'total') - sending - uncertain,
        sending,
        uncertain,
        oldest: id === null || acceptedAt === null ? null : { id, acceptedAt },
      };
    },
    async findNewestId() {
      const [row] = await database.query(SELECT_NEWEST_ID, []);
      return row === undefined ? null : rows.readText(row, 'id');
    },
  };
}

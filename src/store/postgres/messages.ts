/** Reads of messages, and an operator's changes of one message. */

import type { Actor } from '../../model/audit.ts';
import type { MessageHistory, OperatorChangeResult, StoredMessage, StoredMessageSummary } from '../../model/message.ts';
import type { QueueStatistics } from '../../model/overview.ts';
import type { Store } from '../contract.ts';
import { decideOperatorChange, maxIdAt, type OperatorTargetState, transition } from '../rules/messages.ts';
import * as rows from '../rules/rows.ts';
import { writeAuditEntry } from './audit.ts';
import { appendEvents, endMessages } from './queue.ts';
import { type Database, forceDurableCommit, type Row, type Statement } from './session.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const OPEN: readonly string[] = ['queued', 'sending', 'uncertain'];

const STANDING = `m.id, m.account_id, m.key_id, m.accepted_at, m.ended_at, m."to", m."from", m.subject,
      coalesce(q.state, m.state) AS state, coalesce(q.attempts, m.attempts) AS attempts, q.due_at, q.owner`;
const SHOW: Statement = {
  name: 'mail_show',
  text: `SELECT ${STANDING}, b.message
    FROM mail_request m LEFT JOIN queue q ON q.id = m.id AND q.account_id = m.account_id
      LEFT JOIN body b ON b.id = m.id AND b.account_id = m.account_id AND b.id = $1::uuid WHERE m.id = $1::uuid`,
};
const STAND: Statement = {
  name: 'mail_stand',
  text: `SELECT ${STANDING}
    FROM mail_request m LEFT JOIN queue q ON q.id = m.id AND q.account_id = m.account_id WHERE m.id = $1::uuid`,
};
const HISTORY: Statement = {
  name: 'mail_history',
  text: 'SELECT at, verb, by, detail, attempt FROM event WHERE id = $1::uuid ORDER BY n',
};
const HOLD: Statement = {
  name: 'mail_hold',
  text: 'SELECT id, account_id, state, due_at, attempts FROM queue WHERE id = $1::uuid FOR UPDATE',
};
const STATE: Statement = { name: 'mail_state', text: 'SELECT state FROM mail_request WHERE id = $1::uuid' };
const REQUEUE: Statement = {
  name: 'mail_requeue',
  text: `UPDATE queue SET state = '${transition('uncertain', 'queued', 'operator')}', due_at = $2, owner = NULL, handing_over = false WHERE id = $1::uuid`,
};
// Counts all rows, and those that are not queued by their own small index: a third of the time of counting by state at
// 1,000,000 queued messages. The order of ids is the order of acceptance.
const FIGURES: Statement = {
  name: 'mail_figures',
  text: `SELECT (SELECT count(*) FROM queue)::int AS all_of_them,
    (SELECT count(*) FROM queue WHERE state <> 'queued' AND state = 'sending')::int AS sending,
    (SELECT count(*) FROM queue WHERE state <> 'queued' AND state = 'uncertain')::int AS uncertain,
    oldest.id AS oldest_id, oldest.accepted_at AS oldest_at
    FROM (VALUES (1)) one LEFT JOIN
      (SELECT id, accepted_at FROM queue WHERE state <> 'uncertain' ORDER BY id LIMIT 1) oldest ON true`,
};
const NEWEST: Statement = { name: 'mail_newest', text: 'SELECT id FROM mail_request ORDER BY id DESC LIMIT 1' };

const cancelled = transition('queued', 'cancelled', 'operator');

type Operations = Pick<
  Store,
  'listMessages' | 'findMessage' | 'messageHistories' | 'retryMessage' | 'cancelMessage' | 'queueFigures' | 'newestId'
>;

export function prepareMessages(database: Database): Operations {
  async function show(id: string): Promise<StoredMessage | null> {
    if (!UUID.test(id)) return null;
    const [row] = await database.query(SHOW, [id]);
    return row === undefined ? null : { ...(await standingOf(row)), message: rows.textOrNull(row, 'message') };
  }

  async function stand(id: string): Promise<readonly MessageHistory[]> {
    const [row] = UUID.test(id) ? await database.query(STAND, [id]) : [];
    return row === undefined ? [] : [await standingOf(row)];
  }

  async function standingOf(row: Row): Promise<MessageHistory> {
    return rows.messageHistory(row, await database.query(HISTORY, [rows.text(row, 'id')]));
  }

  function operate(
    id: string,
    to: OperatorTargetState,
    now: number,
    by: Actor | undefined,
  ): Promise<OperatorChangeResult> {
    if (!UUID.test(id)) return Promise.resolve({ kind: 'missing' });
    return database.transaction(async (transaction) => {
      const [held] = await transaction.query(HOLD, [id]);
      if (held === undefined) {
        const [[ended]] = await Promise.all([transaction.query(STATE, [id]), forceDurableCommit(transaction)]);
        return ended === undefined ? { kind: 'missing' } : { kind: 'wrong-state', state: rows.state(ended) };
      }
      const before = { id, from: rows.state(held), dueAt: rows.intOrNull(held, 'due_at') };
      const decided = decideOperatorChange(before, to, now, by);
      if (decided.kind === 'wrong-state') return decided;
      const { entry, audit } = decided;
      const attempts = rows.int(held, 'attempts');
      await Promise.all([
        to === 'queued'
          ? transaction.query(REQUEUE, [id, now])
          : endMessages(transaction, [{ id, state: cancelled, endedAt: now, attempts }]),
        appendEvents(transaction, [{ ...entry, id, accountId: rows.int(held, 'account_id') }]),
        audit === null ? undefined : writeAuditEntry(transaction, audit),
      ]);
      return { kind: 'done' };
    });
  }

  return {
    async listMessages({ accountId, state, to, since, before = null, limit }): Promise<StoredMessageSummary[]> {
      const where: string[] = [];
      const values: unknown[] = [];
      const narrow = (clause: (parameter: string) => string, value: unknown) => {
        values.push(value);
        where.push(clause(`$${values.length}`));
      };
      if (accountId !== null) narrow((value) => `m.account_id = ${value}`, accountId);
      const open = state !== null && OPEN.includes(state);
      if (state !== null) narrow((value) => `${open ? 'q' : 'm'}.state = ${value}`, state);
      if (to !== null)
        narrow((value) => `(lower(m."to") = lower(${value}) OR lower(m.recipient) = lower(${value}))`, to);
      if (since !== null) narrow((value) => `m.id > ${value}::uuid`, maxIdAt(since - 1));
      if (before !== null) narrow((value) => `m.id < ${value}::uuid`, before);
      values.push(limit);
      const text = `SELECT m.id, m.account_id, coalesce(q.state, m.state) AS state, m."to", m."from", m.subject, m.accepted_at
        FROM mail_request m ${open ? '' : 'LEFT '}JOIN queue q ON q.id = m.id AND q.account_id = m.account_id
        ${where.length === 0 ? '' : `WHERE ${where.join(' AND ')}`} ORDER BY m.id DESC LIMIT $${values.length}`;
      return (await database.query({ name: '', text }, values)).map(rows.messageSummary);
    },
    findMessage: show,
    messageHistories: async (ids) => (await Promise.all(ids.map(stand))).flat(),
    retryMessage: (id, now, by) => operate(id, 'queued', now, by),
    cancelMessage: (id, now, by) => operate(id, 'cancelled', now, by),
    async queueFigures(): Promise<QueueStatistics> {
      const [row = {}] = await database.query(FIGURES, []);
      const [id, acceptedAt] = [rows.textOrNull(row, 'oldest_id'), rows.intOrNull(row, 'oldest_at')];
      const [sending, uncertain] = [rows.int(row, 'sending'), rows.int(row, 'uncertain')];
      return {
        queued: rows.int(row, 'all_of_them') - sending - uncertain,
        sending,
        uncertain,
        oldest: id === null || acceptedAt === null ? null : { id, acceptedAt },
      };
    },
    async newestId() {
      const [row] = await database.query(NEWEST, []);
      return row === undefined ? null : rows.text(row, 'id');
    },
  };
}

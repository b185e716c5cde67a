/** Reads messages, and writes the changes that operators make to messages. */

import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import type { Actor } from '../../model/audit.ts';
import {
  type MessageFilter,
  type MessageHistory,
  type OperatorChangeResult,
  SHOWN_ENTRIES,
  type StoredMessage,
  type StoredMessageSummary,
} from '../../model/message.ts';
import type { QueueStatistics } from '../../model/overview.ts';
import {
  decideOperatorChange,
  getMaxSeqAt,
  type OperatorTargetState,
  requireTransition,
  toSeq,
} from '../rules/messages.ts';
import * as rows from '../rules/rows.ts';
import type { Audit } from './audit.ts';
import { prepareAppend } from './history.ts';
import type { Outbox } from './outbox.ts';

export function prepareMessages(database: DatabaseSync, audit: Audit, outbox: Outbox) {
  const selectById = database.prepare('SELECT * FROM mail_request WHERE seq = ? AND id = ?');
  const selectWithBody = database.prepare(
    'SELECT m.*, b.message FROM mail_request m LEFT JOIN body b ON b.seq = m.seq WHERE m.seq = ? AND m.id = ?',
  );
  // The entries of a message are numbered from 1.
  const selectHistory = database.prepare(
    `SELECT at, verb, by, detail, failure, attempt, total
     FROM (SELECT max(n) AS total FROM event WHERE seq = :seq) CROSS JOIN event
     WHERE seq = :seq AND (n < ${SHOWN_ENTRIES.oldest} OR n > total - ${SHOWN_ENTRIES.newest}) ORDER BY n`,
  );
  const QUEUED_STATE = requireTransition('uncertain', 'queued', 'operator');
  const CANCELLED_STATE = requireTransition('queued', 'cancelled', 'operator');
  const makeDue = database.prepare(
    `UPDATE mail_request SET state = '${QUEUED_STATE}', due_at = ?, owner = NULL, handing_over = 0 WHERE seq = ?`,
  );
  const cancel = database.prepare(
    `UPDATE mail_request SET state = '${CANCELLED_STATE}', due_at = NULL, ended_at = ? WHERE seq = ?`,
  );
  const appendEntry = prepareAppend(database, outbox);
  // The condition equals the condition of the partial index `mail_request_due`, so the count reads only this index. The
  // count takes 25 ms for 1,000,000 queued messages. With the index of all open messages, it takes eight times as long.
  const countQueued = database.prepare(
    `SELECT count(*) AS n FROM mail_request INDEXED BY mail_request_due WHERE state = 'queued'`,
  );
  const countOpen = database.prepare('SELECT count(*) AS n FROM mail_request WHERE ended_at IS NULL AND state = ?');
  // A message that contains a notification to operators does not count as the oldest message. Otherwise an
  // undeliverable notification would cause another notification.
  const selectOldest = database.prepare(
    `SELECT id, accepted_at FROM mail_request m INDEXED BY mail_request_open WHERE ended_at IS NULL AND state = ?
       AND NOT EXISTS (SELECT 1 FROM notification n WHERE n.message_id = m.id) ORDER BY seq LIMIT 1`,
  );
  const selectNewest = database.prepare('SELECT id FROM mail_request ORDER BY seq DESC LIMIT 1');

  function listMessages(filter: MessageFilter): StoredMessageSummary[] {
    const { accountId, state, to, since, failureClass = null, failureCategory = null, before = null, limit } = filter;
    const conditions: string[] = [];
    const values: SQLInputValue[] = [];
    const addCondition = (clause: string, ...parameters: SQLInputValue[]) => {
      conditions.push(clause);
      values.push(...parameters);
    };
    if (accountId !== null) addCondition('account_id = ?', accountId);
    if (state !== null) addCondition('state = ?', state);
    if (failureClass !== null) addCondition('failure_class = ?', failureClass);
    if (failureCategory !== null) addCondition('failure_category = ?', failureCategory);
    if (to !== null) addCondition('("to" = ? COLLATE NOCASE OR recipient = ? COLLATE NOCASE)', to, to);
    if (since !== null) addCondition('seq > ?', getMaxSeqAt(since - 1));
    if (before !== null) addCondition('seq < ?', toSeq(before));
    const clause = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`;
    const sql = `SELECT id, account_id, state, "to", "from", subject, accepted_at FROM mail_request ${clause} ORDER BY seq DESC LIMIT ?`;
    return database
      .prepare(sql)
      .all(...values, limit)
      .map(rows.toMessageSummary);
  }

  function findMessage(id: string): StoredMessage | null {
    const row = selectWithBody.get(toSeq(id), id);
    return row === undefined ? null : { ...toHistory(row), message: rows.readTextOrNull(row, 'message') };
  }

  const toHistory = (row: rows.Row): MessageHistory =>
    rows.toMessageHistory(row, selectHistory.all({ seq: toSeq(rows.readText(row, 'id')) }));

  function changeState(id: string, to: OperatorTargetState, now: number, by: Actor | undefined): OperatorChangeResult {
    const seq = toSeq(id);
    const row = selectById.get(seq, id);
    if (row === undefined) return { kind: 'missing' };
    const before = { id, from: rows.readState(row), dueAt: rows.readIntegerOrNull(row, 'due_at') };
    const decision = decideOperatorChange(before, to, now, by);
    if (decision.kind === 'wrong-state') return decision;
    if (to === 'queued') makeDue.run(now, seq);
    else cancel.run(now, seq);
    appendEntry(seq, decision.entry, to);
    if (decision.audit !== null) audit.write(decision.audit);
    return { kind: 'done' };
  }

  return {
    listMessages,
    findMessage,
    readMessageHistories: (ids: readonly string[]): MessageHistory[] =>
      ids.map((id) => selectById.get(toSeq(id), id)).flatMap((row) => (row === undefined ? [] : [toHistory(row)])),
    retryMessage: (id: string, now: number, by?: Actor): OperatorChangeResult => changeState(id, 'queued', now, by),
    cancelMessage: (id: string, now: number, by?: Actor): OperatorChangeResult => changeState(id, 'cancelled', now, by),
    readQueueStatistics(): QueueStatistics {
      const oldestOpen = ['queued', 'sending']
        .flatMap((state) => selectOldest.all(state))
        .map((row) => ({ id: rows.readText(row, 'id'), acceptedAt: rows.readInteger(row, 'accepted_at') }))
        .sort((a, b) => a.acceptedAt - b.acceptedAt);
      return {
        queued: rows.readInteger(countQueued.get() ?? {}, 'n'),
        sending: rows.readInteger(countOpen.get('sending') ?? {}, 'n'),
        uncertain: rows.readInteger(countOpen.get('uncertain') ?? {}, 'n'),
        oldest: oldestOpen[0] ?? null,
      };
    },
    findNewestId(): string | null {
      const row = selectNewest.get();
      return row === undefined ? null : rows.readText(row, 'id');
    },
  };
}

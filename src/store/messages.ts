/** Reads messages and the state of the queue, and writes the changes that operators make to messages. */

import type { QueueStatistics } from '../model/attention.ts';
import type { Actor } from '../model/audit.ts';
import type { FeedbackReport, FeedbackResult } from '../model/feedback.ts';
import {
  type AcceptResult,
  ATTEMPT_OWED,
  type BulkOutcome,
  type BulkResult,
  type BulkStep,
  createResentEntry,
  findParking,
  type MessageFilter,
  type MessageHistory,
  type NewMessage,
  NOT_ALLOWED,
  NOTIFICATION_KEY_ID,
  type OperatorChangeResult,
  RESENT_VERB,
  type ResendRequest,
  type ResendResult,
  SHOWN_ENTRIES,
  type State,
  type StoredMessage,
  type StoredMessageSummary,
  toBulkOutcome,
} from '../model/message.ts';
import { isUuid } from '../model/submission.ts';
import { auditRun, insertAuditEntry } from './audit.ts';
import { QUEUE_SQL } from './parking.ts';
import type { AppendedEntry } from './rules/feedback.ts';
import {
  createResendAudit,
  decideOperatorChange,
  decideResend,
  getMaxIdAt,
  getMaxSeqAt,
  MESSAGE_KEYS,
  type OperatorTargetState,
  requireTransition,
  toResendResult,
} from './rules/messages.ts';
import * as rows from './rules/rows.ts';
import { forceDurableCommit, type Transaction } from './transaction.ts';

/** A transaction with the writes of a message's path, which each database implements in its own way. */
export interface MessageTransaction extends Transaction {
  accept(batch: readonly NewMessage[]): Promise<readonly AcceptResult[]>;
  /** Returns an id that the transaction may accept: `newId`, or one with another sequence number. */
  toUnusedId(newId: string): Promise<string>;
  /** Locks messages in order of id, so that transactions that change several messages do not deadlock. */
  lockMessages(ids: readonly string[]): Promise<unknown>;
  endMessages(messages: readonly EndedMessage[]): Promise<void>;
  /** Appends entries to the histories and records their events. The entries of one message keep their order. */
  appendEntries(entries: readonly NewEntry[]): Promise<void>;
  recordReports(batch: readonly FeedbackReport[]): Promise<readonly FeedbackResult[]>;
  /** The time of the store: on SQLite `now`; on PostgreSQL null for the server's clock, or the time of a simulation. */
  getStoreTime(now: number): number | null;
}

export interface EndedMessage {
  readonly id: string;
  readonly state: State;
  readonly endedAt: number;
  readonly attempts: number;
  /** Absent or null: the stored one stays. */
  readonly route?: string | null;
}

export interface NewEntry extends AppendedEntry {
  readonly id: string;
  readonly accountId: number;
  /** After the change. */
  readonly state: State;
  readonly suppresses?: boolean;
}

/**
 * On SQLite a message is one row, by its sequence number. On PostgreSQL an open message also has a row in `queue`, which
 * contains what changes until the end.
 */
const DIALECTS = {
  sqlite: {
    ...MESSAGE_KEYS.sqlite,
    toLastKeyAt: getMaxSeqAt,
    messages: 'mail_request m',
    openMessages: 'mail_request m',
    body: 'body b ON b.seq = m.seq',
    open: 'm',
    state: 'm.state',
    attempts: 'm.attempts',
    openTable: 'mail_request',
    isOpen: 'ended_at IS NULL',
    recipient: '(m."to" = $1 COLLATE NOCASE OR m.recipient = $1 COLLATE NOCASE)',
  },
  postgres: {
    ...MESSAGE_KEYS.postgres,
    toLastKeyAt: getMaxIdAt,
    messages: 'mail_request m LEFT JOIN queue q ON q.id = m.id AND q.account_id = m.account_id',
    openMessages: 'mail_request m JOIN queue q ON q.id = m.id AND q.account_id = m.account_id',
    body: 'body b ON b.id = m.id AND b.account_id = m.account_id AND b.id = $1::uuid',
    open: 'q',
    state: 'coalesce(q.state, m.state)',
    attempts: 'coalesce(q.attempts, m.attempts)',
    openTable: 'queue',
    isOpen: 'true',
    recipient: '(lower(m."to") = lower($1) OR lower(m.recipient) = lower($1))',
  },
} as const;
type Dialect = Transaction['dialect'];

const OPEN_STATES: readonly State[] = ['queued', 'sending', 'uncertain'];
const QUEUED_STATE = requireTransition('uncertain', 'queued', 'operator');
const CANCELLED_STATE = requireTransition('queued', 'cancelled', 'operator');

const toHistoryColumns = ({ state, attempts, open }: (typeof DIALECTS)[Dialect]) =>
  `m.id, m.account_id, m.key_id, m.accepted_at, m.ended_at, m.expires_at, m.sender, m."to", m."from", m.subject, m.further_reports,
   ${state} AS state, ${attempts} AS attempts, ${open}.due_at, ${open}.held_ms, ${open}.owner`;

export async function listMessages(tx: Transaction, filter: MessageFilter): Promise<readonly StoredMessageSummary[]> {
  const { accountId, state, to, since, failureClass = null, failureCategory = null, before = null, limit } = filter;
  const { key, toKey, toLastKeyAt, messages, openMessages, open, state: anyState, recipient } = DIALECTS[tx.dialect];
  const isOpen = state !== null && OPEN_STATES.includes(state);
  const conditions: readonly (readonly [clause: string, value: string | number | null])[] = [
    ['m.account_id = $1', accountId],
    [`${isOpen ? open : 'm'}.state = $1`, state],
    ['m.failure_class = $1', failureClass],
    ['m.failure_category = $1', failureCategory],
    [recipient, to],
    [`m.${key} > $1`, since === null ? null : toLastKeyAt(since - 1)],
    [`m.${key} < $1`, before === null ? null : toKey(before)],
  ];
  const used = conditions.filter(([, value]) => value !== null);
  const clauses = used.map(([clause], index) => clause.replaceAll('$1', `$${index + 1}`));
  const found = await tx.query(
    `SELECT m.id, m.account_id, ${anyState} AS state, m."to", m."from", m.subject, m.accepted_at
     FROM ${isOpen ? openMessages : messages} ${used.length === 0 ? '' : `WHERE ${clauses.join(' AND ')}`}
     ORDER BY m.${key} DESC LIMIT $${used.length + 1}`,
    [...used.map(([, value]) => value), limit],
  );
  return found.map(rows.toMessageSummary);
}

export async function findMessage(tx: Transaction, id: string): Promise<StoredMessage | null> {
  const dialect = DIALECTS[tx.dialect];
  const { messages, body } = dialect;
  const row = await findRow(
    tx,
    id,
    `SELECT ${toHistoryColumns(dialect)}, b.message FROM ${messages} LEFT JOIN ${body}`,
  );
  return row === null ? null : { ...(await readHistory(tx, row)), message: rows.readTextOrNull(row, 'message') };
}

export async function readMessageHistories(
  tx: Transaction,
  ids: readonly string[],
): Promise<readonly MessageHistory[]> {
  const dialect = DIALECTS[tx.dialect];
  const histories = ids.map(async (id) => {
    const row = await findRow(tx, id, `SELECT ${toHistoryColumns(dialect)} FROM ${dialect.messages}`);
    return row === null ? [] : [await readHistory(tx, row)];
  });
  return (await Promise.all(histories)).flat();
}

/** `id` may be any text. The sequence number of a message does not contain its random part, so the id is compared too. */
async function findRow(tx: Transaction, id: string, select: string): Promise<rows.Row | null> {
  if (!isUuid(id)) return null;
  const { key, toKey } = DIALECTS[tx.dialect];
  const [row] = await tx.query(`${select} WHERE m.${key} = $1${tx.dialect === 'postgres' ? '::uuid' : ''}`, [
    toKey(id),
  ]);
  return row?.id === id.toLowerCase() ? row : null;
}

/** Reads the oldest and the newest entries. The entry `accepted` is not a row. */
async function readHistory(tx: Transaction, row: rows.Row): Promise<MessageHistory> {
  const { key, toKey } = DIALECTS[tx.dialect];
  const ofMessage = `FROM event WHERE ${key} = $1`;
  const entries = await tx.query(
    `WITH oldest AS (SELECT * ${ofMessage} ORDER BY n LIMIT ${SHOWN_ENTRIES.oldest - 1}),
       newest AS (SELECT * ${ofMessage} AND n > (SELECT max(n) FROM oldest) ORDER BY n DESC LIMIT ${SHOWN_ENTRIES.newest})
     SELECT at, verb, by, detail, failure, attempt, (SELECT count(*) ${ofMessage})::int AS total
     FROM (SELECT * FROM oldest UNION ALL SELECT * FROM newest) h ORDER BY n`,
    [toKey(rows.readText(row, 'id'))],
  );
  return rows.toMessageHistory(row, entries);
}

/** Every new id is greater than this one. */
export async function findNewestId(tx: Transaction): Promise<string | null> {
  const [row] = await tx.query(`SELECT id FROM mail_request ORDER BY ${DIALECTS[tx.dialect].key} DESC LIMIT 1`);
  return row === undefined ? null : rows.readText(row, 'id');
}

// The queued messages are counted with the index of due times on SQLite (25 ms for 1,000,000; eight times as long with
// the index of open messages), and as all rows of `queue` less the few others on PostgreSQL. A message that contains a
// notification does not count as the oldest, because an undeliverable notification would cause another one. The index
// of waiting messages contains no held ones.
const { isHeld, isWaiting, ageStart, setDue } = QUEUE_SQL;
const OLDEST_FIRST = `ORDER BY ${ageStart} LIMIT 1`;
const OLDEST = `oldest.id AS oldest_id, oldest.accepted_at + oldest.held_ms % ${ATTEMPT_OWED} AS oldest_at`;
const STATISTICS = {
  sqlite: `SELECT
      (SELECT count(*) FROM mail_request INDEXED BY mail_request_due WHERE state = 'queued') AS queued,
      (SELECT count(*) FROM mail_request WHERE ended_at IS NULL AND state = 'sending') AS sending,
      (SELECT count(*) FROM mail_request WHERE ended_at IS NULL AND state = 'uncertain') AS uncertain,
      (SELECT count(*) FROM mail_request INDEXED BY mail_request_parked WHERE ${isHeld}) AS held, ${OLDEST}
    FROM (SELECT 1) one LEFT JOIN (SELECT * FROM (
        SELECT * FROM (SELECT m.* FROM mail_request m INDEXED BY mail_request_waiting WHERE ${isWaiting}
          AND m.key_id <> ${NOTIFICATION_KEY_ID} ${OLDEST_FIRST})
        UNION ALL
        SELECT * FROM (SELECT m.* FROM mail_request m INDEXED BY mail_request_open WHERE ended_at IS NULL AND state = 'sending'
          AND m.key_id <> ${NOTIFICATION_KEY_ID} ${OLDEST_FIRST}))
      ${OLDEST_FIRST}) oldest ON true`,
  postgres: `SELECT c.total - c.sending - c.uncertain AS queued, c.sending, c.uncertain,
      (SELECT count(*) FROM queue WHERE ${isHeld})::int AS held, ${OLDEST}
    FROM (SELECT (SELECT count(*) FROM queue)::int AS total,
        (SELECT count(*) FROM queue WHERE state <> 'queued' AND state = 'sending')::int AS sending,
        (SELECT count(*) FROM queue WHERE state <> 'queued' AND state = 'uncertain')::int AS uncertain) c
      LEFT JOIN (SELECT * FROM (
          (SELECT q.* FROM queue q WHERE ${isWaiting}
            AND (SELECT m.key_id FROM mail_request m WHERE m.id = q.id) <> ${NOTIFICATION_KEY_ID} ${OLDEST_FIRST})
          UNION ALL
          (SELECT q.* FROM queue q WHERE state <> 'queued' AND state = 'sending'
            AND (SELECT m.key_id FROM mail_request m WHERE m.id = q.id) <> ${NOTIFICATION_KEY_ID} ${OLDEST_FIRST})) w
        ${OLDEST_FIRST}) oldest ON true`,
} as const;

export async function readQueueStatistics(tx: Transaction): Promise<QueueStatistics> {
  const [row = {}] = await tx.query(STATISTICS[tx.dialect]);
  const [id, acceptedAt] = [rows.readTextOrNull(row, 'oldest_id'), rows.readIntegerOrNull(row, 'oldest_at')];
  return {
    queued: rows.readInteger(row, 'queued'),
    sending: rows.readInteger(row, 'sending'),
    uncertain: rows.readInteger(row, 'uncertain'),
    held: rows.readInteger(row, 'held'),
    oldest: id === null || acceptedAt === null ? null : { id, acceptedAt },
  };
}

/** Makes a queued message due now, or requeues an uncertain one. */
export function retryMessage(
  tx: MessageTransaction,
  id: string,
  now: number,
  actor?: Actor,
): Promise<OperatorChangeResult> {
  return changeState(tx, id, 'queued', now, actor);
}

export function cancelMessage(
  tx: MessageTransaction,
  id: string,
  now: number,
  actor?: Actor,
): Promise<OperatorChangeResult> {
  return changeState(tx, id, 'cancelled', now, actor);
}

async function changeState(
  tx: MessageTransaction,
  id: string,
  to: OperatorTargetState,
  now: number,
  actor: Actor | undefined,
): Promise<OperatorChangeResult> {
  const { openTable, isOpen, key, toKey } = DIALECTS[tx.dialect];
  const [openRow] = isUuid(id)
    ? await tx.query(
        `SELECT id, account_id, state, due_at, attempts FROM ${openTable} WHERE ${key} = $1 AND ${isOpen} FOR UPDATE`,
        [toKey(id)],
      )
    : [];
  if (openRow?.id !== id) {
    const [ended] = await Promise.all([
      findRow(tx, id, 'SELECT m.id, m.state FROM mail_request m'),
      forceDurableCommit(tx),
    ]);
    return ended === null ? { kind: 'missing' } : { kind: 'wrong-state', state: rows.readState(ended) };
  }
  const dueAt = rows.readIntegerOrNull(openRow, 'due_at');
  const before = { id, from: rows.readState(openRow), dueAt: findParking(dueAt) === null ? dueAt : null };
  const decision = decideOperatorChange(before, to, now, actor);
  if (decision.kind === 'wrong-state') return decision;
  const attempts = rows.readInteger(openRow, 'attempts');
  await Promise.all([
    to === 'queued'
      ? tx.query(
          `UPDATE ${openTable} SET state = '${QUEUED_STATE}', ${setDue}, owner = NULL, handing_over = false WHERE ${key} = $1`,
          [toKey(id), now],
        )
      : tx.endMessages([{ id, state: CANCELLED_STATE, endedAt: now, attempts }]),
    tx.appendEntries([{ ...decision.entry, id, accountId: rows.readInteger(openRow, 'account_id'), state: to }]),
    decision.audit === null ? null : insertAuditEntry(tx, decision.audit),
  ]);
  return { kind: 'done' };
}

/**
 * Submits an ended message again as a new message, to which suppression lists and limits apply. The histories of both
 * refer to each other. The row of the ended message is locked, so that two operators cannot submit it at the same time.
 */
export async function resendMessage(
  tx: MessageTransaction,
  { id, newId }: ResendRequest,
  now: number,
  actor?: Actor,
): Promise<ResendResult> {
  if (!isUuid(id)) return { kind: 'missing' };
  const { key, toKey, messages, state: anyState, body } = DIALECTS[tx.dialect];
  await tx.query(`SELECT account_id FROM mail_request WHERE ${key} = $1 FOR NO KEY UPDATE`, [toKey(id)]);
  const row = await findRow(
    tx,
    id,
    `SELECT m.id, m.account_id, m.key_id, ${anyState} AS state, m."to", m.recipient, m."from", m.subject, b.message,
       (SELECT e.by FROM event e WHERE e.${key} = $1 AND e.verb = 'suppressed' AND e.by NOT IN ('store', '${NOT_ALLOWED}') LIMIT 1) AS suppressed_by
     FROM ${messages} LEFT JOIN ${body}`,
  );
  const source = row === null ? null : rows.toResendSource(row);
  const decision =
    source === null ? ({ kind: 'missing' } as const) : decideResend(source, await tx.toUnusedId(newId), now);
  if (source === null || decision.kind !== 'submit') {
    await forceDurableCommit(tx);
    return decision.kind === 'submit' ? { kind: 'missing' } : decision;
  }
  const { message } = decision;
  const [accepted = { kind: 'locked' as const }] = await tx.accept([message]);
  const result = toResendResult(message, accepted);
  if (result.kind !== 'done') return result;
  const { accountId, state } = source;
  const auditEntry = createResendAudit(actor, id, state, message.id);
  await Promise.all([
    tx.appendEntries([{ ...createResentEntry(message.id, now), id, accountId, state }]),
    auditEntry === null ? null : insertAuditEntry(tx, auditEntry),
  ]);
  return result;
}

/**
 * Performs one batch of an action on many messages. A message that was resent before is not resent again. All messages are
 * locked before the first change, so that only one of two transactions resends a message.
 */
export async function changeMessages(
  tx: MessageTransaction,
  step: BulkStep,
  now: number,
  actor?: Actor,
): Promise<BulkResult> {
  await tx.lockMessages(step.targets.map(({ id }) => id).filter(isUuid));
  const outcomes: BulkOutcome[] = [];
  for (const target of step.targets) outcomes.push(await changeMessage(tx, step, target, now));
  const done = outcomes.filter(({ kind }) => kind === 'done').length;
  const refused = outcomes.length - done + step.refused;
  if (done === 0) await forceDurableCommit(tx);
  return { outcomes, entry: await auditRun(tx, actor, step, { done, refused }) };
}

async function changeMessage(
  tx: MessageTransaction,
  { action }: BulkStep,
  target: ResendRequest,
  now: number,
): Promise<BulkOutcome> {
  const { id } = target;
  switch (action) {
    case 'retry':
      return toBulkOutcome(id, await retryMessage(tx, id, now));
    case 'cancel':
      return toBulkOutcome(id, await cancelMessage(tx, id, now));
    case 'resend': {
      const { key, toKey } = DIALECTS[tx.dialect];
      const earlier = isUuid(id)
        ? await tx.query(`SELECT 1 AS one FROM event WHERE ${key} = $1 AND verb = '${RESENT_VERB}' LIMIT 1`, [
            toKey(id),
          ])
        : [];
      if (earlier.length > 0) return { kind: 'refused', id, reason: 'already-resent' };
      return toBulkOutcome(id, await resendMessage(tx, target, now));
    }
  }
}

/**
 * Implements the target of a transfer on PostgreSQL. Each page of messages is written in one transaction. An
 * interrupted transfer continues after the last copied message.
 */

import type { PostgresSetting } from '../../config/settings.ts';
import { StoreError } from '../error.ts';
import * as rows from '../rules/rows.ts';
import type { TransferredEvent, TransferredMessage, TransferTable, TransferTarget } from '../transfer.ts';
import { createPool } from './database.ts';
import { migrate } from './migrate.ts';
import type { Row, Session, Statement } from './session.ts';
import { writeSubscribedTypes } from './webhooks.ts';

const OPEN_STATES: readonly string[] = ['queued', 'sending', 'uncertain'];
/** The number of the first new event. Copied events have smaller numbers. */
const FIRST_EVENT_NUMBER = 1_000_000;

const SELECT_TRANSFERS: Statement = { name: 'transfer_select', text: 'SELECT source, done FROM transfer' };
const COUNT_ACCOUNTS_AND_NODES: Statement = {
  name: 'transfer_count_content',
  text: 'SELECT (SELECT count(*)::int FROM account) AS accounts, (SELECT count(*)::int FROM node WHERE alive_until > extract(epoch FROM now()) * 1000) AS nodes',
};
const INSERT_TRANSFER: Statement = { name: 'transfer_insert', text: 'INSERT INTO transfer (source) VALUES ($1)' };
const SELECT_LAST_ID: Statement = {
  name: 'transfer_last',
  text: 'SELECT id FROM mail_request ORDER BY id DESC LIMIT 1',
};
const MARK_TRANSFER_COMPLETE: Statement = { name: 'transfer_finish', text: 'UPDATE transfer SET done = true' };
const SET_SEQUENCES: Statement = {
  name: 'transfer_sequences',
  text: `SELECT setval(pg_get_serial_sequence('account', 'id'), (SELECT coalesce(max(id), 0) + 1 FROM account), false),
    setval(pg_get_serial_sequence('api_key', 'id'), (SELECT coalesce(max(id), 0) + 1 FROM api_key), false),
    setval(pg_get_serial_sequence('domain', 'id'), (SELECT coalesce(max(id), 0) + 1 FROM domain), false),
    setval(pg_get_serial_sequence('feedback', 'id'), (SELECT coalesce(max(id), 0) + 1 FROM feedback), false),
    setval(pg_get_serial_sequence('audit', 'id'), (SELECT coalesce(max(id), 0) + 1 FROM audit), false),
    setval(pg_get_serial_sequence('operator_token', 'id'), (SELECT coalesce(max(id), 0) + 1 FROM operator_token), false),
    setval(pg_get_serial_sequence('webhook', 'id'), (SELECT coalesce(max(id), 0) + 1 FROM webhook), false),
    setval(pg_get_serial_sequence('outbox', 'position'), (SELECT coalesce(max(position), 0) + 1 FROM outbox), false),
    setval('event_n', ${FIRST_EVENT_NUMBER})`,
};
const SET_REVISION: Statement = {
  name: 'transfer_revision',
  text: `UPDATE installation SET revision = 1 + greatest(revision, (SELECT coalesce(max(revision), 0) FROM account),
    (SELECT coalesce(max(revision), 0) FROM api_key), (SELECT coalesce(max(revision), 0) FROM domain))`,
};
const INSERT_MESSAGES: Statement = {
  name: 'transfer_messages',
  text: `INSERT INTO mail_request (id, account_id, key_id, state, accepted_at, ended_at, attempts, "to", recipient, "from", subject,
      failure_class, failure_category, facts, reports, further_reports, expires_at, route)
    SELECT id, account_id, key_id, CASE WHEN ended_at IS NOT NULL THEN state END, accepted_at, ended_at,
      CASE WHEN ended_at IS NOT NULL THEN attempts END, "to", recipient, "from", subject, failure_class, failure_category,
      facts, reports, further_reports, expires_at, route
    FROM json_to_recordset($1::json) AS m(id uuid, account_id int, key_id int, state text, accepted_at bigint, ended_at bigint,
      attempts int, "to" text, recipient text, "from" text, subject text,
      failure_class text, failure_category text, facts int, reports text, further_reports int,
      expires_at bigint, route text)`,
};
const INSERT_BODIES: Statement = {
  name: 'transfer_bodies',
  text: `INSERT INTO body (id, account_id, message) SELECT id, account_id, message
    FROM json_to_recordset($1::json) AS m(id uuid, account_id int, message text) WHERE message IS NOT NULL`,
};
// The first node that starts on the target recovers the copied leases, because no live node is the owner of these
// leases.
const INSERT_QUEUE: Statement = {
  name: 'transfer_queue',
  text: `INSERT INTO queue (id, account_id, state, lane, due_at, owner, handing_over, attempts, accepted_at, bytes)
    SELECT id, account_id, state, lane, due_at, CASE state WHEN 'sending' THEN 'moved' END, handing_over, attempts, accepted_at,
      octet_length(coalesce(message, ''))
    FROM json_to_recordset($1::json) AS m(id uuid, account_id int, state text, lane smallint, due_at bigint, handing_over boolean,
      attempts int, accepted_at bigint, message text)`,
};
const INSERT_EVENTS: Statement = {
  name: 'transfer_events',
  text: `INSERT INTO event (id, account_id, n, at, verb, by, detail, failure, attempt)
    SELECT * FROM json_to_recordset($1::json)
      AS e(id uuid, account_id int, n bigint, at bigint, verb text, by text, detail text, failure text, attempt text)`,
};
const SELECT_PAGE: Statement = {
  name: 'transfer_page',
  text: `SELECT m.id, m.account_id, m.key_id, coalesce(q.state, m.state) AS state, coalesce(q.lane, 0)::int AS lane, q.due_at,
      coalesce(q.attempts, m.attempts) AS attempts, m.accepted_at, m.ended_at, m."to", m.recipient, m."from", m.subject, b.message,
      m.failure_class, m.failure_category, m.facts, m.reports, m.further_reports, m.expires_at, m.route,
      coalesce(q.handing_over, false) AS handing_over,
      (SELECT coalesce(json_agg(json_build_object('at', e.at, 'verb', e.verb, 'by', e.by, 'detail', e.detail,
         'failure', e.failure, 'attempt', e.attempt)
         ORDER BY e.n), '[]')::text FROM event e WHERE e.id = m.id) AS events
    FROM mail_request m LEFT JOIN queue q ON q.id = m.id AND q.account_id = m.account_id
      LEFT JOIN body b ON b.id = m.id AND b.account_id = m.account_id
    WHERE m.id > $1::uuid ORDER BY m.id LIMIT $2`,
};
const MIN_ID = '00000000-0000-0000-0000-000000000000';

/** Opens the target and migrates its schema. Rejects with a StoreError. */
export async function openPostgresTarget(setting: PostgresSetting): Promise<TransferTarget> {
  const pool = createPool({ setting, application: 'postrider migrate-store', random: Math.random });
  try {
    await migrate(pool);
  } catch (error) {
    await pool.close();
    throw error;
  }
  return {
    async begin(source) {
      const transfers = await pool.query(SELECT_TRANSFERS, []);
      const earlierTransfer = transfers.find((row) => row.source === source);
      if (earlierTransfer?.done === true)
        throw new StoreError(
          `${source} has already been transferred to ${pool.server}. Start a service on this database.`,
        );
      const [counts = {}] = await pool.query(COUNT_ACCOUNTS_AND_NODES, []);
      if (rows.readInteger(counts, 'nodes') > 0)
        throw new StoreError(`a service runs on ${pool.server}. Stop every node before a transfer.`);
      if (earlierTransfer !== undefined) return;
      if (rows.readInteger(counts, 'accounts') > 0 || transfers.length > 0)
        throw new StoreError(`${pool.server} already contains accounts. Transfer to an empty database.`);
      await pool.query(INSERT_TRANSFER, [source]);
    },
    async findLastMessageId() {
      const [row] = await pool.query(SELECT_LAST_ID, []);
      return row === undefined ? null : rows.readText(row, 'id');
    },
    async writeRows(table, sourceRows) {
      const values = table.name === 'reputation' ? sourceRows.map((row) => ({ ...row, slot: 0 })) : sourceRows;
      await pool.query(insertInto(table), [JSON.stringify(values)]);
    },
    writeMessages: (messages) => pool.transaction((session) => insertMessages(session, messages)),
    readRows(table) {
      const columns = table.columns.map((name) => `"${name}"`).join(', ');
      const order = table.keyColumns.map((name) => `"${name}"`).join(', ');
      return pool.query({ name: '', text: `SELECT ${columns} FROM ${table.name} ORDER BY ${order}` }, []);
    },
    async readMessages(after, limit) {
      return (await pool.query(SELECT_PAGE, [after ?? MIN_ID, limit])).map(toTransferredMessage);
    },
    async completeTransfer() {
      await pool.transaction(async (session) => {
        await session.query(SET_SEQUENCES, []);
        await session.query(SET_REVISION, []);
        await writeSubscribedTypes(session);
        await session.query(MARK_TRANSFER_COMPLETE, []);
      });
    },
    close: pool.close,
  };
}

/** Rows that an interrupted transfer has already written are not changed. */
function insertInto({ name, columns }: TransferTable): Statement {
  const columnList = [...columns, ...(name === 'reputation' ? ['slot'] : [])].map((column) => `"${column}"`).join(', ');
  return {
    name: `transfer_into_${name}`,
    text: `INSERT INTO ${name} (${columnList}) SELECT ${columnList} FROM json_populate_recordset(NULL::${name}, $1::json) ON CONFLICT DO NOTHING`,
  };
}

async function insertMessages(session: Session, messages: readonly TransferredMessage[]): Promise<void> {
  const messagesJson = JSON.stringify(messages.map(({ events: _, ...message }) => message));
  const queuedJson = JSON.stringify(
    messages.filter(({ state }) => OPEN_STATES.includes(state)).map(({ events: _, ...message }) => message),
  );
  const events = messages.flatMap(({ id, account_id, events: history }) =>
    history.map((event, index) => ({ id, account_id, n: index + 1, ...event })),
  );
  await Promise.all([
    session.query(INSERT_MESSAGES, [messagesJson]),
    session.query(INSERT_BODIES, [messagesJson]),
    session.query(INSERT_QUEUE, [queuedJson]),
    session.query(INSERT_EVENTS, [JSON.stringify(events)]),
  ]);
}

function toTransferredMessage(row: Row): TransferredMessage {
  return {
    id: rows.readText(row, 'id'),
    account_id: rows.readInteger(row, 'account_id'),
    key_id: rows.readInteger(row, 'key_id'),
    state: rows.readState(row),
    lane: rows.readInteger(row, 'lane'),
    due_at: rows.readIntegerOrNull(row, 'due_at'),
    attempts: rows.readInteger(row, 'attempts'),
    accepted_at: rows.readInteger(row, 'accepted_at'),
    ended_at: rows.readIntegerOrNull(row, 'ended_at'),
    to: rows.readText(row, 'to'),
    recipient: rows.readTextOrNull(row, 'recipient'),
    from: rows.readText(row, 'from'),
    subject: rows.readText(row, 'subject'),
    message: rows.readTextOrNull(row, 'message'),
    handing_over: row.handing_over === true,
    failure_class: rows.readTextOrNull(row, 'failure_class'),
    failure_category: rows.readTextOrNull(row, 'failure_category'),
    facts: rows.readInteger(row, 'facts'),
    reports: rows.readTextOrNull(row, 'reports'),
    further_reports: rows.readInteger(row, 'further_reports'),
    expires_at: rows.readIntegerOrNull(row, 'expires_at'),
    route: rows.readTextOrNull(row, 'route'),
    events: JSON.parse(rows.readText(row, 'events')) as TransferredEvent[],
  };
}

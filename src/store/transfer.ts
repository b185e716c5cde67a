/**
 * Copies the embedded database to PostgreSQL. The tables and columns are those of the source's schema. Each page of
 * messages is written in one transaction, so an interrupted transfer continues after the last copied message.
 */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import type { PostgresSetting } from '../config/settings.ts';
import { StoreError } from './error.ts';
import { writeSubscribedTypes } from './outbox.ts';
import { createPool } from './postgres/database.ts';
import { migrate } from './postgres/migrate.ts';
import type { Session } from './postgres/session.ts';
import { toSeq } from './rules/messages.ts';
import * as rows from './rules/rows.ts';
import { openDatabase } from './sqlite/database.ts';
import { acquireServeLock, requireUsableFiles, resolveDatabasePath } from './sqlite/files.ts';
import type { Row } from './transaction.ts';

export interface TransferTable {
  readonly name: string;
  readonly columns: readonly string[];
}

/** A row of mail_request with its body (`message`) and its history (`events`). */
export type TransferredMessage = Row & { readonly id: string; readonly events: readonly Row[] };

/**
 * The tables with messages are copied together. The others have no meaning on another store, or are rebuilt there: the
 * subscribed types from the endpoints, the search index from the messages, and the rules of the inbox serve tests only.
 */
const MESSAGE_TABLES = ['mail_request', 'body', 'event'];
const NOT_TRANSFERRED = ['installation', 'node', 'throttle', 'webhook_subscription', 'inbox_rule', 'attention_check'];
const isTransferred = (table: string) =>
  ![...MESSAGE_TABLES, ...NOT_TRANSFERRED].includes(table) &&
  !/^search(_|$)/.test(table) &&
  !table.startsWith('sqlite_');
/** Columns that have no meaning on another store: there they have their defaults. */
const OMITTED_COLUMNS: Readonly<Record<string, readonly string[]>> = {
  webhook: ['start'],
  mail_request: ['seq', 'owner'],
};
/** Columns of an open message that PostgreSQL keeps in `queue`. */
const QUEUE_COLUMNS = ['lane', 'due_at', 'handing_over', 'held_ms'];
const EVENT_COLUMNS = ['at', 'verb', 'by', 'detail', 'failure', 'attempt'];
/** The number of the first new event. Copied events have smaller numbers. */
const FIRST_EVENT_NUMBER = 1_000_000;
const MIN_ID = '00000000-0000-0000-0000-000000000000';

const quoteAll = (columns: readonly string[]) => columns.map((name) => `"${name}"`).join(', ');

/** Opens the source under the serve lock, so that no service changes the data. Throws a StoreError. */
export function openTransferSource(configuredPath: string) {
  const path = resolveDatabasePath(configuredPath);
  requireUsableFiles(path);
  if (!existsSync(path))
    throw new StoreError(`there is no database ${path} to transfer. Set POSTRIDER_DATABASE to the database file.`);
  const unlock = acquireServeLock(path);
  let database: DatabaseSync;
  try {
    database = openDatabase(path, true);
  } catch (error) {
    unlock();
    throw error;
  }
  const listColumns = (table: string) =>
    database
      .prepare('SELECT name FROM pragma_table_info(?)')
      .all(table)
      .map((row) => rows.readText(row, 'name'))
      .filter((name) => OMITTED_COLUMNS[table]?.includes(name) !== true);
  const messageColumns = listColumns('mail_request');
  const selectPage = database.prepare(
    `SELECT m.seq, ${messageColumns.map((name) => `m."${name}"`).join(', ')}, b.message
     FROM mail_request m LEFT JOIN body b ON b.seq = m.seq WHERE m.seq > ? ORDER BY m.seq LIMIT ?`,
  );
  const selectHistory = database.prepare(`SELECT ${quoteAll(EVENT_COLUMNS)} FROM event WHERE seq = ? ORDER BY n`);
  return {
    name: resolve(path),
    messageColumns,
    /** In the order of their creation, so that a row follows those to which it refers. */
    tables: database
      .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY rowid")
      .all()
      .map((row) => rows.readText(row, 'name'))
      .filter(isTransferred)
      .map((name): TransferTable => ({ name, columns: listColumns(name) })),
    countMessages: () => rows.readInteger(database.prepare('SELECT count(*) AS n FROM mail_request').get() ?? {}, 'n'),
    readRows: ({ name, columns }: TransferTable): Iterable<Row> =>
      database.prepare(`SELECT ${quoteAll(columns)} FROM ${name}`).iterate(),
    /** Reads messages with ids greater than `after`, in order of id. */
    readMessages: (after: string | null, limit: number): readonly TransferredMessage[] =>
      selectPage.all(after === null ? -1 : toSeq(after), limit).map(({ seq, ...row }) => ({
        ...row,
        id: rows.readText(row, 'id'),
        events: selectHistory.all(Number(seq)),
      })),
    close(): void {
      database.close();
      unlock();
    },
  };
}
export type TransferSource = ReturnType<typeof openTransferSource>;

/** Opens the target and migrates its schema. Rejects with a StoreError. */
export async function openTransferTarget(setting: PostgresSetting) {
  const pool = createPool({ setting, application: 'postrider migrate-store', random: Math.random });
  try {
    await migrate(pool);
  } catch (error) {
    await pool.close();
    throw error;
  }
  return {
    /** Starts or continues the transfer from `source`. Rejects if the database contains anything else. */
    async begin(source: string): Promise<void> {
      const transfers = await pool.query('SELECT source, done FROM transfer');
      const earlierTransfer = transfers.find((row) => row.source === source);
      if (earlierTransfer?.done === true)
        throw new StoreError(
          `${source} has already been transferred to ${pool.server}. Start a service on this database.`,
        );
      const [counts = {}] = await pool.query(
        `SELECT (SELECT count(*)::int FROM account) AS accounts,
           (SELECT count(*)::int FROM node WHERE alive_until > extract(epoch FROM now()) * 1000) AS nodes`,
      );
      if (rows.readInteger(counts, 'nodes') > 0)
        throw new StoreError(`a service runs on ${pool.server}. Stop every node before a transfer.`);
      if (earlierTransfer !== undefined) return;
      if (rows.readInteger(counts, 'accounts') > 0 || transfers.length > 0)
        throw new StoreError(`${pool.server} already contains accounts. Transfer to an empty database.`);
      await pool.query('INSERT INTO transfer (source) VALUES ($1)', [source]);
    },
    async findLastMessageId(): Promise<string | null> {
      const [row] = await pool.query('SELECT id FROM mail_request ORDER BY id DESC LIMIT 1');
      return row === undefined ? null : rows.readText(row, 'id');
    },
    writeRows: ({ name, columns }: TransferTable, sourceRows: readonly Row[]) =>
      insertRows(pool, name, columns, sourceRows),
    writeMessages: (messages: readonly TransferredMessage[], messageColumns: readonly string[]) =>
      pool.transaction((session) => insertMessages(session, messages, messageColumns)),
    readRows: ({ name, columns }: TransferTable) => pool.query(`SELECT ${quoteAll(columns)} FROM ${name}`),
    async readMessages(
      after: string | null,
      limit: number,
      messageColumns: readonly string[],
    ): Promise<readonly TransferredMessage[]> {
      const columns = messageColumns.map((name) => {
        if (QUEUE_COLUMNS.includes(name)) return `q."${name}"`;
        return ['state', 'attempts'].includes(name) ? `coalesce(q.${name}, m.${name}) AS ${name}` : `m."${name}"`;
      });
      const found = await pool.query(
        `SELECT ${columns.join(', ')}, b.message, (SELECT coalesce(json_agg(json_build_object(
             ${EVENT_COLUMNS.map((name) => `'${name}', e."${name}"`).join(', ')}) ORDER BY e.n), '[]')
           FROM event e WHERE e.id = m.id) AS events
         FROM mail_request m LEFT JOIN queue q ON q.id = m.id AND q.account_id = m.account_id
           LEFT JOIN body b ON b.id = m.id AND b.account_id = m.account_id
         WHERE m.id > $1::uuid ORDER BY m.id LIMIT $2`,
        [after ?? MIN_ID, limit],
      );
      return found as readonly TransferredMessage[];
    },
    /** Marks the transfer as complete. Services may then start. */
    async completeTransfer(): Promise<void> {
      await pool.transaction(async (session) => {
        const identities = await session.query(
          `SELECT table_name, column_name FROM information_schema.columns
           WHERE table_schema = current_schema() AND is_identity = 'YES'`,
        );
        for (const { table_name: table, column_name: column } of identities)
          await session.query(
            `SELECT setval(pg_get_serial_sequence('${table}', '${column}'),
               (SELECT greatest(max(${column}), 0) + 1 FROM ${table}), false)`,
          );
        await session.query(`SELECT setval('event_n', ${FIRST_EVENT_NUMBER})`);
        await session.query(
          `UPDATE installation SET revision = 1 + greatest(revision, (SELECT coalesce(max(revision), 0) FROM account),
             (SELECT coalesce(max(revision), 0) FROM api_key), (SELECT coalesce(max(revision), 0) FROM domain),
             (SELECT coalesce(max(revision), 0) FROM hold))`,
        );
        await writeSubscribedTypes(session);
        await session.query('UPDATE transfer SET done = true');
      });
    },
    close: () => pool.close(),
  };
}
export type TransferTarget = Awaited<ReturnType<typeof openTransferTarget>>;

/** Inserts rows of the source. Booleans may be 0 and 1. Rows of an interrupted transfer are not changed. */
async function insertRows(
  session: Session,
  table: string,
  columns: readonly string[],
  sourceRows: readonly Row[],
): Promise<void> {
  await session.query(
    `INSERT INTO ${table} (${quoteAll(columns)}) SELECT ${quoteAll(columns)}
     FROM json_populate_recordset(NULL::${table}, $1::json) ON CONFLICT DO NOTHING`,
    [JSON.stringify(sourceRows)],
  );
}

async function insertMessages(
  session: Session,
  messages: readonly TransferredMessage[],
  messageColumns: readonly string[],
): Promise<void> {
  const open = messages.filter(({ ended_at: endedAt }) => endedAt === null);
  // The first node that starts on the target recovers the copied leases, because their owner does not live.
  const queued = open.map((message) => ({
    ...message,
    owner: message.state === 'sending' ? 'moved' : null,
    bytes: Buffer.byteLength(rows.readTextOrNull(message, 'message') ?? ''),
  }));
  const queueColumns = [
    'id',
    'account_id',
    'state',
    ...QUEUE_COLUMNS,
    'owner',
    'attempts',
    'accepted_at',
    'bytes',
    'expires_at',
  ];
  const requests = messages.map((message) =>
    message.ended_at === null ? { ...message, state: null, attempts: null } : message,
  );
  const events = messages.flatMap(({ id, account_id, events: history }) =>
    history.map((event, index) => ({ id, account_id, n: index + 1, ...event })),
  );
  const bodies = messages.filter(({ message }) => message !== null);
  const requestColumns = messageColumns.filter((name) => !QUEUE_COLUMNS.includes(name));
  await Promise.all([
    insertRows(session, 'mail_request', requestColumns, requests),
    insertRows(session, 'body', ['id', 'account_id', 'message'], bodies),
    insertRows(session, 'queue', queueColumns, queued),
    insertRows(session, 'event', ['id', 'account_id', 'n', ...EVENT_COLUMNS], events),
  ]);
}

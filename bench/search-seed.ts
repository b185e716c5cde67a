/**
 * Writes the messages that a service has stored after one month, and the last reply to each message that has a terminal
 * state, into an empty store.
 */
import type pg from 'pg';
import { toSeq } from '../src/store/rules/messages.ts';
import { openDatabase } from '../src/store/sqlite/database.ts';
import { generateMessages, type SeededMessage } from './search-messages.ts';

export const SEEDED_ACCOUNT_COUNT = 1_000;
export const DAY_MS = 86_400_000;
const BATCH_SIZE = 5_000;

export function seedSqlite(path: string, count: number, now: number): void {
  const database = openDatabase(path);
  // The database is removed after the benchmark, so writes need not be durable.
  database.exec('PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 100000; BEGIN');
  const insertAccount = database.prepare('INSERT INTO account (id, name, created_at, revision) VALUES (?, ?, 1, 1)');
  for (let id = 1; id <= SEEDED_ACCOUNT_COUNT; id += 1) insertAccount.run(id, `a${id}`);
  const insertMessage = database.prepare(
    `INSERT INTO mail_request (seq, id, account_id, key_id, state, lane, due_at, handing_over, attempts, accepted_at, ended_at,
       "to", "from", subject) VALUES (?, ?, ?, 1, ?, 0, ?, 0, 1, ?, ?, ?, ?, ?)`,
  );
  for (const message of generateMessages(count, SEEDED_ACCOUNT_COUNT, now)) {
    const { id, accountId, state, acceptedAt, endedAt, to, from, subject } = message;
    const dueAt = endedAt === null ? now + DAY_MS : null;
    insertMessage.run(toSeq(id), id, accountId, state, dueAt, acceptedAt, endedAt, to, from, subject);
  }
  database.exec(`${SET_FAILURES}; ${INSERT_EVENTS_SQLITE}; COMMIT; PRAGMA wal_checkpoint(TRUNCATE)`);
  database.close();
}

/**
 * Bounced messages have a hard failure. Suppressed messages, and the delivered messages of every third account, were
 * greylisted.
 */
const SET_FAILURES = `UPDATE mail_request SET
  failure_class = CASE state WHEN 'bounced' THEN 'hard' ELSE 'soft' END,
  failure_category = CASE state WHEN 'bounced' THEN 'mailbox-unknown' ELSE 'greylisted' END
  WHERE state IN ('bounced', 'suppressed') OR (state = 'delivered' AND account_id % 3 = 0)`;

/** The last reply to a message that has a terminal state. */
const REPLY_EXPRESSION = `CASE state WHEN 'bounced' THEN '550 5.1.1 <' || "to" || '>: the user does not exist'
  ELSE '250 2.0.0 Ok: queued as ' || substr(CAST(id AS text), 1, 13) END`;
const INSERT_EVENTS_SQLITE = `INSERT INTO event (seq, n, at, verb, by, detail)
  SELECT seq, 1, ended_at, state, 'bench', ${REPLY_EXPRESSION} FROM mail_request WHERE ended_at IS NOT NULL`;
const INSERT_EVENTS_POSTGRES = `INSERT INTO event (id, account_id, n, at, verb, by, detail)
  SELECT id, account_id, nextval('event_n'), ended_at, state, 'bench', ${REPLY_EXPRESSION} FROM mail_request WHERE ended_at IS NOT NULL`;

export async function seedPostgres(client: pg.Client, count: number, now: number): Promise<void> {
  await client.query(
    "INSERT INTO account (id, name, created_at, revision) SELECT n, 'a' || n, 1, 1 FROM generate_series(1, $1::int) n",
    [SEEDED_ACCOUNT_COUNT],
  );
  let batch: SeededMessage[] = [];
  const writeBatch = async () => {
    const getColumn = <K extends keyof SeededMessage>(name: K) => batch.map((message) => message[name]);
    await client.query(
      `WITH seed AS (SELECT * FROM unnest($1::uuid[], $2::int[], $3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::text[], $8::text[])
         AS s(id, account_id, state, accepted_at, ended_at, "to", "from", subject)),
       inserted AS (INSERT INTO mail_request (id, account_id, key_id, state, accepted_at, ended_at, attempts, "to", "from", subject)
         SELECT id, account_id, 1, CASE WHEN ended_at IS NOT NULL THEN state END, accepted_at, ended_at, 1, "to", "from", subject FROM seed)
       INSERT INTO queue (id, account_id, state, lane, due_at, owner, attempts, accepted_at, bytes)
         SELECT id, account_id, state, 0, accepted_at + 86400000, CASE state WHEN 'sending' THEN 'bench' END, 1, accepted_at, 100
         FROM seed WHERE ended_at IS NULL`,
      [
        getColumn('id'),
        getColumn('accountId'),
        getColumn('state'),
        getColumn('acceptedAt'),
        getColumn('endedAt'),
        getColumn('to'),
        getColumn('from'),
        getColumn('subject'),
      ],
    );
    batch = [];
  };
  for (const message of generateMessages(count, SEEDED_ACCOUNT_COUNT, now)) {
    batch.push(message);
    if (batch.length === BATCH_SIZE) await writeBatch();
  }
  await client.query(SET_FAILURES);
  await client.query(INSERT_EVENTS_POSTGRES);
  await client.query('VACUUM ANALYZE');
}

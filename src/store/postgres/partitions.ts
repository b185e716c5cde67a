/**
 * Partitions by time: mail requests and their histories by month, bodies by day, made ahead. A body partition whose mail
 * has all ended long enough ago is dropped whole, which costs nothing whatever it held. What has no partition of its own
 * (a clock that is wrong, ids of an old store moved here) lies in the one for the rest, and is found all the same.
 */

import { minIdAt } from '../rules/messages.ts';
import * as rows from '../rules/rows.ts';
import { errorCode } from './fault.ts';
import type { Database, Statement, Transaction } from './session.ts';

const DAY_MS = 86_400_000;
/** Made ahead: this period and so many after it. */
const AHEAD = 2;
/** Any number that no one else's advisory locks use, other than the schema's. */
const LOCK = 0x50524450;
/** Locks on partitions are waited for no longer than this; the next round tries again. */
const WAIT_MS = 500;
/** SQLSTATE of a lock that was waited for so long. */
const LOCK_NOT_AVAILABLE = '55P03';

const HOLD: Statement = { name: 'partition_hold', text: 'SELECT pg_try_advisory_xact_lock($1) AS held' };
const WAIT: Statement = { name: 'partition_wait', text: `SELECT set_config('lock_timeout', $1, true)` };
const TIME: Statement = {
  name: 'partition_time',
  text: 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now',
};
const MADE: Statement = { name: 'partition_made', text: 'SELECT to_regclass($1) IS NOT NULL AS made' };
const LIST: Statement = {
  name: 'partition_list',
  text: `SELECT c.relname AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = $1::text::regclass`,
};

interface Period {
  /** The partition's name, such as `body_20260105`. */
  readonly name: string;
  readonly from: string;
  readonly to: string;
}

/**
 * Makes the partitions of the present and next periods where they are missing: of the server's time unless `now` is given,
 * since a node's own clock may be wrong for years, and what is made for a wrong time is missing for the right one. Safe on
 * any number of nodes at once. Resolves to false where something was in the way and another round should try.
 */
export async function ensurePartitions(database: Database, now?: number): Promise<boolean> {
  const [time = {}] = now === undefined ? await database.query(TIME, []) : [{ now }];
  let whole = true;
  for (const [parent, period] of wantedAt(rows.int(time, 'now'))) {
    const known = await database.query(LIST, [parent]);
    if (known.some(({ name }) => name === period.name)) continue;
    whole = (await patiently(database, (transaction) => make(transaction, parent, period))) === true && whole;
  }
  return whole;
}

/** Resolves to true where there is nothing more to do. */
async function make(transaction: Transaction, parent: string, { name, from, to }: Period): Promise<boolean> {
  const [lock] = await transaction.query(HOLD, [LOCK]);
  if (lock?.held !== true) return false;
  // Rows of the period may lie in the rest already: then it stays there, since moving them would stop everybody.
  const [stray] = await transaction.query(
    unnamed(`SELECT 1 AS one FROM ${parent}_rest WHERE ${within({ from, to })} LIMIT 1`),
    [],
  );
  if (stray !== undefined) return true;
  const [made] = await transaction.query(MADE, [name]);
  if (made?.made === true) return true;
  // Attached, since a table made as a partition stops everybody who writes to the others while it is made.
  await transaction.query(unnamed(`CREATE TABLE ${name} (LIKE ${parent} INCLUDING ALL)`), []);
  await transaction.query(
    unnamed(`ALTER TABLE ${parent} ATTACH PARTITION ${name} FOR VALUES FROM ('${from}') TO ('${to}')`),
    [],
  );
  return true;
}

/**
 * Drops body partitions that ended before `before` and hold nothing but bodies of mail that ended by then. Resolves to
 * their names.
 */
export async function dropExpiredBodies(database: Database, before: number): Promise<readonly string[]> {
  const dropped: string[] = [];
  for (const row of await database.query(LIST, ['body'])) {
    const name = rows.text(row, 'name');
    const day = /^body_(\d{4})(\d\d)(\d\d)$/.exec(name);
    if (day === null) continue;
    const [, { from, to }] = dayOf(Date.UTC(Number(day[1]), Number(day[2]) - 1, Number(day[3])));
    if (minIdAt(before) < to) continue;
    const gone = await patiently(database, async (transaction) => {
      const kept = `SELECT 1 AS one FROM ${name} b JOIN mail_request m ON m.id = b.id AND m.account_id = b.account_id
        WHERE ${within({ from, to }, 'm.')} AND (m.ended_at IS NULL OR m.ended_at > $1) LIMIT 1`;
      const [found] = await transaction.query(unnamed(kept), [before]);
      if (found !== undefined) return false;
      await transaction.query(unnamed(`DROP TABLE IF EXISTS ${name}`), []);
      return true;
    });
    if (gone === true) dropped.push(name);
  }
  return dropped;
}

/** A transaction that waits for no one for long: everybody else would wait behind it. Null where it had to. */
async function patiently<T>(database: Database, work: (transaction: Transaction) => Promise<T>): Promise<T | null> {
  let busy = false;
  try {
    return await database.transaction(async (transaction) => {
      await transaction.query(WAIT, [`${WAIT_MS}ms`]);
      return work(transaction).catch((error: unknown) => {
        busy = errorCode(error) === LOCK_NOT_AVAILABLE;
        throw error;
      });
    });
  } catch (error) {
    if (busy) return null;
    throw error;
  }
}

/** Statements about one partition: kept prepared, they would pile up with the days. */
function unnamed(text: string): Statement {
  return { name: '', text };
}

/** The bounds stand in the text: statements that define take no parameters, and others leave out all other partitions. */
function within({ from, to }: Pick<Period, 'from' | 'to'>, of = ''): string {
  return `${of}id >= '${from}'::uuid AND ${of}id < '${to}'::uuid`;
}

function wantedAt(now: number): (readonly [parent: string, Period])[] {
  return [
    ...monthsFrom('mail_request', now),
    ...monthsFrom('event', now),
    ...Array.from({ length: AHEAD + 1 }, (_, n) => dayOf(now + n * DAY_MS)),
  ];
}

function monthsFrom(parent: string, now: number): (readonly [string, Period])[] {
  const date = new Date(now);
  return Array.from({ length: AHEAD + 1 }, (_, n) => {
    const from = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + n, 1);
    const to = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + n + 1, 1);
    return [parent, period(`${parent}_${stamp(from).slice(0, 6)}`, from, to)] as const;
  });
}

function dayOf(ms: number): readonly [string, Period] {
  const from = Math.floor(ms / DAY_MS) * DAY_MS;
  return ['body', period(`body_${stamp(from)}`, from, from + DAY_MS)];
}

function period(name: string, from: number, to: number): Period {
  return { name, from: minIdAt(from), to: minIdAt(to) };
}

/** `20260105`. */
function stamp(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10).replaceAll('-', '');
}

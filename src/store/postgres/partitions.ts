/**
 * Partitions by time: monthly for messages and events, daily for bodies. They are created in advance; a partition is
 * dropped when the retention of all its messages has passed, at a cost that does not depend on its size. Rows without a
 * partition are in the default one.
 */

import type { ServerTimeOverride } from '../environment.ts';
import { getMinIdAt } from '../rules/messages.ts';
import * as rows from '../rules/rows.ts';
import { getErrorCode } from './fault.ts';
import type { Database, Statement, Transaction } from './session.ts';

const DAY_MS = 86_400_000;
const PERIODS_AHEAD = 2;
const CHECK_INTERVAL_MS = 3_600_000;
/** The key of the advisory lock. Neither the migration nor other software uses it. */
const LOCK_ID = 0x50524450;
/** If it expires, the next call tries again. */
const LOCK_TIMEOUT_MS = 500;
/** The SQLSTATE of an expired lock timeout. */
const LOCK_NOT_AVAILABLE = '55P03';

const TRY_LOCK = 'SELECT pg_try_advisory_xact_lock($1) AS acquired';
const SET_LOCK_TIMEOUT = `SELECT set_config('lock_timeout', $1, true)`;
const READ_SERVER_TIME = 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now';
const FIND_TABLE = 'SELECT to_regclass($1) IS NOT NULL AS exists';
const LIST_PARTITIONS = `SELECT c.relname AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = $1::text::regclass`;

interface Period {
  readonly name: string;
  readonly from: string;
  readonly to: string;
}

/** `serverTime` and `monotonic` determine which partitions are created, and when the next ones are. */
export function preparePartitions(database: Database, serverTime: ServerTimeOverride, monotonic: () => number) {
  let checkedAt = 0;
  let droppedAt = Number.NEGATIVE_INFINITY;
  return {
    async maintainPartitions(endedBefore: number): Promise<void> {
      const now = monotonic();
      if (checkedAt !== 0 && now - checkedAt <= CHECK_INTERVAL_MS) return;
      const isComplete = await ensurePartitions(database, serverTime() ?? undefined);
      await dropExpiredPartitions(database, 'body', endedBefore);
      checkedAt = isComplete ? now : 0;
    },
    /** Of messages and their events. */
    async dropPartitions(endedBefore: number): Promise<void> {
      const now = monotonic();
      if (now - droppedAt <= CHECK_INTERVAL_MS) return;
      droppedAt = now;
      await dropExpiredPartitions(database, 'event', endedBefore);
      await dropExpiredPartitions(database, 'mail_request', endedBefore);
    },
  };
}

/**
 * Uses the server's time unless `now` is given, because a node's clock may be wrong by years. Resolves to false if a
 * lock was not available.
 */
export async function ensurePartitions(database: Database, now?: number): Promise<boolean> {
  const [clock = {}] = now === undefined ? await database.query(READ_SERVER_TIME) : [{ now }];
  let isComplete = true;
  for (const [parent, period] of listPeriods(rows.readInteger(clock, 'now'))) {
    const partitionRows = await database.query(LIST_PARTITIONS, [parent]);
    if (partitionRows.some(({ name }) => name === period.name)) continue;
    isComplete =
      (await withLockTimeout(database, (transaction) => createPartition(transaction, parent, period))) === true &&
      isComplete;
  }
  return isComplete;
}

/** Resolves to false if another node holds the lock. */
async function createPartition(transaction: Transaction, parent: string, { name, from, to }: Period): Promise<boolean> {
  const [lock] = await transaction.query(TRY_LOCK, [LOCK_ID]);
  if (lock?.acquired !== true) return false;
  // Rows of the period that are already in the default partition stay there, because moving them would block all
  // writers.
  const [defaultRow] = await transaction.query(
    toUnnamedStatement(`SELECT 1 AS one FROM ${parent}_rest WHERE ${toIdCondition({ from, to })} LIMIT 1`),
    [],
  );
  if (defaultRow !== undefined) return true;
  const [table] = await transaction.query(FIND_TABLE, [name]);
  if (table?.exists === true) return true;
  // The partition is created as a table and then attached. Creating it as a partition would block writers of all
  // partitions.
  await transaction.query(toUnnamedStatement(`CREATE TABLE ${name} (LIKE ${parent} INCLUDING ALL)`), []);
  await transaction.query(
    toUnnamedStatement(`ALTER TABLE ${parent} ATTACH PARTITION ${name} FOR VALUES FROM ('${from}') TO ('${to}')`),
    [],
  );
  return true;
}

const IS_RETAINED = '(m.ended_at IS NULL OR m.ended_at > $1)';

/**
 * What prevents the drop of a partition. The messages themselves are purged as rows, with everything that names them in
 * other tables, so their partition is dropped when it is empty.
 */
const RETAINED_ROWS = {
  body: (name: string) =>
    [`${name} b JOIN mail_request m ON m.id = b.id AND m.account_id = b.account_id`, IS_RETAINED] as const,
  event: () => ['mail_request m', IS_RETAINED] as const,
  mail_request: () => ['mail_request m', '$1::bigint IS NOT NULL'] as const,
};

/** Resolves to the names of the dropped partitions. */
export async function dropExpiredPartitions(
  database: Database,
  parent: keyof typeof RETAINED_ROWS,
  before: number,
): Promise<readonly string[]> {
  const droppedPartitions: string[] = [];
  for (const row of await database.query(LIST_PARTITIONS, [parent])) {
    const name = rows.readText(row, 'name');
    const period = findPeriod(parent, name);
    if (period === null || getMinIdAt(before) < period.to) continue;
    const isDropped = await withLockTimeout(database, async (transaction) => {
      const [from, condition] = RETAINED_ROWS[parent](name);
      const selectRetained = `SELECT 1 AS one FROM ${from} WHERE ${toIdCondition(period, 'm.')} AND ${condition} LIMIT 1`;
      const [retainedRow] = await transaction.query(toUnnamedStatement(selectRetained), [before]);
      if (retainedRow !== undefined) return false;
      await transaction.query(toUnnamedStatement(`DROP TABLE IF EXISTS ${name}`), []);
      return true;
    });
    if (isDropped === true) droppedPartitions.push(name);
  }
  return droppedPartitions;
}

/** A waiting lock request blocks all later ones of other transactions. Resolves to null if the timeout expired. */
async function withLockTimeout<T>(
  database: Database,
  work: (transaction: Transaction) => Promise<T>,
): Promise<T | null> {
  let isLockTimeout = false;
  try {
    return await database.transaction(async (transaction) => {
      await transaction.query(SET_LOCK_TIMEOUT, [`${LOCK_TIMEOUT_MS}ms`]);
      return work(transaction).catch((error: unknown) => {
        isLockTimeout = getErrorCode(error) === LOCK_NOT_AVAILABLE;
        throw error;
      });
    });
  } catch (error) {
    if (isLockTimeout) return null;
    throw error;
  }
}

/** Returns an unnamed statement, because prepared statements for individual partitions would accumulate. */
function toUnnamedStatement(text: string): Statement {
  return { name: '', text };
}

/** The bounds are part of the text, so that the planner skips all other partitions. */
function toIdCondition({ from, to }: Pick<Period, 'from' | 'to'>, prefix = ''): string {
  return `${prefix}id >= '${from}'::uuid AND ${prefix}id < '${to}'::uuid`;
}

function listPeriods(now: number): (readonly [parent: string, Period])[] {
  return [
    ...listMonthPeriods('mail_request', now),
    ...listMonthPeriods('event', now),
    ...Array.from({ length: PERIODS_AHEAD + 1 }, (_, offset) => toDayPeriod(now + offset * DAY_MS)),
  ];
}

function listMonthPeriods(parent: string, now: number): (readonly [string, Period])[] {
  const date = new Date(now);
  return Array.from(
    { length: PERIODS_AHEAD + 1 },
    (_, offset) => [parent, toMonthPeriod(parent, date.getUTCFullYear(), date.getUTCMonth() + offset)] as const,
  );
}

function toMonthPeriod(parent: string, year: number, month: number): Period {
  const from = Date.UTC(year, month, 1);
  return createPeriod(`${parent}_${formatDate(from).slice(0, 6)}`, from, Date.UTC(year, month + 1, 1));
}

/** Null for the default partition. */
function findPeriod(parent: string, name: string): Period | null {
  const [, year, month, day] = /_(\d{4})(\d\d)(\d\d)?$/.exec(name) ?? [];
  if (year === undefined || month === undefined) return null;
  if (day === undefined) return toMonthPeriod(parent, Number(year), Number(month) - 1);
  return toDayPeriod(Date.UTC(Number(year), Number(month) - 1, Number(day)))[1];
}

function toDayPeriod(ms: number): readonly [string, Period] {
  const from = Math.floor(ms / DAY_MS) * DAY_MS;
  return ['body', createPeriod(`body_${formatDate(from)}`, from, from + DAY_MS)];
}

function createPeriod(name: string, from: number, to: number): Period {
  return { name, from: getMinIdAt(from), to: getMinIdAt(to) };
}

function formatDate(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10).replaceAll('-', '');
}

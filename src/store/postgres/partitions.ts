/**
 * Partitions by time: monthly for messages and events, daily for bodies. They are created in advance; a partition of
 * bodies is dropped when the retention of all its messages has passed, at a cost that does not depend on its size. Rows
 * without a partition are in the default one.
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
  return async function maintainPartitions(endedBefore: number): Promise<void> {
    const now = monotonic();
    if (checkedAt !== 0 && now - checkedAt <= CHECK_INTERVAL_MS) return;
    const isComplete = await ensurePartitions(database, serverTime() ?? undefined);
    await dropExpiredBodies(database, endedBefore);
    checkedAt = isComplete ? now : 0;
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

/** Resolves to the names of the dropped partitions. */
export async function dropExpiredBodies(database: Database, before: number): Promise<readonly string[]> {
  const droppedPartitions: string[] = [];
  for (const row of await database.query(LIST_PARTITIONS, ['body'])) {
    const name = rows.readText(row, 'name');
    const day = /^body_(\d{4})(\d\d)(\d\d)$/.exec(name);
    if (day === null) continue;
    const [, { from, to }] = toDayPeriod(Date.UTC(Number(day[1]), Number(day[2]) - 1, Number(day[3])));
    if (getMinIdAt(before) < to) continue;
    const isDropped = await withLockTimeout(database, async (transaction) => {
      const selectRetained = `SELECT 1 AS one FROM ${name} b JOIN mail_request m ON m.id = b.id AND m.account_id = b.account_id
        WHERE ${toIdCondition({ from, to }, 'm.')} AND (m.ended_at IS NULL OR m.ended_at > $1) LIMIT 1`;
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
  return Array.from({ length: PERIODS_AHEAD + 1 }, (_, offset) => {
    const from = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + offset, 1);
    const to = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + offset + 1, 1);
    return [parent, createPeriod(`${parent}_${formatDate(from).slice(0, 6)}`, from, to)] as const;
  });
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

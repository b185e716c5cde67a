/**
 * Partitions by time: mail requests and their histories by month, bodies by day, made ahead. A body partition whose mail
 * has all ended long enough ago is dropped whole, which costs nothing whatever it held. What has no partition of its own
 * (a clock that is wrong, ids of an old store moved here) lies in the one for the rest, and is found all the same.
 */
import { firstIdAt } from './ids.ts';
import * as rows from './rows.ts';
import type { Database, Statement, Transaction } from './session.ts';

const DAY_MS = 86_400_000;
/** Made ahead: this period and so many after it. */
const AHEAD = 2;
/** Any number that no one else's advisory locks use, other than the schema's. */
const LOCK = 0x50524450;
/** A drop waits no longer than this for whoever reads the partition; the next round tries again. */
const DROP_WAIT_MS = 500;

const HOLD: Statement = { name: 'partition_hold', text: 'SELECT pg_try_advisory_xact_lock($1) AS held' };
const WAIT: Statement = { name: 'partition_wait', text: `SELECT set_config('lock_timeout', $1, true)` };
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

/** Makes the partitions of the present and next periods where they are missing. Safe on any number of nodes at once. */
export async function ensurePartitions(database: Database, now: number): Promise<void> {
  const wanted = [
    ...monthsFrom('mail_request', now),
    ...monthsFrom('event', now),
    ...Array.from({ length: AHEAD + 1 }, (_, n) => dayOf(now + n * DAY_MS)),
  ];
  for (const [parent, period] of wanted) {
    const known = await database.query(LIST, [parent]);
    if (known.some(({ name }) => name === period.name)) continue;
    await database.transaction((transaction) => make(transaction, parent, period));
  }
}

async function make(transaction: Transaction, parent: string, { name, from, to }: Period): Promise<void> {
  const [lock] = await transaction.query(HOLD, [LOCK]);
  if (lock?.held !== true) return;
  await transaction.query(WAIT, [`${DROP_WAIT_MS}ms`]);
  // Rows of the period may lie in the rest already: then it stays there, since moving them would stop everybody.
  const [stray] = await transaction.query(
    {
      name: `partition_stray_${parent}`,
      text: `SELECT 1 AS one FROM ${parent}_rest WHERE id >= $1::uuid AND id < $2::uuid LIMIT 1`,
    },
    [from, to],
  );
  if (stray !== undefined) return;
  // Statements that define take no parameters; the bounds are made of hexadecimal digits here.
  await transaction.query(
    {
      name: '',
      text: `CREATE TABLE IF NOT EXISTS ${name} PARTITION OF ${parent} FOR VALUES FROM ('${from}') TO ('${to}')`,
    },
    [],
  );
}

/**
 * Drops body partitions that ended before `before` and hold nothing but bodies of mail that ended by then. Resolves to
 * their names.
 */
export async function dropSpentBodies(database: Database, before: number): Promise<readonly string[]> {
  const known = await database.query(LIST, ['body']);
  const dropped: string[] = [];
  for (const row of known) {
    const name = rows.text(row, 'name');
    const day = /^body_(\d{4})(\d\d)(\d\d)$/.exec(name);
    if (day === null) continue;
    if (Date.UTC(Number(day[1]), Number(day[2]) - 1, Number(day[3])) + DAY_MS > before) continue;
    const gone = await database
      .transaction(async (transaction) => {
        await transaction.query(WAIT, [`${DROP_WAIT_MS}ms`]);
        const [kept] = await transaction.query(
          {
            name: `partition_kept_${name}`,
            text: `SELECT 1 AS one FROM ${name} b JOIN mail_request m ON m.id = b.id AND m.account_id = b.account_id
              WHERE m.ended_at IS NULL OR m.ended_at > $1 LIMIT 1`,
          },
          [before],
        );
        if (kept !== undefined) return false;
        await transaction.query({ name: '', text: `DROP TABLE IF EXISTS ${name}` }, []);
        return true;
      })
      // Somebody reads it: it is as spent in the next round.
      .catch(() => false);
    if (gone) dropped.push(name);
  }
  return dropped;
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
  return { name, from: firstIdAt(from), to: firstIdAt(to) };
}

/** `20260105`. */
function stamp(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10).replaceAll('-', '');
}

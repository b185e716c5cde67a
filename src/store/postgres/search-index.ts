/**
 * The index on PostgreSQL: a step is one transaction, under a lock that one process holds at a time. It runs on a thread with a
 * connection of its own (index-worker.ts).
 */

import * as rows from '../rules/rows.ts';
import { START } from '../search/bounds.ts';
import { buildingCourse, type IndexChange, type IndexSource } from '../search/building.ts';
import { keysOf, placesKey, termsKey } from '../search/source.ts';
import { runWaiting } from '../search/step.ts';
import type { IndexProgress, IndexStep } from '../search.ts';
import { leastIdOf } from '../seq.ts';
import { searchedMail } from './search.ts';
import type { Database, Session, Statement } from './session.ts';

/** Any number that no one else's advisory locks use, other than those of schema and partitions. */
const LOCK = 0x50524453;
/** Rows of one statement. */
const ROWS = 2_048;
/** Pages of one statement. */
const PAGES = 64;

const HOLD: Statement = { name: 'index_hold', text: 'SELECT pg_try_advisory_xact_lock($1) AS held' };
const SEGMENTS: Statement = {
  name: 'index_segments',
  text: 'SELECT number, first, past, mails, built_at, looked, replaced_at FROM search_segment ORDER BY first DESC',
};
const COUNT: Statement = {
  name: 'index_count',
  text: `SELECT count(*)::int AS n FROM (SELECT 1 FROM mail_request WHERE id >= $1::uuid AND id < $2::uuid LIMIT $3) AS found`,
};
const COLUMNS = 'id, account_id, "to", recipient, "from", subject';
const OLDEST: Statement = {
  name: 'index_oldest',
  text: `SELECT ${COLUMNS} FROM mail_request WHERE id >= $1::uuid AND id < $2::uuid ORDER BY id LIMIT $3`,
};
const NEWEST: Statement = {
  name: 'index_newest',
  text: `SELECT ${COLUMNS} FROM mail_request WHERE id >= $1::uuid AND id < $2::uuid ORDER BY id DESC LIMIT $3`,
};
const ADD: Statement = {
  name: 'index_add',
  text: `INSERT INTO search_segment (first, past, mails, built_at, looked, directory)
    VALUES ($1, $2, $3, $4, false, $5) RETURNING number`,
};
const ADD_PAGES: Statement = {
  name: 'index_add_pages',
  text: 'INSERT INTO search_page (key, page) SELECT * FROM unnest($1::bigint[], $2::bytea[])',
};
const REPLACE: Statement = {
  name: 'index_replace',
  text: 'UPDATE search_segment SET replaced_at = $1 WHERE number = ANY($2::bigint[])',
};
const LOOKED: Statement = { name: 'index_looked', text: 'UPDATE search_segment SET looked = true WHERE number = $1' };
const EXTEND: Statement = { name: 'index_extend', text: 'UPDATE search_segment SET first = $1 WHERE number = $2' };
const PURGE: Statement = { name: 'index_purge', text: 'DELETE FROM search_segment WHERE number = $1' };
const PURGE_PAGES: Statement = {
  name: 'index_purge_pages',
  text: 'DELETE FROM search_page WHERE key >= $1 AND key < $2',
};

export function indexOn(database: Database, step: IndexStep): Promise<IndexProgress> {
  return database.transaction(async (session) => {
    const [lock] = await session.query(HOLD, [LOCK]);
    if (lock?.held !== true) return { worked: false, waiting: 0, newer: 0 };
    const { change, progress } = await runWaiting(buildingCourse(sourceOn(session), step));
    if (change !== null) await write(session, change);
    return progress;
  });
}

function sourceOn(session: Session): IndexSource {
  return {
    async segments() {
      return (await session.query(SEGMENTS, [])).map((row) => ({
        number: rows.int(row, 'number'),
        first: rows.int(row, 'first'),
        past: rows.int(row, 'past'),
        mails: rows.int(row, 'mails'),
        builtAt: rows.int(row, 'built_at'),
        looked: row.looked === true,
        replacedAt: rows.intOrNull(row, 'replaced_at'),
      }));
    },
    async count(first, past, most) {
      const [row = {}] = await session.query(COUNT, [leastIdOf(first), leastIdOf(past), most]);
      return rows.int(row, 'n');
    },
    async rows(first, past, limit, end) {
      const found = [];
      let [from, to] = [leastIdOf(first), leastIdOf(past)];
      while (found.length < limit) {
        const asked = Math.min(ROWS, limit - found.length);
        const some = (await session.query(end === 'oldest' ? OLDEST : NEWEST, [from, to, asked])).map(searchedMail);
        found.push(...some);
        const last = some.at(-1)?.id;
        if (some.length < asked || last === undefined) break;
        if (end === 'oldest') from = next(last);
        else to = last;
      }
      return end === 'oldest' ? found : found.reverse();
    },
  };
}

/** The least id greater than this one. */
function next(id: string): string {
  const number = BigInt(`0x${id.replaceAll('-', '')}`) + 1n;
  const hex = number.toString(16).padStart(32, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

async function write(session: Session, change: IndexChange): Promise<void> {
  for (const { first, past, mails, directory, terms, places } of change.add) {
    const [row = {}] = await session.query(ADD, [first, past, mails, change.at, Buffer.from(directory)]);
    const number = rows.int(row, 'number');
    const pages = [
      ...terms.map((page, index) => [termsKey(number, index), Buffer.from(page)] as const),
      ...places.map((page, index) => [placesKey(number, index), Buffer.from(page)] as const),
    ];
    for (let begin = 0; begin < pages.length; begin += PAGES) {
      const some = pages.slice(begin, begin + PAGES);
      await session.query(ADD_PAGES, [some.map(([key]) => key), some.map(([, page]) => page)]);
    }
  }
  if (change.replace.length > 0) await session.query(REPLACE, [change.at, change.replace]);
  if (change.looked !== null) await session.query(LOOKED, [change.looked]);
  if (change.oldest !== null) await session.query(EXTEND, [START, change.oldest]);
  if (change.purge !== null) {
    await session.query(PURGE, [change.purge]);
    await session.query(PURGE_PAGES, keysOf(change.purge));
  }
}

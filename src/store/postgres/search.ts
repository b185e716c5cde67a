/**
 * Search on PostgreSQL: the queries of a search, one statement each, and index maintenance. An index step is one
 * transaction under an advisory lock, on its own thread and connection (index-worker.ts).
 */

import type { State } from '../../model/message.ts';
import type { MessageStore } from '../contract.ts';
import { StoreError } from '../error.ts';
import { minIdOfSeq, seqOf } from '../rules/messages.ts';
import * as rows from '../rules/rows.ts';
import { executeSearch } from '../search/execute.ts';
import {
  type IndexChange,
  type IndexProgress,
  type IndexSource,
  type IndexStep,
  planIndexStep,
} from '../search/index-step.ts';
import type { SearchableMessage } from '../search/query.ts';
import {
  DirectoryCache,
  type IdRange,
  MIN_SEQ,
  pageKeyRange,
  type RowFilter,
  runAsync,
  type SearchSource,
  seqsKey,
  termsKey,
} from '../search/source.ts';
import type { Database, Row, Session, Statement } from './session.ts';

const OPEN: readonly State[] = ['queued', 'sending', 'uncertain'];
const COLUMNS = 'm.id, m.account_id, m."to", m.recipient, m."from", m.subject';
const QUEUE = 'LEFT JOIN queue q ON q.id = m.id AND q.account_id = m.account_id';
const NARROW = '($3::int IS NULL OR m.account_id = $3) AND ($4::text IS NULL OR coalesce(q.state, m.state) = $4)';

const NTH: Statement = {
  name: 'search_nth',
  text: 'SELECT id FROM mail_request WHERE id >= $1::uuid AND id < $2::uuid ORDER BY id DESC LIMIT 1 OFFSET $3',
};
/**
 * Looks up messages by the least and the greatest id of each sequence number. ORDER BY and LIMIT make the planner use
 * the key for each: for a range with unknown ends it assumes a ninth of the table.
 */
const PLACED = `unnest($1::uuid[], $2::uuid[]) AS p(least, greatest)
    CROSS JOIN LATERAL (SELECT * FROM mail_request WHERE id >= p.least AND id <= p.greatest ORDER BY id LIMIT 100) m`;
const AT: Statement = {
  name: 'search_at',
  text: `SELECT ${COLUMNS} FROM ${PLACED} WHERE ($3::int IS NULL OR m.account_id = $3)`,
};
const AT_IN_STATE: Statement = {
  name: 'search_at_in_state',
  text: `SELECT ${COLUMNS} FROM ${PLACED} ${QUEUE} WHERE ${NARROW}`,
};
/** The current rows at the end of the search: a state may have changed since the row was found. */
const SUMMARIES: Statement = {
  name: 'search_summaries',
  text: `SELECT m.id, m.account_id, coalesce(q.state, m.state) AS state, m."to", m."from", m.subject, m.accepted_at
    FROM mail_request m ${QUEUE} WHERE m.id = ANY($1::uuid[]) ORDER BY m.id DESC`,
};
const SEGMENTS: Statement = {
  name: 'search_segments',
  text: `SELECT number, first, past, mails FROM search_segment
    WHERE replaced_at IS NULL AND past > $1 AND first <= $2 ORDER BY first DESC`,
};
const DIRECTORIES: Statement = {
  name: 'search_directories',
  text: 'SELECT number, directory FROM search_segment WHERE number = ANY($1::bigint[])',
};
const PAGES: Statement = {
  name: 'search_pages',
  text: 'SELECT key, page FROM search_page WHERE key = ANY($1::bigint[])',
};
/** The sequence number of the greatest id does not fit into a `bigint`. */
const LAST_PLACE = Number.MAX_SAFE_INTEGER;

/** `monotonic` bounds the time of searches. */
export function prepareSearch(database: Database, monotonic: () => number): Pick<MessageStore, 'searchMessages'> {
  const directories = new DirectoryCache();

  async function select(window: IdRange, narrow: RowFilter, limit: number): Promise<readonly SearchableMessage[]> {
    return (await database.query(selection(narrow), valuesOf(window, narrow, limit))).map(searchedMail);
  }

  async function at(places: readonly string[], ends: readonly string[], { accountId, state }: RowFilter) {
    const found =
      state === null
        ? await database.query(AT, [places, ends, accountId])
        : await database.query(AT_IN_STATE, [places, ends, accountId, state]);
    return found.map(searchedMail).sort((one, other) => (one.id < other.id ? 1 : -1));
  }

  const source: SearchSource<SearchableMessage> = {
    byId: async (id, narrow) => (await at([id], [id], narrow))[0] ?? null,
    rows: select,
    inState: (state, window, limit) => select(window, { accountId: null, state }, limit),
    async countInState(state, { first, end: past }, most) {
      const text = `SELECT count(*)::int AS n FROM (SELECT 1 FROM ${inState(state)} LIMIT $3) AS found`;
      const [row = {}] = await database.query({ name: `search_count_${state}`, text }, [first, past, most]);
      return rows.int(row, 'n');
    },
    async seqsInState(state, { first, end: past }) {
      const statement = { name: `search_places_${state}`, text: `SELECT id FROM ${inState(state)}` };
      return (await database.query(statement, [first, past])).map((row) => seqOf(rows.text(row, 'id')));
    },
    async nth({ first, end: past }, count) {
      const [row] = await database.query(NTH, [first, past, count - 1]);
      return row === undefined ? null : rows.text(row, 'id');
    },
    async segments({ first, end: past }) {
      const values = [seqOf(first), Math.min(seqOf(past), LAST_PLACE)];
      return (await database.query(SEGMENTS, values)).map((row) => ({
        number: rows.int(row, 'number'),
        first: rows.int(row, 'first'),
        end: rows.int(row, 'past'),
        messageCount: rows.int(row, 'mails'),
      }));
    },
    async directories(numbers) {
      const missing = directories.missing(numbers);
      const read = missing.length === 0 ? [] : await database.query(DIRECTORIES, [missing]);
      return directories.update(
        numbers,
        read.map((row) => [rows.int(row, 'number'), bytes(row.directory)]),
      );
    },
    async pages(keys) {
      const read = keys.length === 0 ? [] : await database.query(PAGES, [keys]);
      return new Map(read.map((row) => [rows.int(row, 'key'), bytes(row.page)]));
    },
    bySeqs: (places, narrow) => at(places.map(minIdOfSeq), places.map(greatestIdOf), narrow),
  };

  return {
    async searchMessages(search, budgetMs) {
      const until = monotonic() + budgetMs;
      const { messages: mails, searchedTo } = await runAsync(executeSearch(source, search, () => monotonic() >= until));
      const found = mails.length === 0 ? [] : await database.query(SUMMARIES, [mails.map(({ id }) => id)]);
      return { messages: found.map(rows.messageSummary), searchedTo };
    },
  };
}

/**
 * The table and conditions for one state within a range of ids. The state is part of the text, because a partial index
 * serves no parameter.
 */
function inState(state: State): string {
  const [from, owned] = OPEN.includes(state) ? ['queue', ownedOnly(state)] : ['mail_request', ''];
  return `${from} WHERE id >= $1::uuid AND id < $2::uuid AND state = '${state}' ${owned}`;
}

/** Leased and uncertain rows are few and have their own index. The planner uses it only with this condition. */
function ownedOnly(state: State): string {
  return state === 'queued' ? '' : `AND state <> 'queued'`;
}

function selection({ accountId, state }: RowFilter): Statement {
  const open = state !== null && OPEN.includes(state);
  // Materialized and then sorted; otherwise the planner reads the whole queue in order of id.
  const owned = open && state !== 'queued';
  const head = owned
    ? `WITH o AS MATERIALIZED (SELECT id, account_id, state FROM queue WHERE state = '${state}' ${ownedOnly(state)})`
    : '';
  const of = open ? 'q' : 'm';
  const from = open
    ? `${owned ? 'o' : 'queue'} q JOIN mail_request m ON m.id = q.id AND m.account_id = q.account_id`
    : 'mail_request m';
  const narrow = `${state === null ? '' : `AND ${of}.state = '${state}'`} ${accountId === null ? '' : `AND ${of}.account_id = $4`}`;
  return {
    name: `search_rows_${state ?? 'any'}${accountId === null ? '' : '_account'}`,
    text: `${head} SELECT ${COLUMNS} FROM ${from} WHERE ${of}.id >= $1::uuid AND ${of}.id < $2::uuid ${narrow} ORDER BY ${of}.id DESC LIMIT $3`,
  };
}

function valuesOf({ first, end: past }: IdRange, { accountId }: RowFilter, limit: number): readonly unknown[] {
  return accountId === null ? [first, past, limit] : [first, past, limit, accountId];
}

function greatestIdOf(place: number): string {
  return `${minIdOfSeq(place).slice(0, 19)}ffff-ffffffffffff`;
}

function bytes(value: unknown): Uint8Array {
  if (value instanceof Uint8Array) return value;
  throw new StoreError('a page of the search index holds no bytes: the database is damaged.');
}

function searchedMail(row: Row): SearchableMessage {
  return {
    id: rows.text(row, 'id'),
    accountId: rows.int(row, 'account_id'),
    to: rows.text(row, 'to'),
    recipient: rows.textOrNull(row, 'recipient'),
    from: rows.text(row, 'from'),
    subject: rows.text(row, 'subject'),
  };
}

/** An advisory lock that neither schema, partitions nor other software uses. */
const LOCK = 0x50524453;
/** Rows per statement. */
const ROWS = 2_048;
/** Pages per statement. */
const PAGES_AT_ONCE = 64;

const HOLD: Statement = { name: 'index_hold', text: 'SELECT pg_try_advisory_xact_lock($1) AS held' };
const ALL_SEGMENTS: Statement = {
  name: 'index_segments',
  text: 'SELECT number, first, past, mails, built_at, looked, replaced_at FROM search_segment ORDER BY first DESC',
};
const COUNT: Statement = {
  name: 'index_count',
  text: `SELECT count(*)::int AS n FROM (SELECT 1 FROM mail_request WHERE id >= $1::uuid AND id < $2::uuid LIMIT $3) AS found`,
};
const INDEXED_COLUMNS = 'id, account_id, "to", recipient, "from", subject';
const OLDEST: Statement = {
  name: 'index_oldest',
  text: `SELECT ${INDEXED_COLUMNS} FROM mail_request WHERE id >= $1::uuid AND id < $2::uuid ORDER BY id LIMIT $3`,
};
const NEWEST: Statement = {
  name: 'index_newest',
  text: `SELECT ${INDEXED_COLUMNS} FROM mail_request WHERE id >= $1::uuid AND id < $2::uuid ORDER BY id DESC LIMIT $3`,
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

export function runIndexStep(database: Database, step: IndexStep): Promise<IndexProgress> {
  return database.transaction(async (session) => {
    const [lock] = await session.query(HOLD, [LOCK]);
    if (lock?.held !== true) return { changed: false, unindexedCount: 0, indexedCount: 0 };
    const { change, progress } = await runAsync(planIndexStep(sourceOn(session), step));
    if (change !== null) await write(session, change);
    return progress;
  });
}

function sourceOn(session: Session): IndexSource {
  return {
    async segments() {
      return (await session.query(ALL_SEGMENTS, [])).map((row) => ({
        number: rows.int(row, 'number'),
        first: rows.int(row, 'first'),
        end: rows.int(row, 'past'),
        messageCount: rows.int(row, 'mails'),
        builtAt: rows.int(row, 'built_at'),
        verified: row.looked === true,
        replacedAt: rows.intOrNull(row, 'replaced_at'),
      }));
    },
    async count(first, past, most) {
      const [row = {}] = await session.query(COUNT, [minIdOfSeq(first), minIdOfSeq(past), most]);
      return rows.int(row, 'n');
    },
    async rows(first, past, limit, end) {
      const found = [];
      let [from, to] = [minIdOfSeq(first), minIdOfSeq(past)];
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
  for (const { first, end: past, messageCount: mails, directory, termPages: terms, seqPages: places } of change.add) {
    const [row = {}] = await session.query(ADD, [first, past, mails, change.at, Buffer.from(directory)]);
    const number = rows.int(row, 'number');
    const pages = [
      ...terms.map((page, index) => [termsKey(number, index), Buffer.from(page)] as const),
      ...places.map((page, index) => [seqsKey(number, index), Buffer.from(page)] as const),
    ];
    for (let begin = 0; begin < pages.length; begin += PAGES_AT_ONCE) {
      const some = pages.slice(begin, begin + PAGES_AT_ONCE);
      await session.query(ADD_PAGES, [some.map(([key]) => key), some.map(([, page]) => page)]);
    }
  }
  if (change.replace.length > 0) await session.query(REPLACE, [change.at, change.replace]);
  if (change.verified !== null) await session.query(LOOKED, [change.verified]);
  if (change.firstSegment !== null) await session.query(EXTEND, [MIN_SEQ, change.firstSegment]);
  if (change.purge !== null) {
    await session.query(PURGE, [change.purge]);
    await session.query(PURGE_PAGES, pageKeyRange(change.purge));
  }
}

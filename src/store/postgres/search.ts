/** Finding mail requests on PostgreSQL: what the course of a search asks for, one statement at a time. */
import type { State } from '../../model/state-machine.ts';
import type { MessageStore } from '../contract.ts';
import { StoreError } from '../error.ts';
import * as rows from '../rules/rows.ts';
import type { Window } from '../search/bounds.ts';
import { searchCourse } from '../search/course.ts';
import { Directories } from '../search/directories.ts';
import type { SearchedMail } from '../search/query.ts';
import type { Narrow, SearchSource } from '../search/source.ts';
import { runWaiting } from '../search/step.ts';
import { leastIdOf, seqOf } from '../seq.ts';
import type { Database, Row, Statement } from './session.ts';

const OPEN: readonly State[] = ['queued', 'sending', 'uncertain'];
const COLUMNS = 'm.id, m.account_id, m."to", m.recipient, m."from", m.subject';
const QUEUE = 'LEFT JOIN queue q ON q.id = m.id AND q.account_id = m.account_id';
const NARROW = '($3::int IS NULL OR m.account_id = $3) AND ($4::text IS NULL OR coalesce(q.state, m.state) = $4)';

const NTH: Statement = {
  name: 'search_nth',
  text: 'SELECT id FROM mail_request WHERE id >= $1::uuid AND id < $2::uuid ORDER BY id DESC LIMIT 1 OFFSET $3',
};
/**
 * By the least and the greatest id of each place. Ordered and limited, so that each is looked up in the key: of a range whose
 * ends are not known beforehand the planner thinks that it is a ninth of the table.
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
/** As they are when the search is over: a state may have changed since the row was found. */
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
/** No `bigint` holds the place of the greatest id. */
const LAST_PLACE = Number.MAX_SAFE_INTEGER;

/** `monotonic` bounds searches. */
export function prepareSearch(database: Database, monotonic: () => number): Pick<MessageStore, 'searchMail'> {
  const directories = new Directories();

  async function select(window: Window, narrow: Narrow, limit: number): Promise<readonly SearchedMail[]> {
    return (await database.query(selection(narrow), valuesOf(window, narrow, limit))).map(searchedMail);
  }

  async function at(places: readonly string[], ends: readonly string[], { accountId, state }: Narrow) {
    const found =
      state === null
        ? await database.query(AT, [places, ends, accountId])
        : await database.query(AT_IN_STATE, [places, ends, accountId, state]);
    return found.map(searchedMail).sort((one, other) => (one.id < other.id ? 1 : -1));
  }

  const source: SearchSource<SearchedMail> = {
    byId: async (id, narrow) => (await at([id], [id], narrow))[0] ?? null,
    rows: select,
    inState: (state, window, limit) => select(window, { accountId: null, state }, limit),
    async countInState(state, { first, past }, most) {
      const text = `SELECT count(*)::int AS n FROM (SELECT 1 FROM ${inState(state)} LIMIT $3) AS found`;
      const [row = {}] = await database.query({ name: `search_count_${state}`, text }, [first, past, most]);
      return rows.int(row, 'n');
    },
    async placesInState(state, { first, past }) {
      const statement = { name: `search_places_${state}`, text: `SELECT id FROM ${inState(state)}` };
      return (await database.query(statement, [first, past])).map((row) => seqOf(rows.text(row, 'id')));
    },
    async nth({ first, past }, count) {
      const [row] = await database.query(NTH, [first, past, count - 1]);
      return row === undefined ? null : rows.text(row, 'id');
    },
    async segments({ first, past }) {
      const values = [seqOf(first), Math.min(seqOf(past), LAST_PLACE)];
      return (await database.query(SEGMENTS, values)).map((row) => ({
        number: rows.int(row, 'number'),
        first: rows.int(row, 'first'),
        past: rows.int(row, 'past'),
        mails: rows.int(row, 'mails'),
      }));
    },
    async directories(numbers) {
      const missing = directories.missing(numbers);
      const read = missing.length === 0 ? [] : await database.query(DIRECTORIES, [missing]);
      return directories.of(
        numbers,
        read.map((row) => [rows.int(row, 'number'), bytes(row.directory)]),
      );
    },
    async pages(keys) {
      const read = keys.length === 0 ? [] : await database.query(PAGES, [keys]);
      return new Map(read.map((row) => [rows.int(row, 'key'), bytes(row.page)]));
    },
    at: (places, narrow) => at(places.map(leastIdOf), places.map(greatestIdOf), narrow),
  };

  return {
    async searchMail(search, budgetMs) {
      const until = monotonic() + budgetMs;
      const { mails, searchedTo } = await runWaiting(searchCourse(source, search, () => monotonic() >= until));
      const found = mails.length === 0 ? [] : await database.query(SUMMARIES, [mails.map(({ id }) => id)]);
      return { mails: found.map(rows.summary), searchedTo };
    },
  };
}

/** Tables and conditions for one state, within a window of ids. The state stands in the text: only then does a partial index serve it. */
function inState(state: State): string {
  const [from, owned] = OPEN.includes(state) ? ['queue', ownedOnly(state)] : ['mail_request', ''];
  return `${from} WHERE id >= $1::uuid AND id < $2::uuid AND state = '${state}' ${owned}`;
}

/** What is owned is little and has an index of its own, which the state alone does not show to be the one. */
function ownedOnly(state: State): string {
  return state === 'queued' ? '' : `AND state <> 'queued'`;
}

function selection({ accountId, state }: Narrow): Statement {
  const open = state !== null && OPEN.includes(state);
  // Found first and sorted then, lest the whole queue be gone through in order of the ids.
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

function valuesOf({ first, past }: Window, { accountId }: Narrow, limit: number): readonly unknown[] {
  return accountId === null ? [first, past, limit] : [first, past, limit, accountId];
}

function greatestIdOf(place: number): string {
  return `${leastIdOf(place).slice(0, 19)}ffff-ffffffffffff`;
}

function bytes(value: unknown): Uint8Array {
  if (value instanceof Uint8Array) return value;
  throw new StoreError('a page of the search index holds no bytes: the database is damaged.');
}

export function searchedMail(row: Row): SearchedMail {
  return {
    id: rows.text(row, 'id'),
    accountId: rows.int(row, 'account_id'),
    to: rows.text(row, 'to'),
    recipient: rows.textOrNull(row, 'recipient'),
    from: rows.text(row, 'from'),
    subject: rows.text(row, 'subject'),
  };
}

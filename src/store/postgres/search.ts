/** Finding mail requests on PostgreSQL: what the course of a search asks for, one statement at a time. */
import type { State } from '../../record/states.ts';
import { type Narrow, type SearchSource, searchCourse, type Window } from '../search/course.ts';
import type { SearchedMail } from '../search/query.ts';
import { runWaiting } from '../search/step.ts';
import type { SearchStore } from '../search.ts';
import * as rows from './rows.ts';
import type { Database, Row, Statement } from './session.ts';

const OPEN: readonly State[] = ['queued', 'sending', 'uncertain'];
const COLUMNS = 'm.id, m.account_id, m."to", m.recipient, m."from", m.subject';

const NTH: Statement = {
  name: 'search_nth',
  text: 'SELECT id FROM mail_request WHERE id >= $1::uuid AND id < $2::uuid ORDER BY id DESC LIMIT 1 OFFSET $3',
};
const ONE: Statement = {
  name: 'search_one',
  text: `SELECT ${COLUMNS} FROM mail_request m LEFT JOIN queue q ON q.id = m.id AND q.account_id = m.account_id
    WHERE m.id = $1::uuid AND ($2::int IS NULL OR m.account_id = $2) AND ($3::text IS NULL OR coalesce(q.state, m.state) = $3)`,
};
/** As they are when the search is over: a state may have changed since the row was found. */
const SUMMARIES: Statement = {
  name: 'search_summaries',
  text: `SELECT m.id, m.account_id, coalesce(q.state, m.state) AS state, m."to", m."from", m.subject, m.accepted_at
    FROM mail_request m LEFT JOIN queue q ON q.id = m.id AND q.account_id = m.account_id
    WHERE m.id = ANY($1::uuid[]) ORDER BY m.id DESC`,
};

export function prepareSearch(database: Database): SearchStore {
  const source: SearchSource<SearchedMail> = {
    async byId(id, { accountId, state }) {
      const [row] = await database.query(ONE, [id, accountId, state]);
      return row === undefined ? null : mailOf(row);
    },
    async rows(window, narrow, limit) {
      return (await database.query(selection(narrow), valuesOf(window, narrow, limit))).map(mailOf);
    },
    async inState(state, window, limit) {
      const narrow = { accountId: null, state };
      return (await database.query(selection(narrow), valuesOf(window, narrow, limit))).map(mailOf);
    },
    async nth({ first, past }, count) {
      const [row] = await database.query(NTH, [first, past, count - 1]);
      return row === undefined ? null : rows.text(row, 'id');
    },
  };

  return {
    async searchMail(search, budgetMs) {
      const until = performance.now() + budgetMs;
      const { mails, searchedTo } = await runWaiting(searchCourse(source, search, () => performance.now() >= until));
      const found = mails.length === 0 ? [] : await database.query(SUMMARIES, [mails.map(({ id }) => id)]);
      return { mails: found.map(rows.summary), searchedTo };
    },
  };
}

/** The state stands in the text: only then does a partial index serve it. */
function selection({ accountId, state }: Narrow): Statement {
  const open = state !== null && OPEN.includes(state);
  const of = open ? 'q' : 'm';
  const from = open ? 'queue q JOIN mail_request m ON m.id = q.id AND m.account_id = q.account_id' : 'mail_request m';
  // `state = 'sending'` alone would not be seen to be within the index of what is owned.
  const owned = open && state !== 'queued' ? `AND q.state <> 'queued'` : '';
  const narrow = `${state === null ? '' : `AND ${of}.state = '${state}'`} ${owned} ${accountId === null ? '' : `AND ${of}.account_id = $4`}`;
  return {
    name: `search_rows_${state ?? 'any'}${accountId === null ? '' : '_account'}`,
    text: `SELECT ${COLUMNS} FROM ${from} WHERE ${of}.id >= $1::uuid AND ${of}.id < $2::uuid ${narrow} ORDER BY ${of}.id DESC LIMIT $3`,
  };
}

function valuesOf({ first, past }: Window, { accountId }: Narrow, limit: number): readonly unknown[] {
  return accountId === null ? [first, past, limit] : [first, past, limit, accountId];
}

function mailOf(row: Row): SearchedMail {
  return {
    id: rows.text(row, 'id'),
    accountId: rows.int(row, 'account_id'),
    to: rows.text(row, 'to'),
    recipient: rows.textOrNull(row, 'recipient'),
    from: rows.text(row, 'from'),
    subject: rows.text(row, 'subject'),
  };
}

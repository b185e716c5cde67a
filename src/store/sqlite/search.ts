/** Finding mail requests in the embedded database: what the course of a search asks for, answered at once. */
import type { DatabaseSync, SQLInputValue, SQLOutputValue } from 'node:sqlite';
import type { MailSummary } from '../../model/message.ts';
import type { State } from '../../model/state-machine.ts';
import { StoreError } from '../error.ts';
import * as rows from '../rules/rows.ts';
import type { Window } from '../search/bounds.ts';
import { searchCourse } from '../search/course.ts';
import { Directories } from '../search/directories.ts';
import type { SearchedMail } from '../search/query.ts';
import type { Narrow, SearchSource } from '../search/source.ts';
import { runAtOnce } from '../search/step.ts';
import type { MailFound, MailSearch } from '../search.ts';
import { seqOf } from '../seq.ts';

type Mail = MailSummary & SearchedMail;

const COLUMNS = 'id, account_id, state, "to", recipient, "from", subject, accepted_at';
const OPEN: readonly State[] = ['queued', 'sending', 'uncertain'];
const TROUBLE = `ended_at IS NOT NULL AND state <> 'delivered'`;

/** `monotonic` bounds searches. */
export function prepareSearch(database: DatabaseSync, monotonic: () => number) {
  const nth = database.prepare(
    'SELECT id FROM mail_request WHERE seq >= ? AND seq < ? ORDER BY seq DESC LIMIT 1 OFFSET ?',
  );
  const one = database.prepare(`SELECT ${COLUMNS} FROM mail_request WHERE seq = ?`);
  const segments = database.prepare(
    `SELECT number, first, past, mails FROM search_segment WHERE replaced_at IS NULL AND past > ? AND first <= ? ORDER BY first DESC`,
  );
  const directory = database.prepare('SELECT directory FROM search_segment WHERE number = ?');
  const page = database.prepare('SELECT page FROM search_page WHERE key = ?');
  const directories = new Directories();

  function select({ first, past }: Window, { accountId, state }: Narrow, limit: number, more: string): Mail[] {
    const values: SQLInputValue[] = [seqOf(first), seqOf(past)];
    // The state stands in the text: only then does a partial index serve it.
    const narrow = `${accountId === null ? '' : 'AND account_id = ?'} ${state === null ? '' : `AND state = '${state}'`} ${more}`;
    if (accountId !== null) values.push(accountId);
    const sql = `SELECT ${COLUMNS} FROM mail_request WHERE seq >= ? AND seq < ? ${narrow} ORDER BY seq DESC LIMIT ?`;
    return database
      .prepare(sql)
      .all(...values, limit)
      .map(mailOf);
  }

  function at(seq: number, { accountId, state }: Narrow): Mail | null {
    const row = one.get(seq);
    if (row === undefined) return null;
    const fits = (accountId === null || row.account_id === accountId) && (state === null || row.state === state);
    return fits ? mailOf(row) : null;
  }

  const source: SearchSource<Mail> = {
    byId(id, narrow) {
      const mail = at(seqOf(id), narrow);
      return mail?.id === id ? mail : null;
    },
    rows: (window, narrow, limit) => select(window, narrow, limit, ''),
    inState: (state, window, limit) => select(window, { accountId: null, state }, limit, inIndex(state)),
    countInState(state, { first, past }, most) {
      const sql = `SELECT count(*) AS n FROM (SELECT 1 FROM mail_request WHERE state = '${state}' AND seq >= ? AND seq < ? ${inIndex(state)} LIMIT ?)`;
      return rows.int(database.prepare(sql).get(seqOf(first), seqOf(past), most) ?? {}, 'n');
    },
    placesInState(state, { first, past }) {
      const sql = `SELECT seq FROM mail_request WHERE state = '${state}' AND seq >= ? AND seq < ? ${inIndex(state)}`;
      return database
        .prepare(sql)
        .all(seqOf(first), seqOf(past))
        .map((row) => rows.int(row, 'seq'));
    },
    nth({ first, past }, count) {
      const row = nth.get(seqOf(first), seqOf(past), count - 1);
      return row === undefined ? null : rows.text(row, 'id');
    },
    segments: ({ first, past }) =>
      segments.all(seqOf(first), seqOf(past)).map((row) => ({
        number: rows.int(row, 'number'),
        first: rows.int(row, 'first'),
        past: rows.int(row, 'past'),
        mails: rows.int(row, 'mails'),
      })),
    directories(numbers) {
      const read = directories.missing(numbers).flatMap((number) => {
        const row = directory.get(number);
        return row === undefined ? [] : [[number, bytes(row.directory)] as const];
      });
      return directories.of(numbers, read);
    },
    pages(keys) {
      const found = new Map<number, Uint8Array>();
      for (const key of keys) {
        const row = page.get(key);
        if (row !== undefined) found.set(key, bytes(row.page));
      }
      return found;
    },
    at: (places, narrow) => places.flatMap((place) => at(place, narrow) ?? []),
  };

  return {
    searchMail(search: MailSearch, budgetMs: number): MailFound {
      const until = monotonic() + budgetMs;
      // One view of the store, whatever is written meanwhile.
      database.exec('BEGIN');
      try {
        const { mails, searchedTo } = runAtOnce(searchCourse(source, search, () => monotonic() >= until));
        return { mails: mails.map(({ recipient: _, ...mail }) => mail), searchedTo };
      } finally {
        database.exec('COMMIT');
      }
    },
  };
}

/** The condition of the state's index, word for word: only then is it used. */
function inIndex(state: State): string {
  return OPEN.includes(state) ? 'AND ended_at IS NULL' : `AND ${TROUBLE}`;
}

function bytes(value: SQLOutputValue | undefined): Uint8Array {
  if (value instanceof Uint8Array) return value;
  throw new StoreError('a page of the search index holds no bytes: the database is damaged.');
}

function mailOf(row: rows.Row): Mail {
  return { ...rows.summary(row), recipient: rows.textOrNull(row, 'recipient') };
}

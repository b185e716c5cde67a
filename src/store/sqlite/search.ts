/**
 * Search in the embedded database: the queries of a search, answered synchronously, and index maintenance. Index steps
 * are read and built on their own thread and written by the writer thread.
 */

import type { DatabaseSync, SQLInputValue, SQLOutputValue } from 'node:sqlite';
import type { State, StoredMessageSummary } from '../../model/message.ts';
import { StoreError } from '../error.ts';
import { seqOf } from '../rules/messages.ts';
import * as rows from '../rules/rows.ts';
import { searchSteps } from '../search/execute.ts';
import {
  type BuiltStep,
  type IndexChange,
  type IndexSource,
  type IndexStep,
  indexSteps,
} from '../search/index-step.ts';
import type { MessageSearch, MessageSearchResult, SearchableMessage } from '../search/query.ts';
import {
  DirectoryCache,
  FIRST_SEQ,
  type IdRange,
  pageKeyRange,
  type RowFilter,
  runSync,
  type SearchSource,
  seqsKey,
  termsKey,
} from '../search/source.ts';

type Mail = StoredMessageSummary & SearchableMessage;

const COLUMNS = 'id, account_id, state, "to", recipient, "from", subject, accepted_at';
const OPEN: readonly State[] = ['queued', 'sending', 'uncertain'];
const TROUBLE = `ended_at IS NOT NULL AND state <> 'delivered'`;

/** `monotonic` bounds the time of searches. */
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
  const directories = new DirectoryCache();

  function select({ first, past }: IdRange, { accountId, state }: RowFilter, limit: number, more: string): Mail[] {
    const values: SQLInputValue[] = [seqOf(first), seqOf(past)];
    // The state is part of the text, because a partial index serves no parameter.
    const narrow = `${accountId === null ? '' : 'AND account_id = ?'} ${state === null ? '' : `AND state = '${state}'`} ${more}`;
    if (accountId !== null) values.push(accountId);
    const sql = `SELECT ${COLUMNS} FROM mail_request WHERE seq >= ? AND seq < ? ${narrow} ORDER BY seq DESC LIMIT ?`;
    return database
      .prepare(sql)
      .all(...values, limit)
      .map(mailOf);
  }

  function at(seq: number, { accountId, state }: RowFilter): Mail | null {
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
    seqsInState(state, { first, past }) {
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
      return directories.update(numbers, read);
    },
    pages(keys) {
      const found = new Map<number, Uint8Array>();
      for (const key of keys) {
        const row = page.get(key);
        if (row !== undefined) found.set(key, bytes(row.page));
      }
      return found;
    },
    bySeqs: (places, narrow) => places.flatMap((place) => at(place, narrow) ?? []),
  };

  return {
    searchMessages(search: MessageSearch, budgetMs: number): MessageSearchResult {
      const until = monotonic() + budgetMs;
      // One snapshot for the whole search.
      database.exec('BEGIN');
      try {
        const { mails, searchedTo } = runSync(searchSteps(source, search, () => monotonic() >= until));
        return { messages: mails.map(({ recipient: _, ...mail }) => mail), searchedTo };
      } finally {
        database.exec('COMMIT');
      }
    },
  };
}

/** The exact condition of the state's index; SQLite uses the index only then. */
function inIndex(state: State): string {
  return OPEN.includes(state) ? 'AND ended_at IS NULL' : `AND ${TROUBLE}`;
}

function bytes(value: SQLOutputValue | undefined): Uint8Array {
  if (value instanceof Uint8Array) return value;
  throw new StoreError('a page of the search index holds no bytes: the database is damaged.');
}

function mailOf(row: rows.Row): Mail {
  return { ...rows.messageSummary(row), recipient: rows.textOrNull(row, 'recipient') };
}

const INDEXED_COLUMNS = 'id, account_id, "to", recipient, "from", subject';

export function prepareSearchIndex(database: DatabaseSync) {
  const segments = database.prepare(
    'SELECT number, first, past, mails, built_at, looked, replaced_at FROM search_segment ORDER BY first DESC',
  );
  const count = database.prepare(
    'SELECT count(*) AS n FROM (SELECT 1 FROM mail_request WHERE seq >= ? AND seq < ? LIMIT ?)',
  );
  const oldest = database.prepare(
    `SELECT ${INDEXED_COLUMNS} FROM mail_request WHERE seq >= ? AND seq < ? ORDER BY seq LIMIT ?`,
  );
  const newest = database.prepare(
    `SELECT ${INDEXED_COLUMNS} FROM mail_request WHERE seq >= ? AND seq < ? ORDER BY seq DESC LIMIT ?`,
  );
  const add = database.prepare(
    'INSERT INTO search_segment (first, past, mails, built_at, looked, directory) VALUES (?, ?, ?, ?, 0, ?)',
  );
  const addPage = database.prepare('INSERT INTO search_page (key, page) VALUES (?, ?)');
  const replace = database.prepare('UPDATE search_segment SET replaced_at = ? WHERE number = ?');
  const looked = database.prepare('UPDATE search_segment SET looked = 1 WHERE number = ?');
  const extend = database.prepare('UPDATE search_segment SET first = ? WHERE number = ?');
  const purge = database.prepare('DELETE FROM search_segment WHERE number = ?');
  const purgePages = database.prepare('DELETE FROM search_page WHERE key >= ? AND key < ?');

  const source: IndexSource = {
    segments: () =>
      segments.all().map((row) => ({
        number: rows.int(row, 'number'),
        first: rows.int(row, 'first'),
        past: rows.int(row, 'past'),
        mails: rows.int(row, 'mails'),
        builtAt: rows.int(row, 'built_at'),
        looked: rows.int(row, 'looked') === 1,
        replacedAt: rows.intOrNull(row, 'replaced_at'),
      })),
    count: (first, past, most) => rows.int(count.get(first, past, most) ?? {}, 'n'),
    rows(first, past, limit, end) {
      if (end === 'oldest') return oldest.all(first, past, limit).map(searchedMail);
      return newest.all(first, past, limit).map(searchedMail).reverse();
    },
  };

  return {
    buildIndex(step: IndexStep): BuiltStep {
      return runSync(indexSteps(source, step));
    },
    changeIndex(change: IndexChange): void {
      for (const { first, past, mails, directory, terms, places } of change.add) {
        const number = Number(add.run(first, past, mails, change.at, directory).lastInsertRowid);
        for (const [index, page] of terms.entries()) addPage.run(termsKey(number, index), page);
        for (const [index, page] of places.entries()) addPage.run(seqsKey(number, index), page);
      }
      for (const number of change.replace) replace.run(change.at, number);
      if (change.looked !== null) looked.run(change.looked);
      if (change.oldest !== null) extend.run(FIRST_SEQ, change.oldest);
      if (change.purge !== null) {
        purge.run(change.purge);
        purgePages.run(...pageKeyRange(change.purge));
      }
    },
  };
}

function searchedMail(row: rows.Row): SearchableMessage {
  return {
    id: rows.text(row, 'id'),
    accountId: rows.int(row, 'account_id'),
    to: rows.text(row, 'to'),
    recipient: rows.textOrNull(row, 'recipient'),
    from: rows.text(row, 'from'),
    subject: rows.text(row, 'subject'),
  };
}

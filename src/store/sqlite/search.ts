/**
 * Implements the search in the embedded database: executes the queries of a search synchronously and maintains the
 * search index. A separate thread reads messages and builds segments; the writer thread writes them.
 */

import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import {
  type FoundMessage,
  getOutcomeText,
  type StateFilter,
  type StoredMessageSummary,
  VERBS_WITHOUT_OUTCOME,
} from '../../model/message.ts';
import { StoreError } from '../error.ts';
import { toSeq } from '../rules/messages.ts';
import * as rows from '../rules/rows.ts';
import { executeSearch, matchesRowFilter } from '../search/execute.ts';
import {
  type BuiltStep,
  type IndexChange,
  type IndexSource,
  type IndexStep,
  planIndexStep,
} from '../search/index-step.ts';
import type { MessageSearch, MessageSearchResult, SearchableMessage } from '../search/query.ts';
import {
  DirectoryCache,
  getPageKeyRange,
  type IdRange,
  MIN_SEQ,
  type RowFilter,
  type RowIndex,
  runSync,
  type SearchSource,
  toSeqsKey,
  toTermsKey,
} from '../search/source.ts';

type SearchedMessage = StoredMessageSummary & SearchableMessage;

const COLUMNS = 'id, account_id, state, "to", recipient, "from", subject, accepted_at';
const SQL_VERBS_WITHOUT_OUTCOME = VERBS_WITHOUT_OUTCOME.map((verb) => `'${verb}'`).join(', ');
const OPEN_STATES: readonly StateFilter[] = ['queued', 'sending', 'uncertain'];
const ENDED_UNDELIVERED = `ended_at IS NOT NULL AND state <> 'delivered'`;

/**
 * Creates the operations of the search. `monotonic` returns the monotonic time in ms, which limits the duration of
 * searches.
 */
export function prepareSearch(database: DatabaseSync, monotonic: () => number) {
  const selectNthId = database.prepare(
    'SELECT id FROM mail_request WHERE seq >= ? AND seq < ? ORDER BY seq DESC LIMIT 1 OFFSET ?',
  );
  const selectBySeq = database.prepare(
    `SELECT ${COLUMNS}, lane, attempts, failure_class, failure_category FROM mail_request WHERE seq = ?`,
  );
  const selectOutcome = database.prepare(
    `SELECT verb, by, detail, failure FROM event WHERE seq = ? AND verb NOT IN (${SQL_VERBS_WITHOUT_OUTCOME}) ORDER BY n DESC LIMIT 1`,
  );
  const selectLastTime = database.prepare('SELECT at FROM event WHERE seq = ? ORDER BY n DESC LIMIT 1');
  const selectSegments = database.prepare(
    `SELECT number, first, past, mails FROM search_segment WHERE replaced_at IS NULL AND past > ? AND first <= ? ORDER BY first DESC`,
  );
  const selectDirectory = database.prepare('SELECT directory FROM search_segment WHERE number = ?');
  const selectPage = database.prepare('SELECT page FROM search_page WHERE key = ?');
  const directories = new DirectoryCache();

  function selectRows({ first, end }: IdRange, filter: RowFilter, limit: number): SearchedMessage[] {
    const sql = `SELECT ${COLUMNS} FROM mail_request WHERE seq >= ? AND seq < ? ${toConditions(filter)} ORDER BY seq DESC LIMIT ?`;
    return database.prepare(sql).all(toSeq(first), toSeq(end), limit).map(toSearchedMessage);
  }

  function findBySeq(seq: number, filter: RowFilter): SearchedMessage | null {
    const row = selectBySeq.get(seq);
    if (row === undefined) return null;
    const state = rows.readState(row);
    const matchesFilter = matchesRowFilter(filter, {
      accountId: rows.readInteger(row, 'account_id'),
      state,
      isDeferred: state === 'queued' && row.lane === 1,
      failureClass: rows.readTextOrNull(row, 'failure_class'),
      failureCategory: rows.readTextOrNull(row, 'failure_category'),
    });
    return matchesFilter ? toSearchedMessage(row) : null;
  }

  /**
   * Returns the SQL query that reads the rows of every value of an index. `?1` and `?2` are the bounds of the range,
   * and `?3` is the maximum number of rows for each value.
   */
  function buildIndexQuery(index: RowIndex, columns: string, order: string): string {
    const valueQueries = toIndexConditions(index).map(
      (condition) =>
        `SELECT * FROM (SELECT ${columns} FROM mail_request WHERE seq >= ?1 AND seq < ?2 AND ${condition} ${order} LIMIT ?3)`,
    );
    return valueQueries.join(' UNION ALL ');
  }

  const source: SearchSource<SearchedMessage> = {
    findById(id, filter) {
      const message = findBySeq(toSeq(id), filter);
      return message?.id === id ? message : null;
    },
    readRows: selectRows,
    readIndexedRows(index, { first, end }, limit) {
      const sql = `SELECT * FROM (${buildIndexQuery(index, COLUMNS, 'ORDER BY seq DESC')}) ORDER BY id DESC LIMIT ?3`;
      return database.prepare(sql).all(toSeq(first), toSeq(end), limit).map(toSearchedMessage);
    },
    countIndexed(index, { first, end }, maxCount) {
      const sql = `SELECT count(*) AS n FROM (SELECT 1 FROM (${buildIndexQuery(index, '1', '')}) LIMIT ?3)`;
      return rows.readInteger(database.prepare(sql).get(toSeq(first), toSeq(end), maxCount) ?? {}, 'n');
    },
    readIndexedSeqs(index, { first, end }) {
      return database
        .prepare(buildIndexQuery(index, 'seq', ''))
        .all(toSeq(first), toSeq(end), -1)
        .map((row) => rows.readInteger(row, 'seq'));
    },
    findNthId({ first, end }, count) {
      const row = selectNthId.get(toSeq(first), toSeq(end), count - 1);
      return row === undefined ? null : rows.readText(row, 'id');
    },
    findSegments: ({ first, end }) =>
      selectSegments.all(toSeq(first), toSeq(end)).map((row) => ({
        number: rows.readInteger(row, 'number'),
        first: rows.readInteger(row, 'first'),
        end: rows.readInteger(row, 'past'),
        messageCount: rows.readInteger(row, 'mails'),
      })),
    readDirectories(numbers) {
      const newDirectories = directories.listMissing(numbers).flatMap((number) => {
        const row = selectDirectory.get(number);
        return row === undefined ? [] : [[number, requireBytes(row.directory)] as const];
      });
      return directories.update(numbers, newDirectories);
    },
    readPages(keys) {
      const foundPages = new Map<number, Uint8Array>();
      for (const key of keys) {
        const row = selectPage.get(key);
        if (row !== undefined) foundPages.set(key, requireBytes(row.page));
      }
      return foundPages;
    },
    findBySeqs: (seqs, filter) => seqs.flatMap((seq) => findBySeq(seq, filter) ?? []),
    readOutcomeTexts(ids) {
      const texts = new Map<string, string>();
      for (const id of ids) {
        const row = selectOutcome.get(toSeq(id));
        const text = row === undefined ? null : getOutcomeText(rows.toLastOutcome(row));
        if (text !== null) texts.set(id, text);
      }
      return texts;
    },
  };

  function toFoundMessage({ recipient: _, ...summary }: SearchedMessage): FoundMessage {
    const seq = toSeq(summary.id);
    const outcome = selectOutcome.get(seq);
    return {
      ...summary,
      ...rows.toFoundMembers(selectBySeq.get(seq) ?? {}, selectLastTime.get(seq) ?? { at: null }, summary),
      lastOutcome: outcome === undefined ? null : rows.toLastOutcome(outcome),
    };
  }

  return {
    searchMessages(search: MessageSearch, budgetMs: number): MessageSearchResult {
      const deadline = monotonic() + budgetMs;
      // The transaction gives the whole search one snapshot.
      database.exec('BEGIN');
      try {
        const { messages, searchedTo } = runSync(executeSearch(source, search, () => monotonic() >= deadline));
        return { messages: messages.map(toFoundMessage), searchedTo };
      } finally {
        database.exec('COMMIT');
      }
    },
  };
}

/**
 * Returns the conditions of a filter. The values are part of the SQL text, because SQLite does not use a partial index
 * for a parameter. The values need no escaping, because they are numbers or belong to fixed sets.
 */
function toConditions({ accountIds, states, failureClasses, failureCategories }: RowFilter): string {
  const stateConditions = states.map((state) =>
    state === 'deferred' ? `(state = 'queued' AND lane = 1)` : `state = '${state}'`,
  );
  return [
    accountIds.length === 0 ? '' : `AND account_id IN (${accountIds.join(', ')})`,
    states.length === 0 ? '' : `AND (${stateConditions.join(' OR ')})`,
    failureClasses.length === 0
      ? ''
      : `AND failure_class IN (${failureClasses.map((value) => `'${value}'`).join(', ')})`,
    failureCategories.length === 0
      ? ''
      : `AND failure_category IN (${failureCategories.map((value) => `'${value}'`).join(', ')})`,
  ].join(' ');
}

/** Returns, for each value of an index, the condition with which SQLite can use the partial index. */
function toIndexConditions(index: RowIndex): readonly string[] {
  switch (index.kind) {
    case 'state':
      return index.values.map((state) => {
        if (state === 'deferred') return `state = 'queued' AND lane = 1`;
        return `state = '${state}' AND ${OPEN_STATES.includes(state) ? 'ended_at IS NULL' : ENDED_UNDELIVERED}`;
      });
    case 'failure-class':
      return index.values.map((value) => `failure_class = '${value}'`);
    case 'failure-category':
      return index.values.map((value) => `failure_category = '${value}'`);
  }
}

function requireBytes(value: SQLOutputValue | undefined): Uint8Array {
  if (value instanceof Uint8Array) return value;
  throw new StoreError('a page of the search index is not a BLOB: the database is damaged. Restore a backup.');
}

function toSearchedMessage(row: rows.Row): SearchedMessage {
  return { ...rows.toMessageSummary(row), recipient: rows.readTextOrNull(row, 'recipient') };
}

const INDEXED_COLUMNS = 'id, account_id, "to", recipient, "from", subject';

export function prepareSearchIndex(database: DatabaseSync) {
  const selectSegments = database.prepare(
    'SELECT number, first, past, mails, built_at, looked, replaced_at FROM search_segment ORDER BY first DESC',
  );
  const selectCount = database.prepare(
    'SELECT count(*) AS n FROM (SELECT 1 FROM mail_request WHERE seq >= ? AND seq < ? LIMIT ?)',
  );
  const selectOldest = database.prepare(
    `SELECT ${INDEXED_COLUMNS} FROM mail_request WHERE seq >= ? AND seq < ? ORDER BY seq LIMIT ?`,
  );
  const selectNewest = database.prepare(
    `SELECT ${INDEXED_COLUMNS} FROM mail_request WHERE seq >= ? AND seq < ? ORDER BY seq DESC LIMIT ?`,
  );
  const insertSegment = database.prepare(
    'INSERT INTO search_segment (first, past, mails, built_at, looked, directory) VALUES (?, ?, ?, ?, 0, ?)',
  );
  const insertPage = database.prepare('INSERT INTO search_page (key, page) VALUES (?, ?)');
  const markReplaced = database.prepare('UPDATE search_segment SET replaced_at = ? WHERE number = ?');
  const markVerified = database.prepare('UPDATE search_segment SET looked = 1 WHERE number = ?');
  const setFirst = database.prepare('UPDATE search_segment SET first = ? WHERE number = ?');
  const deleteSegment = database.prepare('DELETE FROM search_segment WHERE number = ?');
  const deletePages = database.prepare('DELETE FROM search_page WHERE key >= ? AND key < ?');

  const source: IndexSource = {
    listSegments: () =>
      selectSegments.all().map((row) => ({
        number: rows.readInteger(row, 'number'),
        first: rows.readInteger(row, 'first'),
        end: rows.readInteger(row, 'past'),
        messageCount: rows.readInteger(row, 'mails'),
        builtAt: rows.readInteger(row, 'built_at'),
        isVerified: rows.readInteger(row, 'looked') === 1,
        replacedAt: rows.readIntegerOrNull(row, 'replaced_at'),
      })),
    countMessages: (first, end, maxCount) => rows.readInteger(selectCount.get(first, end, maxCount) ?? {}, 'n'),
    readMessages(first, end, limit, side) {
      if (side === 'oldest') return selectOldest.all(first, end, limit).map(toSearchableMessage);
      return selectNewest.all(first, end, limit).map(toSearchableMessage).reverse();
    },
  };

  return {
    buildIndex(step: IndexStep): BuiltStep {
      return runSync(planIndexStep(source, step));
    },
    changeIndex(change: IndexChange): void {
      for (const { first, end, messageCount, directory, termPages, seqPages } of change.addedSegments) {
        const number = Number(insertSegment.run(first, end, messageCount, change.at, directory).lastInsertRowid);
        for (const [index, page] of termPages.entries()) insertPage.run(toTermsKey(number, index), page);
        for (const [index, page] of seqPages.entries()) insertPage.run(toSeqsKey(number, index), page);
      }
      for (const number of change.replacedSegments) markReplaced.run(change.at, number);
      if (change.verifiedSegment !== null) markVerified.run(change.verifiedSegment);
      if (change.firstSegment !== null) setFirst.run(MIN_SEQ, change.firstSegment);
      if (change.purgedSegment !== null) {
        deleteSegment.run(change.purgedSegment);
        deletePages.run(...getPageKeyRange(change.purgedSegment));
      }
    },
  };
}

function toSearchableMessage(row: rows.Row): SearchableMessage {
  return {
    id: rows.readText(row, 'id'),
    accountId: rows.readInteger(row, 'account_id'),
    to: rows.readText(row, 'to'),
    recipient: rows.readTextOrNull(row, 'recipient'),
    from: rows.readText(row, 'from'),
    subject: rows.readText(row, 'subject'),
  };
}

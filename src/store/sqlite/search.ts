/** The search of the embedded database and its index, which is the FTS5 table `search`. */
import type { DatabaseSync } from 'node:sqlite';
import {
  type FoundMessage,
  getOutcomeText,
  type StateFilter,
  type StoredMessageSummary,
  VERBS_WITHOUT_OUTCOME,
} from '../../model/message.ts';
import { toSeq } from '../rules/messages.ts';
import * as rows from '../rules/rows.ts';
import { executeSearch, type IdRange, type RowFilter, type RowIndex, type SearchSource } from '../search/execute.ts';
import type { MessageSearch, MessageSearchResult, SearchableMessage } from '../search/query.ts';
import { formatTerms } from '../search/terms.ts';

type SearchedMessage = StoredMessageSummary & SearchableMessage;

const COLUMNS = 'id, account_id, state, "to", recipient, "from", subject, accepted_at';
const SQL_VERBS_WITHOUT_OUTCOME = VERBS_WITHOUT_OUTCOME.map((verb) => `'${verb}'`).join(', ');
/** FTS5 treats a quoted text as a term. */
const EXPRESSION = { quote: '"', prefix: '*', and: ' AND ', or: ' OR ' };
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
  const selectBlocks = database.prepare('SELECT number, first, past FROM search_block ORDER BY number DESC');
  const selectCandidates = database.prepare(
    `SELECT m.id FROM search JOIN mail_request m ON m.seq = search.rowid
     WHERE search MATCH ? AND search.rowid >= ? AND search.rowid < ? ORDER BY search.rowid DESC LIMIT ?`,
  );

  function selectRows({ first, end }: IdRange, filter: RowFilter, limit: number): SearchedMessage[] {
    const sql = `SELECT ${COLUMNS} FROM mail_request WHERE seq >= ? AND seq < ? ${toConditions(filter)} ORDER BY seq DESC LIMIT ?`;
    return database.prepare(sql).all(toSeq(first), toSeq(end), limit).map(toSearchedMessage);
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
    readRows: async (range, filter, limit) => selectRows(range, filter, limit),
    async readIndexedRows(index, { first, end }, limit) {
      const sql = `SELECT * FROM (${buildIndexQuery(index, COLUMNS, 'ORDER BY seq DESC')}) ORDER BY id DESC LIMIT ?3`;
      return database.prepare(sql).all(toSeq(first), toSeq(end), limit).map(toSearchedMessage);
    },
    async countIndexed(index, { first, end }, maxCount) {
      const sql = `SELECT count(*) AS n FROM (SELECT 1 FROM (${buildIndexQuery(index, '1', '')}) LIMIT ?3)`;
      return rows.readInteger(database.prepare(sql).get(toSeq(first), toSeq(end), maxCount) ?? {}, 'n');
    },
    async readIndexedIds(index, { first, end }) {
      const found = database.prepare(buildIndexQuery(index, 'id', '')).all(toSeq(first), toSeq(end), -1);
      return found.map((row) => rows.readText(row, 'id'));
    },
    async findNthId({ first, end }, count) {
      const row = selectNthId.get(toSeq(first), toSeq(end), count - 1);
      return row === undefined ? null : rows.readText(row, 'id');
    },
    listBlocks: async () =>
      selectBlocks.all().map((row) => ({
        number: rows.readInteger(row, 'number'),
        first: rows.readText(row, 'first'),
        end: rows.readText(row, 'past'),
      })),
    async findCandidates(block, terms, { first, end }, limit) {
      const expression = formatTerms(block, terms, EXPRESSION);
      const found = selectCandidates.all(expression, toSeq(first), toSeq(end), limit);
      return found.map((row) => rows.readText(row, 'id'));
    },
    async findByIds(ids, filter) {
      const select = database.prepare(
        `SELECT ${COLUMNS} FROM mail_request WHERE seq = ? AND id = ? ${toConditions(filter)}`,
      );
      return ids.flatMap((id) => {
        const row = select.get(toSeq(id), id);
        return row === undefined ? [] : [toSearchedMessage(row)];
      });
    },
    async readOutcomeTexts(ids) {
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
    async searchMessages(search: MessageSearch, budgetMs: number): Promise<MessageSearchResult> {
      const deadline = monotonic() + budgetMs;
      // The transaction gives the whole search one snapshot.
      database.exec('BEGIN');
      try {
        const { messages, searchedTo } = await executeSearch(source, search, () => monotonic() >= deadline);
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

function toSearchedMessage(row: rows.Row): SearchedMessage {
  return { ...rows.toMessageSummary(row), recipient: rows.readTextOrNull(row, 'recipient') };
}

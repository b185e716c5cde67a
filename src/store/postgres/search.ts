/**
 * Implements the search on PostgreSQL: the queries of a search, and the maintenance of the search index. An index step
 * is one transaction under an advisory lock, on a separate thread and connection (index-worker.ts).
 */

import { type FoundMessage, getOutcomeText, type StateFilter, VERBS_WITHOUT_OUTCOME } from '../../model/message.ts';
import type { MessageStore } from '../contract.ts';
import { StoreError } from '../error.ts';
import { getMinIdOfSeq, toSeq } from '../rules/messages.ts';
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
  getPageKeyRange,
  type IdRange,
  MIN_SEQ,
  type RowFilter,
  type RowIndex,
  runAsync,
  type SearchSource,
  toSeqsKey,
  toTermsKey,
} from '../search/source.ts';
import type { Database, Row, Session, Statement } from './session.ts';

const OPEN_STATES: readonly StateFilter[] = ['queued', 'deferred', 'sending', 'uncertain'];
const COLUMNS = 'm.id, m.account_id, m."to", m.recipient, m."from", m.subject';
const JOIN_QUEUE = 'LEFT JOIN queue q ON q.id = m.id AND q.account_id = m.account_id';
const STATE_EXPRESSION = 'coalesce(q.state, m.state)';
/** The condition that the queue row of a `deferred` message meets. */
const IS_DEFERRED = `q.state = 'queued' AND q.lane = 1`;
// An empty array matches every message.
const FILTER_CONDITION = `($3::int[] = '{}' OR m.account_id = ANY($3)) AND ($4::text[] = '{}' OR ${STATE_EXPRESSION} = ANY($4) OR ('deferred' = ANY($4) AND ${IS_DEFERRED}))
    AND ($5::text[] = '{}' OR m.failure_class = ANY($5)) AND ($6::text[] = '{}' OR m.failure_category = ANY($6))`;
const EXCLUDED_VERBS = VERBS_WITHOUT_OUTCOME.map((verb) => `'${verb}'`).join(', ');

const SELECT_NTH_ID: Statement = {
  name: 'search_nth',
  text: 'SELECT id FROM mail_request WHERE id >= $1::uuid AND id < $2::uuid ORDER BY id DESC LIMIT 1 OFFSET $3',
};
/**
 * Looks up messages by the least and the greatest id of each sequence number. ORDER BY and LIMIT make the planner use
 * the primary key for each range. Without these clauses, the planner estimates that a range with unknown bounds
 * contains a ninth of the table.
 */
const MESSAGES_BY_SEQUENCE = `unnest($1::uuid[], $2::uuid[]) AS r(least, greatest)
    CROSS JOIN LATERAL (SELECT * FROM mail_request WHERE id >= r.least AND id <= r.greatest ORDER BY id LIMIT 100) m`;
const SELECT_BY_SEQUENCE: Statement = {
  name: 'search_by_sequence',
  text: `SELECT ${COLUMNS} FROM ${MESSAGES_BY_SEQUENCE} WHERE ($3::int[] = '{}' OR m.account_id = ANY($3))`,
};
const SELECT_BY_SEQUENCE_FILTERED: Statement = {
  name: 'search_by_sequence_filtered',
  text: `SELECT ${COLUMNS} FROM ${MESSAGES_BY_SEQUENCE} ${JOIN_QUEUE} WHERE ${FILTER_CONDITION}`,
};
/** Reads the current rows at the end of the search, because a state may have changed during the search. */
const SELECT_SUMMARIES: Statement = {
  name: 'search_summaries',
  text: `SELECT m.id, m.account_id, ${STATE_EXPRESSION} AS state, m."to", m."from", m.subject, m.accepted_at,
      coalesce(q.attempts, m.attempts) AS attempts, q.lane, last.at, o.verb, o.by, o.detail, o.failure
    FROM mail_request m ${JOIN_QUEUE}
      LEFT JOIN LATERAL (SELECT e.at FROM event e WHERE e.id = m.id ORDER BY e.n DESC LIMIT 1) last ON true
      LEFT JOIN LATERAL (SELECT e.verb, e.by, e.detail, e.failure FROM event e
        WHERE e.id = m.id AND e.verb NOT IN (${EXCLUDED_VERBS}) ORDER BY e.n DESC LIMIT 1) o ON true
    WHERE m.id = ANY($1::uuid[]) ORDER BY m.id DESC`,
};
const SELECT_OUTCOMES: Statement = {
  name: 'search_outcomes',
  text: `SELECT i.id, o.* FROM unnest($1::uuid[]) AS i(id) CROSS JOIN LATERAL (
      SELECT e.verb, e.by, e.detail, e.failure FROM event e
      WHERE e.id = i.id AND e.verb NOT IN (${EXCLUDED_VERBS}) ORDER BY e.n DESC LIMIT 1) o`,
};
const SELECT_SEGMENTS: Statement = {
  name: 'search_segments',
  text: `SELECT number, first, past, mails FROM search_segment
    WHERE replaced_at IS NULL AND past > $1 AND first <= $2 ORDER BY first DESC`,
};
const SELECT_DIRECTORIES: Statement = {
  name: 'search_directories',
  text: 'SELECT number, directory FROM search_segment WHERE number = ANY($1::bigint[])',
};
const SELECT_PAGES: Statement = {
  name: 'search_pages',
  text: 'SELECT key, page FROM search_page WHERE key = ANY($1::bigint[])',
};
/** Used in place of the sequence number of the greatest possible id, because that number is not a safe integer. */
const MAX_SEQ = Number.MAX_SAFE_INTEGER;

/**
 * Creates the search operations. `monotonic` returns the monotonic time in ms, which limits the duration of searches.
 */
export function prepareSearch(database: Database, monotonic: () => number): Pick<MessageStore, 'searchMessages'> {
  const directories = new DirectoryCache();

  async function selectRows(
    { first, end: rangeEnd }: IdRange,
    filter: RowFilter,
    limit: number,
  ): Promise<readonly SearchableMessage[]> {
    return (await database.query(selectRowsStatement(filter), [first, rangeEnd, limit])).map(toSearchableMessage);
  }

  async function selectByRanges(leastIds: readonly string[], greatestIds: readonly string[], filter: RowFilter) {
    const { accountIds, states, failureClasses, failureCategories } = filter;
    const messageRows =
      states.length + failureClasses.length + failureCategories.length === 0
        ? await database.query(SELECT_BY_SEQUENCE, [leastIds, greatestIds, accountIds])
        : await database.query(SELECT_BY_SEQUENCE_FILTERED, [
            ...[leastIds, greatestIds, accountIds],
            ...[states, failureClasses, failureCategories],
          ]);
    return messageRows.map(toSearchableMessage).sort((one, other) => (one.id < other.id ? 1 : -1));
  }

  const source: SearchSource<SearchableMessage> = {
    findById: async (id, filter) => (await selectByRanges([id], [id], filter))[0] ?? null,
    readRows: selectRows,
    async readIndexedRows(index, { first, end: rangeEnd }, limit) {
      const parts = buildIndexParts(index).map(
        (part) => `(${part.buildSelect(COLUMNS)} ORDER BY ${part.alias}.id DESC LIMIT $3)`,
      );
      const text = `SELECT * FROM (${parts.join(' UNION ALL ')}) AS found ORDER BY id DESC LIMIT $3`;
      return (await database.query({ name: '', text }, [first, rangeEnd, limit])).map(toSearchableMessage);
    },
    async countIndexed(index, { first, end: rangeEnd }, maxCount) {
      const parts = buildIndexParts(index).map((part) => `(${part.selectIds} LIMIT $3)`);
      const text = `SELECT count(*)::int AS n FROM (SELECT 1 FROM (${parts.join(' UNION ALL ')}) AS part LIMIT $3) AS found`;
      const [row = {}] = await database.query({ name: '', text }, [first, rangeEnd, maxCount]);
      return rows.readInteger(row, 'n');
    },
    async readIndexedSeqs(index, { first, end: rangeEnd }) {
      const text = buildIndexParts(index)
        .map((part) => part.selectIds)
        .join(' UNION ALL ');
      return (await database.query({ name: '', text }, [first, rangeEnd])).map((row) =>
        toSeq(rows.readText(row, 'id')),
      );
    },
    async findNthId({ first, end: rangeEnd }, count) {
      const [row] = await database.query(SELECT_NTH_ID, [first, rangeEnd, count - 1]);
      return row === undefined ? null : rows.readText(row, 'id');
    },
    async findSegments({ first, end: rangeEnd }) {
      const values = [toSeq(first), Math.min(toSeq(rangeEnd), MAX_SEQ)];
      return (await database.query(SELECT_SEGMENTS, values)).map((row) => ({
        number: rows.readInteger(row, 'number'),
        first: rows.readInteger(row, 'first'),
        end: rows.readInteger(row, 'past'),
        messageCount: rows.readInteger(row, 'mails'),
      }));
    },
    async readDirectories(numbers) {
      const missingNumbers = directories.listMissing(numbers);
      const directoryRows =
        missingNumbers.length === 0 ? [] : await database.query(SELECT_DIRECTORIES, [missingNumbers]);
      return directories.update(
        numbers,
        directoryRows.map((row) => [rows.readInteger(row, 'number'), requireBytes(row.directory)]),
      );
    },
    async readPages(keys) {
      const pageRows = keys.length === 0 ? [] : await database.query(SELECT_PAGES, [keys]);
      return new Map(pageRows.map((row) => [rows.readInteger(row, 'key'), requireBytes(row.page)]));
    },
    findBySeqs: (seqs, filter) => selectByRanges(seqs.map(getMinIdOfSeq), seqs.map(getMaxIdOfSeq), filter),
    async readOutcomeTexts(ids) {
      const outcomeRows = await database.query(SELECT_OUTCOMES, [ids]);
      return new Map(
        outcomeRows.flatMap((row) => {
          const text = getOutcomeText(rows.toLastOutcome(row));
          return text === null ? [] : [[rows.readText(row, 'id'), text] as const];
        }),
      );
    },
  };

  return {
    async searchMessages(search, budgetMs) {
      const deadline = monotonic() + budgetMs;
      const { messages, searchedTo } = await runAsync(executeSearch(source, search, () => monotonic() >= deadline));
      const summaryRows =
        messages.length === 0 ? [] : await database.query(SELECT_SUMMARIES, [messages.map(({ id }) => id)]);
      return { messages: summaryRows.map(toFoundMessage), searchedTo };
    },
  };
}

function toFoundMessage(row: Row): FoundMessage {
  const summary = rows.toMessageSummary(row);
  const lastOutcome = rows.readTextOrNull(row, 'verb') === null ? null : rows.toLastOutcome(row);
  return { ...summary, ...rows.toFoundMembers(row, row, summary), lastOutcome };
}

/** The queries for the rows with one value of an index, within a range of ids (`$1` inclusive, `$2` exclusive). */
interface IndexPart {
  /** The alias of the table whose index is sorted by id. */
  readonly alias: 'q' | 'm';
  /** Returns the query that selects the given columns of `mail_request m`. */
  readonly buildSelect: (columns: string) => string;
  readonly selectIds: string;
}

/**
 * Returns the queries for each value of an index. Values are part of the SQL text, because PostgreSQL cannot use a
 * partial index if the value is a parameter.
 */
function buildIndexParts(index: RowIndex): readonly IndexPart[] {
  switch (index.kind) {
    case 'state':
      return index.values.map(buildStatePart);
    case 'failure-class':
      return index.values.map((value) => buildMessagePart(`m.failure_class = '${value}'`));
    case 'failure-category':
      return index.values.map((value) => buildMessagePart(`m.failure_category = '${value}'`));
  }
}

function buildMessagePart(condition: string): IndexPart {
  const from = `FROM mail_request m WHERE m.id >= $1::uuid AND m.id < $2::uuid AND ${condition}`;
  return { alias: 'm', buildSelect: (columns) => `SELECT ${columns} ${from}`, selectIds: `SELECT m.id ${from}` };
}

function buildStatePart(state: StateFilter): IndexPart {
  if (!OPEN_STATES.includes(state)) return buildMessagePart(`m.state = '${state}'`);
  const range = 'q.id >= $1::uuid AND q.id < $2::uuid';
  const joinClause = 'JOIN mail_request m ON m.id = q.id AND m.account_id = q.account_id';
  if (state === 'queued' || state === 'deferred') {
    const condition = `${state === 'queued' ? `q.state = 'queued'` : IS_DEFERRED} AND ${range}`;
    return {
      alias: 'q',
      buildSelect: (columns) => `SELECT ${columns} FROM queue q ${joinClause} WHERE ${condition}`,
      selectIds: `SELECT q.id FROM queue q WHERE ${condition}`,
    };
  }
  // The planner uses the partial index of leased and uncertain rows. The rows of these states are few, and they are
  // materialized and then sorted. Otherwise the planner would read the whole queue in order of id.
  const fromClause = `FROM queue q WHERE q.state = '${state}' AND q.state <> 'queued'`;
  return {
    alias: 'q',
    buildSelect: (columns) =>
      `WITH o AS MATERIALIZED (SELECT q.id, q.account_id ${fromClause}) SELECT ${columns} FROM o q ${joinClause} WHERE ${range}`,
    selectIds: `SELECT q.id ${fromClause} AND ${range}`,
  };
}

/**
 * Selects the rows of a range. The caller limits the range to a batch of rows. The filter values are part of the SQL
 * text. This is safe, because they are numbers or belong to fixed sets. The row in `queue` is read only if the filter
 * contains an open state.
 */
function selectRowsStatement({ accountIds, states, failureClasses, failureCategories }: RowFilter): Statement {
  const toSqlList = (values: readonly string[]) => values.map((value) => `'${value}'`).join(', ');
  const needsQueue = states.some((state) => OPEN_STATES.includes(state));
  const stateConditions = [
    ...(states.length === 0 ? [] : [`${needsQueue ? STATE_EXPRESSION : 'm.state'} IN (${toSqlList(states)})`]),
    ...(states.includes('deferred') ? [`(${IS_DEFERRED})`] : []),
  ];
  const conditions = [
    accountIds.length === 0 ? '' : `AND m.account_id IN (${accountIds.join(', ')})`,
    stateConditions.length === 0 ? '' : `AND (${stateConditions.join(' OR ')})`,
    failureClasses.length === 0 ? '' : `AND m.failure_class IN (${toSqlList(failureClasses)})`,
    failureCategories.length === 0 ? '' : `AND m.failure_category IN (${toSqlList(failureCategories)})`,
  ].join(' ');
  return {
    // Statements with conditions are not prepared, because there are too many combinations.
    name: conditions.trim() === '' ? 'search_rows' : '',
    text: `SELECT ${COLUMNS} FROM mail_request m ${needsQueue ? JOIN_QUEUE : ''}
      WHERE m.id >= $1::uuid AND m.id < $2::uuid ${conditions} ORDER BY m.id DESC LIMIT $3`,
  };
}

function getMaxIdOfSeq(seq: number): string {
  return `${getMinIdOfSeq(seq).slice(0, 19)}ffff-ffffffffffff`;
}

function requireBytes(value: unknown): Uint8Array {
  if (value instanceof Uint8Array) return value;
  throw new StoreError('a page of the search index does not contain bytes: the database is damaged. Restore a backup.');
}

function toSearchableMessage(row: Row): SearchableMessage {
  return {
    id: rows.readText(row, 'id'),
    accountId: rows.readInteger(row, 'account_id'),
    to: rows.readText(row, 'to'),
    recipient: rows.readTextOrNull(row, 'recipient'),
    from: rows.readText(row, 'from'),
    subject: rows.readText(row, 'subject'),
  };
}

/** The key of the advisory lock of index steps. No other code and no other software uses this key. */
const LOCK_ID = 0x50524453;

const ROWS_PER_STATEMENT = 2_048;

const PAGES_PER_STATEMENT = 64;

const TRY_LOCK: Statement = { name: 'index_lock', text: 'SELECT pg_try_advisory_xact_lock($1) AS acquired' };
const SELECT_ALL_SEGMENTS: Statement = {
  name: 'index_segments',
  text: 'SELECT number, first, past, mails, built_at, looked, replaced_at FROM search_segment ORDER BY first DESC',
};
const COUNT_MESSAGES: Statement = {
  name: 'index_count',
  text: `SELECT count(*)::int AS n FROM (SELECT 1 FROM mail_request WHERE id >= $1::uuid AND id < $2::uuid LIMIT $3) AS found`,
};
const INDEXED_COLUMNS = 'id, account_id, "to", recipient, "from", subject';
const SELECT_OLDEST: Statement = {
  name: 'index_oldest',
  text: `SELECT ${INDEXED_COLUMNS} FROM mail_request WHERE id >= $1::uuid AND id < $2::uuid ORDER BY id LIMIT $3`,
};
const SELECT_NEWEST: Statement = {
  name: 'index_newest',
  text: `SELECT ${INDEXED_COLUMNS} FROM mail_request WHERE id >= $1::uuid AND id < $2::uuid ORDER BY id DESC LIMIT $3`,
};
const ADD_SEGMENT: Statement = {
  name: 'index_add',
  text: `INSERT INTO search_segment (first, past, mails, built_at, looked, directory)
    VALUES ($1, $2, $3, $4, false, $5) RETURNING number`,
};
const ADD_PAGES: Statement = {
  name: 'index_add_pages',
  text: 'INSERT INTO search_page (key, page) SELECT * FROM unnest($1::bigint[], $2::bytea[])',
};
const REPLACE_SEGMENTS: Statement = {
  name: 'index_replace',
  text: 'UPDATE search_segment SET replaced_at = $1 WHERE number = ANY($2::bigint[])',
};
const MARK_VERIFIED: Statement = {
  name: 'index_mark_checked',
  text: 'UPDATE search_segment SET looked = true WHERE number = $1',
};
const EXTEND_SEGMENT: Statement = {
  name: 'index_extend',
  text: 'UPDATE search_segment SET first = $1 WHERE number = $2',
};
const PURGE_SEGMENT: Statement = { name: 'index_purge', text: 'DELETE FROM search_segment WHERE number = $1' };
const PURGE_PAGES: Statement = {
  name: 'index_purge_pages',
  text: 'DELETE FROM search_page WHERE key >= $1 AND key < $2',
};

export function runIndexStep(database: Database, step: IndexStep): Promise<IndexProgress> {
  return database.transaction(async (session) => {
    const [lock] = await session.query(TRY_LOCK, [LOCK_ID]);
    if (lock?.acquired !== true) return { hasChanged: false, unindexedCount: 0, indexedCount: 0 };
    const { change, progress } = await runAsync(planIndexStep(createIndexSource(session), step));
    if (change !== null) await writeChange(session, change);
    return progress;
  });
}

function createIndexSource(session: Session): IndexSource {
  return {
    async listSegments() {
      return (await session.query(SELECT_ALL_SEGMENTS, [])).map((row) => ({
        number: rows.readInteger(row, 'number'),
        first: rows.readInteger(row, 'first'),
        end: rows.readInteger(row, 'past'),
        messageCount: rows.readInteger(row, 'mails'),
        builtAt: rows.readInteger(row, 'built_at'),
        isVerified: row.looked === true,
        replacedAt: rows.readIntegerOrNull(row, 'replaced_at'),
      }));
    },
    async countMessages(first, past, maxCount) {
      const [row = {}] = await session.query(COUNT_MESSAGES, [getMinIdOfSeq(first), getMinIdOfSeq(past), maxCount]);
      return rows.readInteger(row, 'n');
    },
    async readMessages(first, end, limit, side) {
      const messages = [];
      let [from, to] = [getMinIdOfSeq(first), getMinIdOfSeq(end)];
      while (messages.length < limit) {
        const batchSize = Math.min(ROWS_PER_STATEMENT, limit - messages.length);
        const batch = (
          await session.query(side === 'oldest' ? SELECT_OLDEST : SELECT_NEWEST, [from, to, batchSize])
        ).map(toSearchableMessage);
        messages.push(...batch);
        const lastId = batch.at(-1)?.id;
        if (batch.length < batchSize || lastId === undefined) break;
        if (side === 'oldest') from = getNextId(lastId);
        else to = lastId;
      }
      return side === 'oldest' ? messages : messages.reverse();
    },
  };
}

/** Returns the least id that is greater than `id`. */
function getNextId(id: string): string {
  const nextNumber = BigInt(`0x${id.replaceAll('-', '')}`) + 1n;
  const hex = nextNumber.toString(16).padStart(32, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

async function writeChange(session: Session, change: IndexChange): Promise<void> {
  for (const { first, end, messageCount, directory, termPages, seqPages } of change.addedSegments) {
    const [row = {}] = await session.query(ADD_SEGMENT, [first, end, messageCount, change.at, Buffer.from(directory)]);
    const segmentNumber = rows.readInteger(row, 'number');
    const pages = [
      ...termPages.map((page, index) => [toTermsKey(segmentNumber, index), Buffer.from(page)] as const),
      ...seqPages.map((page, index) => [toSeqsKey(segmentNumber, index), Buffer.from(page)] as const),
    ];
    for (let startIndex = 0; startIndex < pages.length; startIndex += PAGES_PER_STATEMENT) {
      const batch = pages.slice(startIndex, startIndex + PAGES_PER_STATEMENT);
      await session.query(ADD_PAGES, [batch.map(([key]) => key), batch.map(([, page]) => page)]);
    }
  }
  if (change.replacedSegments.length > 0) await session.query(REPLACE_SEGMENTS, [change.at, change.replacedSegments]);
  if (change.verifiedSegment !== null) await session.query(MARK_VERIFIED, [change.verifiedSegment]);
  if (change.firstSegment !== null) await session.query(EXTEND_SEGMENT, [MIN_SEQ, change.firstSegment]);
  if (change.purgedSegment !== null) {
    await session.query(PURGE_SEGMENT, [change.purgedSegment]);
    await session.query(PURGE_PAGES, getPageKeyRange(change.purgedSegment));
  }
}

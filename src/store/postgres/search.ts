/** The search of PostgreSQL and its index, which is the GIN index of the table `search`. */
import { type FoundMessage, getOutcomeText, type StateFilter, VERBS_WITHOUT_OUTCOME } from '../../model/message.ts';
import type { MessageStore } from '../contract.ts';
import * as rows from '../rules/rows.ts';
import { executeSearch, type RowFilter, type RowIndex, type SearchSource } from '../search/execute.ts';
import { type IndexProgress, type IndexStep, planIndexStep, writeIndexChange } from '../search/indexer.ts';
import type { SearchableMessage } from '../search/query.ts';
import { formatTerms } from '../search/terms.ts';
import type { Database, Row, Statement } from './session.ts';

const OPEN_STATES: readonly StateFilter[] = ['queued', 'deferred', 'sending', 'uncertain'];
const COLUMNS = 'm.id, m.account_id, m."to", m.recipient, m."from", m.subject';
const JOIN_QUEUE = 'LEFT JOIN queue q ON q.id = m.id AND q.account_id = m.account_id';
const STATE_EXPRESSION = 'coalesce(q.state, m.state)';
/** The condition that the queue row of a `deferred` message meets. */
const IS_DEFERRED = `q.state = 'queued' AND q.lane = 1`;
// An empty array matches every message.
const FILTER_CONDITION = `($2::int[] = '{}' OR m.account_id = ANY($2)) AND ($3::text[] = '{}' OR ${STATE_EXPRESSION} = ANY($3) OR ('deferred' = ANY($3) AND ${IS_DEFERRED}))
    AND ($4::text[] = '{}' OR m.failure_class = ANY($4)) AND ($5::text[] = '{}' OR m.failure_category = ANY($5))`;
const EXCLUDED_VERBS = VERBS_WITHOUT_OUTCOME.map((verb) => `'${verb}'`).join(', ');

const SELECT_NTH_ID =
  'SELECT id FROM mail_request WHERE id >= $1::uuid AND id < $2::uuid ORDER BY id DESC LIMIT 1 OFFSET $3';
/** LIMIT makes the planner look up each id in the primary key. */
const MESSAGES_BY_ID =
  'unnest($1::uuid[]) AS r(id) CROSS JOIN LATERAL (SELECT * FROM mail_request WHERE id = r.id LIMIT 1) m';
const SELECT_BY_ID = `SELECT ${COLUMNS} FROM ${MESSAGES_BY_ID} WHERE ($2::int[] = '{}' OR m.account_id = ANY($2)) ORDER BY m.id DESC`;
const SELECT_BY_ID_FILTERED = `SELECT ${COLUMNS} FROM ${MESSAGES_BY_ID} ${JOIN_QUEUE} WHERE ${FILTER_CONDITION} ORDER BY m.id DESC`;
/** Reads the current rows at the end of the search, because a state may have changed during the search. */
const SELECT_SUMMARIES = `SELECT m.id, m.account_id, ${STATE_EXPRESSION} AS state, m."to", m."from", m.subject, m.accepted_at,
      coalesce(q.attempts, m.attempts) AS attempts, q.lane, last.at, o.verb, o.by, o.detail, o.failure
    FROM mail_request m ${JOIN_QUEUE}
      LEFT JOIN LATERAL (SELECT e.at FROM event e WHERE e.id = m.id ORDER BY e.n DESC LIMIT 1) last ON true
      LEFT JOIN LATERAL (SELECT e.verb, e.by, e.detail, e.failure FROM event e
        WHERE e.id = m.id AND e.verb NOT IN (${EXCLUDED_VERBS}) ORDER BY e.n DESC LIMIT 1) o ON true
    WHERE m.id = ANY($1::uuid[]) ORDER BY m.id DESC`;
const SELECT_OUTCOMES = `SELECT i.id, o.* FROM unnest($1::uuid[]) AS i(id) CROSS JOIN LATERAL (
      SELECT e.verb, e.by, e.detail, e.failure FROM event e
      WHERE e.id = i.id AND e.verb NOT IN (${EXCLUDED_VERBS}) ORDER BY e.n DESC LIMIT 1) o`;
const SELECT_BLOCKS = 'SELECT number, first, past FROM search_block ORDER BY number DESC';
/** The planner must not read the table in order of id. */
const SELECT_CANDIDATES = `WITH found AS MATERIALIZED (SELECT id FROM search WHERE terms @@ $1::tsquery)
    SELECT id FROM found WHERE id >= $2::uuid AND id < $3::uuid ORDER BY id DESC LIMIT $4`;
const EXPRESSION = { quote: "'", prefix: ':*', and: ' & ', or: ' | ' };

/**
 * Creates the search operations. `monotonic` returns the monotonic time in ms, which limits the duration of searches.
 */
export function prepareSearch(database: Database, monotonic: () => number): Pick<MessageStore, 'searchMessages'> {
  const listIds = (found: readonly Row[]) => found.map((row) => rows.readText(row, 'id'));

  const source: SearchSource<SearchableMessage> = {
    async readRows({ first, end }, filter, limit) {
      return (await database.query(selectRowsStatement(filter), [first, end, limit])).map(rows.toSearchableMessage);
    },
    async findByIds(ids, { accountIds, states, failureClasses, failureCategories }) {
      const found =
        states.length + failureClasses.length + failureCategories.length === 0
          ? await database.query(SELECT_BY_ID, [ids, accountIds])
          : await database.query(SELECT_BY_ID_FILTERED, [ids, accountIds, states, failureClasses, failureCategories]);
      return found.map(rows.toSearchableMessage);
    },
    async readIndexedRows(index, { first, end }, limit) {
      const parts = buildIndexParts(index).map(
        (part) => `(${part.buildSelect(COLUMNS)} ORDER BY ${part.alias}.id DESC LIMIT $3)`,
      );
      const text = `SELECT * FROM (${parts.join(' UNION ALL ')}) AS found ORDER BY id DESC LIMIT $3`;
      return (await database.query({ name: '', text }, [first, end, limit])).map(rows.toSearchableMessage);
    },
    async countIndexed(index, { first, end }, maxCount) {
      const parts = buildIndexParts(index).map((part) => `(${part.selectIds} LIMIT $3)`);
      const text = `SELECT count(*)::int AS n FROM (SELECT 1 FROM (${parts.join(' UNION ALL ')}) AS part LIMIT $3) AS found`;
      const [row = {}] = await database.query({ name: '', text }, [first, end, maxCount]);
      return rows.readInteger(row, 'n');
    },
    async readIndexedIds(index, { first, end }) {
      const text = buildIndexParts(index)
        .map((part) => part.selectIds)
        .join(' UNION ALL ');
      return listIds(await database.query({ name: '', text }, [first, end]));
    },
    async findNthId({ first, end }, count) {
      return listIds(await database.query(SELECT_NTH_ID, [first, end, count - 1]))[0] ?? null;
    },
    async listBlocks() {
      return (await database.query(SELECT_BLOCKS)).map((row) => ({
        number: rows.readInteger(row, 'number'),
        first: rows.readText(row, 'first'),
        end: rows.readText(row, 'past'),
      }));
    },
    async findCandidates(block, terms, { first, end }, limit) {
      return listIds(
        await database.query(SELECT_CANDIDATES, [formatTerms(block, terms, EXPRESSION), first, end, limit]),
      );
    },
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
      const { messages, searchedTo } = await executeSearch(source, search, () => monotonic() >= deadline);
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

/** The key of the advisory lock of index steps. No other code and no other software uses this key. */
const LOCK_ID = 0x50524453;
const TRY_LOCK = 'SELECT pg_try_advisory_xact_lock($1) AS acquired';
/** Runs a step in one transaction, unless another node runs a step. */
export function runIndexStep(database: Database, step: IndexStep): Promise<IndexProgress> {
  return database.transaction(async (session) => {
    const [lock] = await session.query(TRY_LOCK, [LOCK_ID]);
    if (lock?.acquired !== true) return { hasChanged: false, unindexedCount: 0, indexedCount: 0 };
    const { change, progress } = await planIndexStep(session, step);
    if (change !== null) await writeIndexChange(session, change);
    return progress;
  });
}

/**
 * The rows and the index that a search reads. The index is the FTS5 table `search` on SQLite and the GIN index of the
 * table `search` on PostgreSQL. Values of filters are part of the SQL text, because neither database uses a partial
 * index for a parameter.
 */
import { type FoundMessage, getOutcomeText, type StateFilter, VERBS_WITHOUT_OUTCOME } from '../../model/message.ts';
import { DEFAULT_ROUTE } from '../../model/route.ts';
import { MESSAGE_KEYS } from '../rules/messages.ts';
import * as rows from '../rules/rows.ts';
import type { Row, Statement, Transaction } from '../transaction.ts';
import { executeSearch, type RowFilter, type RowIndex, type SearchSource } from './execute.ts';
import type { MessageSearch, MessageSearchResult, SearchableMessage } from './query.ts';
import { formatTerms } from './terms.ts';

const COLUMNS = 'm.id, m.account_id, m."to", m.recipient, m."from", m.subject';
const OPEN_STATES: readonly StateFilter[] = ['queued', 'deferred', 'sending', 'uncertain'];
const HAS_OUTCOME = `e.verb NOT IN (${VERBS_WITHOUT_OUTCOME.map((verb) => `'${verb}'`).join(', ')})`;
const JOIN_QUEUE = 'JOIN queue q ON q.id = m.id AND q.account_id = m.account_id';

/** What differs. While a message is open on PostgreSQL, its row in `queue` has its state. */
const DIALECTS = {
  sqlite: {
    ...MESSAGE_KEYS.sqlite,
    listed: 'json_each($1) AS r CROSS JOIN mail_request m ON m.seq = r.value',
    listedIds: 'json_each($1) AS r CROSS JOIN mail_request m ON m.seq = r.value',
    joinQueue: '',
    state: 'm.state',
    attempts: 'm.attempts',
    route: 'm.route',
    lane: 'm.lane',
    dueAt: 'm.due_at',
    isDeferred: `m.state = 'queued' AND m.lane = 1`,
    joinOutcome: `LEFT JOIN event o ON o.seq = m.seq AND o.n = (
      SELECT e.n FROM event e WHERE e.seq = m.seq AND ${HAS_OUTCOME} ORDER BY e.n DESC LIMIT 1)`,
    selectCandidates: `SELECT m.id FROM search JOIN mail_request m ON m.seq = search.rowid
      WHERE search MATCH $1 AND search.rowid >= $2 AND search.rowid < $3 ORDER BY search.rowid DESC LIMIT $4`,
    /** FTS5 treats a quoted text as a term. */
    expression: { quote: '"', prefix: '*', and: ' AND ', or: ' OR ' },
  },
  postgres: {
    ...MESSAGE_KEYS.postgres,
    // LIMIT makes the planner look up each id in the primary key.
    listed: 'unnest($1::uuid[]) AS r(id) CROSS JOIN LATERAL (SELECT * FROM mail_request WHERE id = r.id LIMIT 1) m',
    listedIds: 'unnest($1::uuid[]) AS m(id)',
    joinQueue: `LEFT ${JOIN_QUEUE}`,
    state: 'coalesce(q.state, m.state)',
    attempts: 'coalesce(q.attempts, m.attempts)',
    route: 'coalesce(q.route, m.route)',
    lane: 'q.lane',
    dueAt: 'q.due_at',
    isDeferred: `q.state = 'queued' AND q.lane = 1`,
    joinOutcome: `LEFT JOIN LATERAL (SELECT e.verb, e.by, e.detail, e.failure FROM event e
      WHERE e.id = m.id AND ${HAS_OUTCOME} ORDER BY e.n DESC LIMIT 1) o ON true`,
    // The planner must not read the table in order of id.
    selectCandidates: `WITH found AS MATERIALIZED (SELECT id FROM search WHERE terms @@ $1::tsquery)
      SELECT id FROM found WHERE id >= $2 AND id < $3 ORDER BY id DESC LIMIT $4`,
    expression: { quote: "'", prefix: ':*', and: ' & ', or: ' | ' },
  },
} as const;
type Dialect = (typeof DIALECTS)[Transaction['dialect']];

/** `monotonic` returns the time in ms, for the time limit `budgetMs`. */
export async function searchMessages(
  tx: Transaction,
  search: MessageSearch,
  budgetMs: number,
  monotonic: () => number,
): Promise<MessageSearchResult> {
  const deadline = monotonic() + budgetMs;
  const { messages, searchedTo } = await executeSearch(createSource(tx), search, () => monotonic() >= deadline);
  const ids = messages.map(({ id }) => id);
  return { messages: ids.length === 0 ? [] : await readFoundMessages(tx, ids), searchedTo };
}

/** Reads the current rows at the end of the search, because a state may have changed during the search. */
async function readFoundMessages(tx: Transaction, ids: readonly string[]): Promise<readonly FoundMessage[]> {
  const { key, toKey, listed, joinQueue, state, attempts, route, lane, dueAt, joinOutcome } = DIALECTS[tx.dialect];
  const found = await tx.query(
    `SELECT m.id, m.account_id, ${state} AS state, m."to", m."from", m.subject, m.accepted_at, ${attempts} AS attempts,
       ${route} AS route, ${lane} AS lane, ${dueAt} AS due_at, (SELECT e.at FROM event e WHERE e.${key} = m.${key} ORDER BY e.n DESC LIMIT 1) AS at,
       o.verb, o.by, o.detail, o.failure
     FROM ${listed} ${joinQueue} ${joinOutcome} ORDER BY m.${key} DESC`,
    [ids.map((id) => toKey(id))],
  );
  return found.map(rows.toFoundMessage);
}

function createSource(tx: Transaction): SearchSource<SearchableMessage> {
  const dialect = DIALECTS[tx.dialect];
  const { key, toKey, listed, listedIds, joinOutcome, selectCandidates, expression } = dialect;
  const range = `m.${key} >= $1 AND m.${key} < $2`;
  const listIds = (found: readonly Row[]) => found.map((row) => rows.readText(row, 'id'));

  return {
    async readRows({ first, end }, filter, limit) {
      const { joins, conditions } = toConditions(dialect, filter);
      const text = `SELECT ${COLUMNS} FROM mail_request m ${joins} WHERE ${range} ${conditions} ORDER BY m.${key} DESC LIMIT $3`;
      return (await tx.query(toStatement(text, conditions), [toKey(first), toKey(end), limit])).map(
        rows.toSearchableMessage,
      );
    },
    async findByIds(ids, filter) {
      const { joins, conditions } = toConditions(dialect, filter);
      const text = `SELECT ${COLUMNS} FROM ${listed} ${joins} WHERE true ${conditions} ORDER BY m.${key} DESC`;
      return (await tx.query(toStatement(text, conditions), [ids.map((id) => toKey(id))])).map(
        rows.toSearchableMessage,
      );
    },
    async readIndexedRows(index, { first, end }, limit) {
      const selects = listIndexParts(tx.dialect, index).map(
        ({ alias, rows: from }) =>
          `SELECT * FROM (SELECT ${COLUMNS} ${from} ORDER BY ${alias}.${key} DESC LIMIT $3) AS part`,
      );
      const text = `SELECT * FROM (${selects.join(' UNION ALL ')}) AS found ORDER BY id DESC LIMIT $3`;
      return (await tx.query({ name: '', text }, [toKey(first), toKey(end), limit])).map(rows.toSearchableMessage);
    },
    async countIndexed(index, { first, end }, maxCount) {
      const selects = listIndexParts(tx.dialect, index).map(
        ({ ids }) => `SELECT * FROM (SELECT 1 ${ids} LIMIT $3) AS part`,
      );
      const text = `SELECT count(*)::int AS n FROM (SELECT 1 FROM (${selects.join(' UNION ALL ')}) AS parts LIMIT $3) AS found`;
      const [row = {}] = await tx.query({ name: '', text }, [toKey(first), toKey(end), maxCount]);
      return rows.readInteger(row, 'n');
    },
    async readIndexedIds(index, { first, end }) {
      const selects = listIndexParts(tx.dialect, index).map(({ alias, ids }) => `SELECT ${alias}.id ${ids}`);
      return listIds(await tx.query({ name: '', text: selects.join(' UNION ALL ') }, [toKey(first), toKey(end)]));
    },
    async findNthId({ first, end }, count) {
      const text = `SELECT m.id FROM mail_request m WHERE ${range} ORDER BY m.${key} DESC LIMIT 1 OFFSET $3`;
      return listIds(await tx.query(text, [toKey(first), toKey(end), count - 1]))[0] ?? null;
    },
    async listBlocks() {
      return (await tx.query('SELECT number, first, past FROM search_block ORDER BY number DESC')).map((row) => ({
        number: rows.readInteger(row, 'number'),
        first: rows.readText(row, 'first'),
        end: rows.readText(row, 'past'),
      }));
    },
    async findCandidates(block, terms, { first, end }, limit) {
      const values = [formatTerms(block, terms, expression), toKey(first), toKey(end), limit];
      return listIds(await tx.query(selectCandidates, values));
    },
    async readOutcomeTexts(ids) {
      const outcomes = await tx.query(
        `SELECT m.id, o.verb, o.by, o.detail, o.failure FROM ${listedIds} ${joinOutcome} WHERE o.verb IS NOT NULL`,
        [ids.map((id) => toKey(id))],
      );
      return new Map(
        outcomes.flatMap((row) => {
          const text = getOutcomeText(rows.toLastOutcome(row));
          return text === null ? [] : [[rows.readText(row, 'id'), text] as const];
        }),
      );
    },
  };
}

/** A statement with conditions is not prepared, because there are too many combinations. */
function toStatement(text: string, conditions: string): Statement | string {
  return conditions === '' ? text : { name: '', text };
}

/** The row in `queue` is read only if the filter contains an open state or a route. */
function toConditions(
  { joinQueue, state, attempts, route, isDeferred }: Dialect,
  { accountIds, states, failureClasses, failureCategories, routes }: RowFilter,
): { readonly joins: string; readonly conditions: string } {
  const needsQueue = routes.length > 0 || states.some((filter) => OPEN_STATES.includes(filter));
  const isOneOf = (column: string, values: readonly string[]) =>
    `${column} IN (${values.map((value) => `'${value.replaceAll("'", "''")}'`).join(', ')})`;
  const stateCondition = isOneOf(needsQueue ? state : 'm.state', states);
  const conditions = [
    ...(accountIds.length === 0 ? [] : [`m.account_id IN (${accountIds.join(', ')})`]),
    ...(states.length === 0
      ? []
      : [states.includes('deferred') ? `(${stateCondition} OR ${isDeferred})` : stateCondition]),
    ...(failureClasses.length === 0 ? [] : [isOneOf('m.failure_class', failureClasses)]),
    ...(failureCategories.length === 0 ? [] : [isOneOf('m.failure_category', failureCategories)]),
    ...(routes.length === 0
      ? []
      : [isOneOf(`coalesce(${route}, CASE WHEN ${attempts} > 0 THEN '${DEFAULT_ROUTE}' END)`, routes)]),
  ];
  return {
    joins: needsQueue ? joinQueue : '',
    conditions: conditions.map((condition) => `AND ${condition}`).join(' '),
  };
}

/** The rows with one value of an index, within a range of keys (`$1` inclusive, `$2` exclusive). */
interface IndexPart {
  /** The alias of the table whose index is sorted by key. */
  readonly alias: 'q' | 'm';
  /** The clauses from FROM on; in `rows` with the columns of `mail_request m`. */
  readonly rows: string;
  readonly ids: string;
}

function listIndexParts(dialect: Transaction['dialect'], index: RowIndex): readonly IndexPart[] {
  switch (index.kind) {
    case 'state':
      return index.values.map(dialect === 'sqlite' ? createSqliteStatePart : createPostgresStatePart);
    case 'failure-class':
      return index.values.map((value) => createMessagePart(dialect, `m.failure_class = '${value}'`));
    case 'failure-category':
      return index.values.map((value) => createMessagePart(dialect, `m.failure_category = '${value}'`));
  }
}

function createMessagePart(dialect: Transaction['dialect'], condition: string): IndexPart {
  const { key } = DIALECTS[dialect];
  const from = `FROM mail_request m WHERE m.${key} >= $1 AND m.${key} < $2 AND ${condition}`;
  return { alias: 'm', rows: from, ids: from };
}

function createSqliteStatePart(state: StateFilter): IndexPart {
  if (state === 'deferred') return createMessagePart('sqlite', DIALECTS.sqlite.isDeferred);
  const ending = OPEN_STATES.includes(state)
    ? 'm.ended_at IS NULL'
    : `m.ended_at IS NOT NULL AND m.state <> 'delivered'`;
  return createMessagePart('sqlite', `m.state = '${state}' AND ${ending}`);
}

function createPostgresStatePart(state: StateFilter): IndexPart {
  if (!OPEN_STATES.includes(state)) return createMessagePart('postgres', `m.state = '${state}'`);
  const joinMessage = 'JOIN mail_request m ON m.id = q.id AND m.account_id = q.account_id';
  const range = 'q.id >= $1 AND q.id < $2';
  if (state === 'queued' || state === 'deferred') {
    const where = `WHERE ${state === 'queued' ? `q.state = 'queued'` : DIALECTS.postgres.isDeferred} AND ${range}`;
    return { alias: 'q', rows: `FROM queue q ${joinMessage} ${where}`, ids: `FROM queue q ${where}` };
  }
  // The planner uses the partial index of leased and uncertain rows. The rows of these states are few, and they are
  // materialized and then sorted. Otherwise the planner would read the whole queue in order of id.
  const ofState = `FROM queue q WHERE q.state = '${state}' AND q.state <> 'queued'`;
  const materialized = `(WITH o AS MATERIALIZED (SELECT q.id, q.account_id ${ofState}) SELECT * FROM o) q`;
  return { alias: 'q', rows: `FROM ${materialized} ${joinMessage} WHERE ${range}`, ids: `${ofState} AND ${range}` };
}

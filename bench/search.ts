/**
 * Measures searches over 1,000,000 messages on SQLite and PostgreSQL: the time until a page of 50 messages is full or
 * the search is complete, and the longest single call. Also measures the indexing of the messages, and the reading of
 * the queue statistics while 1,000,000 messages are queued.
 */
import { join } from 'node:path';
import pg from 'pg';
import { parseDatabaseUrl } from '../src/config/database-url.ts';
import type { Store } from '../src/store/contract.ts';
import { openStore } from '../src/store/open.ts';
import { getMinIdAt } from '../src/store/rules/messages.ts';
import { ALL_FIELDS, type MessageSearch, parseReplyWords, parseSearchText } from '../src/store/search/query.ts';
import { openDatabase } from '../src/store/sqlite/database.ts';
import { startServer } from '../test/rig/postgres-server.ts';
import { measureOverview } from './overview.ts';
import { createBenchFolder, removeFolder } from './postrider.ts';
import { DAY_MS, SEEDED_ACCOUNT_COUNT, seedPostgres, seedSqlite } from './search-seed.ts';

const MESSAGE_COUNT = 1_000_000;
const ACCOUNT_COUNT = SEEDED_ACCOUNT_COUNT;
const ROUND_COUNT = 9;
/** The time limit that the operator API sets for one search call of the store. */
const CALL_LIMIT_MS = 60;

type RecordFigure = (measure: string, value: number, unit: string, target?: string | null) => void;

interface SearchInput extends Partial<Omit<MessageSearch, 'wants'>> {
  readonly q?: string;
  readonly to?: string;
  readonly from?: string;
  readonly subject?: string;
}

function createSearchCases(now: number): readonly (readonly [name: string, input: SearchInput])[] {
  return [
    ['no filter', {}],
    ['rare recipient', { to: 'rita.jensen123457@firm-3457.example' }],
    ['recipient that does not occur', { to: 'nobody.at.all@firm-3457.example' }],
    ['first characters of a recipient', { q: 'rita.jensen12' }],
    ['small domain', { to: '@firm-300.example' }],
    ['large domain', { to: '@gmail.com' }],
    ['common sender', { from: 'orders@books-1.example.com' }],
    ['rare subject word', { q: 'suspension' }],
    ['common word', { q: 'order' }],
    ['beginning of a word', { q: 'subscr' }],
    ['one letter', { q: 'r' }],
    ['one digit', { q: '9' }],
    ['a number', { q: '#1500123' }],
    ['two words', { q: 'maria receipt' }],
    ['two common words, never in one message', { q: 'receipt password' }],
    ['common word, common domain, never in one message', { q: 'password', from: '@nowhere.example', to: '@gmail.com' }],
    ['one letter and a word, rarely in one message', { q: 'suspension x' }],
    ['not ASCII', { q: 'STRASSE björn' }],
    ['Japanese', { q: '確認 注文' }],
    ['no match', { q: 'zebra crossing' }],
    ['rare state', { states: ['uncertain'] }],
    ['state', { states: ['bounced'] }],
    ['most frequent state', { states: ['delivered'] }],
    ['state and word', { states: ['complained'], q: 'newsletter' }],
    ['state and word, never in one message', { states: ['bounced'], q: 'receipt password' }],
    ['state of the newest messages, word of old messages', { states: ['queued'], q: 'order #10' }],
    ['class of failure', { failureClasses: ['hard'] }],
    ['category of failure and state', { failureCategories: ['mailbox-unknown'], states: ['bounced'] }],
    ['class and category, never in one message', { failureClasses: ['hard'], failureCategories: ['greylisted'] }],
    ['category and word, never in one message', { failureCategories: ['greylisted'], q: 'receipt password' }],
    ['frequent category and delivered', { failureCategories: ['greylisted'], states: ['delivered'] }],
    ['several states', { states: ['bounced', 'deferred', 'expired'] }],
    ['several states and word', { states: ['bounced', 'deferred', 'expired'], q: 'newsletter' }],
    ['several states, one of them delivered', { states: ['bounced', 'delivered'] }],
    ['word of a reply', { reply: { words: parseReplyWords('user') ?? [], code: null } }],
    ['word that occurs in no reply', { reply: { words: parseReplyWords('zebra') ?? [], code: null } }],
    ['reply code and category', { failureCategories: ['mailbox-unknown'], reply: { words: [], code: '5.1.1' } }],
    ['reply code, no match', { reply: { words: [], code: '5.7.26' } }],
    [
      'word that occurs in no reply, state delivered, one hour',
      {
        states: ['delivered'],
        since: now - 3_600_000,
        reply: { words: parseReplyWords('zebra') ?? [], code: null },
      },
    ],
    ['small account', { accountIds: [ACCOUNT_COUNT] }],
    ['large account', { accountIds: [1] }],
    ['account and state', { accountIds: [ACCOUNT_COUNT - 3], states: ['complained'] }],
    ['account and word', { accountIds: [ACCOUNT_COUNT - 3], q: 'suspension' }],
    ['account, word and frequent state, no match', { accountIds: [500], q: 'verification zoe', states: ['delivered'] }],
    ['a day', { since: now - 20 * DAY_MS, until: now - 19 * DAY_MS }],
    ['a word in the messages of a day', { q: 'suspension', since: now - 20 * DAY_MS, until: now - 19 * DAY_MS }],
    [
      'a word in one hour of an old day, no match',
      { q: 'zebra', since: now - 20 * DAY_MS, until: now - 19.96 * DAY_MS },
    ],
  ];
}

export async function benchSearch(record: RecordFigure): Promise<void> {
  const now = Date.now() - 60_000;
  const folder = createBenchFolder();
  try {
    const path = join(folder, 'postrider.db');
    await (await openStore({ kind: 'sqlite', path }, { exclusive: true })).close();
    seedSqlite(path, MESSAGE_COUNT, now);
    const store = await openStore({ kind: 'sqlite', path }, { exclusive: true });
    await measureSearch('SQLite', store, now, record);
    await measureOverview('SQLite', store, now, record);
    await store.close();
    queueAllMessagesInSqlite(path);
    await measureQueueStatistics('SQLite', await openStore({ kind: 'sqlite', path }, { exclusive: true }), record);
  } finally {
    removeFolder(folder);
  }
  const server = await startServer({ settings: { shared_buffers: '256MB', max_wal_size: '4GB' } });
  try {
    const url = await server.createDatabase();
    const databaseUrl = parseDatabaseUrl(url);
    if (!databaseUrl.ok) throw new Error(databaseUrl.fault);
    await (await openStore(databaseUrl.value, { exclusive: true })).close();
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await seedPostgres(client, MESSAGE_COUNT, now);
    const store = await openStore(databaseUrl.value, { exclusive: true });
    await measureSearch('PostgreSQL', store, now, record);
    await measureOverview('PostgreSQL', store, now, record);
    await queueAllMessagesInPostgres(client);
    await client.end();
    await measureQueueStatistics('PostgreSQL', store, record);
  } finally {
    await server.stop();
  }
}

async function measureSearch(name: string, store: Store, now: number, record: RecordFigure): Promise<void> {
  const [startedAt, cpuBefore] = [performance.now(), process.cpuUsage()];
  let longestMs = 0;
  let unindexedCount: number | null = null;
  for (let hasMore = true; hasMore; ) {
    const stepStartedAt = performance.now();
    const step = { horizon: getMinIdAt(now + 1_000), minMessages: 2_048, unindexedCount, now };
    const progress = await store.indexMessages(step);
    // The count has a maximum.
    hasMore = progress.hasChanged || unindexedCount !== null;
    unindexedCount = progress.hasChanged ? progress.unindexedCount : null;
    longestMs = Math.max(longestMs, performance.now() - stepStartedAt);
  }
  const cpuUsage = process.cpuUsage(cpuBefore);
  record(`${name}: indexing 1,000,000 messages without a pause`, (performance.now() - startedAt) / 1_000, 's');
  record(
    `${name}: processor time of this process to index one message`,
    (cpuUsage.user + cpuUsage.system) / MESSAGE_COUNT,
    'µs',
  );
  record(`${name}: longest step of indexing`, longestMs, 'ms');
  // The first call starts the reader thread or opens the connection. A running service has made such a call before a
  // search, so the benchmark does not measure the first call.
  await store.readQueueStatistics();
  let [maxCallMs, maxSearchMs] = [0, 0];
  for (const [caseName, input] of createSearchCases(now)) {
    const durations: number[] = [];
    for (let round = 0; round < ROUND_COUNT; round += 1) {
      const { completeMs, callMs } = await completeSearch(store, input);
      durations.push(completeMs);
      maxCallMs = Math.max(maxCallMs, callMs);
    }
    durations.sort((a, b) => a - b);
    const maxMs = durations.at(-1) ?? 0;
    maxSearchMs = Math.max(maxSearchMs, maxMs);
    record(`${name}: ${caseName}: median until complete`, durations[ROUND_COUNT >> 1] ?? 0, 'ms');
    record(`${name}: ${caseName}: maximum of ${ROUND_COUNT} rounds`, maxMs, 'ms');
  }
  record(`${name}: slowest complete search`, maxSearchMs, 'ms', 'under 100');
  record(`${name}: slowest single call`, maxCallMs, 'ms', 'under 100');
}

async function completeSearch(store: Store, input: SearchInput): Promise<{ completeMs: number; callMs: number }> {
  const { q = '', to = '', from = '', subject = '', ...filters } = input;
  const criteria = [
    ...(parseSearchText(q, ALL_FIELDS) ?? []),
    ...(parseSearchText(to, ['to']) ?? []),
    ...(parseSearchText(from, ['from']) ?? []),
    ...(parseSearchText(subject, ['subject']) ?? []),
  ];
  const search: MessageSearch = {
    accountIds: [],
    states: [],
    failureClasses: [],
    failureCategories: [],
    routes: [],
    reply: null,
    since: null,
    until: null,
    before: null,
    limit: 50,
    ...filters,
    criteria,
  };
  const startedAt = performance.now();
  let callMs = 0;
  let searchedTo: string | null = null;
  for (let foundCount = 0; foundCount < search.limit; ) {
    const callStartedAt = performance.now();
    const result = await store.searchMessages(
      { ...search, before: searchedTo, limit: search.limit - foundCount },
      CALL_LIMIT_MS,
    );
    callMs = Math.max(callMs, performance.now() - callStartedAt);
    foundCount += result.messages.length;
    if (result.searchedTo === null) break;
    searchedTo = result.searchedTo;
  }
  return { completeMs: performance.now() - startedAt, callMs };
}

async function measureQueueStatistics(name: string, store: Store, record: RecordFigure): Promise<void> {
  const durations: number[] = [];
  for (let round = 0; round < ROUND_COUNT; round += 1) {
    const startedAt = performance.now();
    await store.readQueueStatistics();
    durations.push(performance.now() - startedAt);
  }
  await store.close();
  durations.sort((a, b) => a - b);
  record(`${name}: queue statistics with 1,000,000 queued, median`, durations[ROUND_COUNT >> 1] ?? 0, 'ms', 'under 50');
}

function queueAllMessagesInSqlite(path: string): void {
  const database = openDatabase(path);
  database.exec(
    "PRAGMA synchronous = OFF; UPDATE mail_request SET state = 'queued', ended_at = NULL, due_at = accepted_at; PRAGMA wal_checkpoint(TRUNCATE)",
  );
  database.close();
}

async function queueAllMessagesInPostgres(client: pg.Client): Promise<void> {
  await client.query(
    `INSERT INTO queue (id, account_id, state, lane, due_at, attempts, accepted_at, bytes)
     SELECT id, account_id, 'queued', 0, accepted_at, 1, accepted_at, 100 FROM mail_request WHERE ended_at IS NOT NULL`,
  );
  await client.query('VACUUM ANALYZE queue');
}

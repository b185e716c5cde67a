/**
 * Measures the requests of the dashboard to a service with 1,000,000 stored messages, first on SQLite and then on
 * PostgreSQL. Records, for each request, the duration of the first call, and the median and the maximum duration of
 * several calls. A duration ends with the last byte of the response, but for an export with its first bytes. A search
 * can return only a part of its result; the further calls that complete a search are not measured. If `BENCH_MESSAGES`
 * is a number other than 1,000,000, only SQLite is measured.
 */
import { join } from 'node:path';
import pg from 'pg';
import { parseDatabaseUrl } from '../src/config/database-url.ts';
import type { Store } from '../src/store/contract.ts';
import { openStore } from '../src/store/open.ts';
import { getMinIdAt } from '../src/store/rules/messages.ts';
import { openDatabase } from '../src/store/sqlite/database.ts';
import { startServer } from '../test/rig/postgres-server.ts';
import { type SessionHeaders, signIn } from '../test/rig/session.ts';
import { createBenchFolder, removeFolder, startPostrider } from './postrider.ts';
import { seedPostgres, seedSqlite } from './search-seed.ts';

const DEFAULT_MESSAGE_COUNT = 1_000_000;
const ROUND_COUNT = 9;
const PASSWORD = 'the password of the benchmark';
const SUPPRESSION_COUNT = 500_000;
const AUDIT_ENTRY_COUNT = 200_000;

type RecordFigure = (measure: string, value: number, unit: string, target?: string | null) => void;

/**
 * The requests that the pages send for each interaction of an operator. The benchmark replaces `ID` by the id of a
 * bounced message.
 */
const REQUESTS: readonly (readonly [interaction: string, path: string])[] = [
  ['overview', '/overview?range=24h'],
  ['overview of 30 days', '/overview?range=30d'],
  ['deliverability', '/deliverability'],
  ['setup', '/setup'],
  ['list of messages', '/messages?limit=50'],
  ['filter: bounced', '/messages?limit=50&state=bounced'],
  ['filter: delivered', '/messages?limit=50&state=delivered'],
  ['filter: deferred', '/messages?limit=50&state=deferred'],
  ['filter: three states', '/messages?limit=50&state=bounced,complained,expired'],
  ['filter: account', '/messages?limit=50&account=a900'],
  ['filter: two accounts', '/messages?limit=50&account=a900,a901'],
  ['filter: class', '/messages?limit=50&class=hard'],
  ['filter: category', '/messages?limit=50&category=mailbox-unknown'],
  ['filter: class and category that never occur together', '/messages?limit=50&class=hard&category=greylisted'],
  ['filter: word of a reply', '/messages?limit=50&reply=user'],
  ['filter: word that occurs in no reply', '/messages?limit=50&reply=zebra'],
  ['filter: reply code that occurs in no reply', '/messages?limit=50&code=5.7.26'],
  ['filter: recipient domain', '/messages?limit=50&domain=firm-300.example'],
  ['filter: time', '/messages?limit=50&since=20d&until=19d'],
  ['search: recipient', '/messages?limit=50&to=rita.jensen123457@firm-3457.example'],
  ['search: common word', '/messages?limit=50&q=order'],
  ['search: no match', '/messages?limit=50&q=zebra%20crossing'],
  ['search: two common words that never occur together', '/messages?limit=50&q=receipt%20password'],
  ['number of all messages', '/messages/count?since=60d'],
  ['number of bounced messages', '/messages/count?state=bounced'],
  ['number of messages with a common word', '/messages/count?q=order'],
  ['number of messages with a word that occurs in no reply', '/messages/count?reply=zebra'],
  ['message', '/messages/ID'],
  ['explanation of a message', '/messages/ID/explain'],
  ['accounts', '/accounts'],
  ['account', '/accounts/a1'],
  ['domains', '/domains'],
  ['suppressions', '/accounts/a1/suppressions'],
  ['suppressions: address', '/accounts/a1/suppressions?search=person400000'],
  ['suppressions: domain', '/accounts/a1/suppressions?search=%40d77.example'],
  ['suppressions: no match', '/accounts/a1/suppressions?search=zebra'],
  ['suppression of an address', '/suppressions/person400000@d100.example'],
  ['audit log', '/audit'],
  ['audit log: actor', '/audit?actor=nobody'],
  ['audit log: action', '/audit?action=account.create'],
  ['audit log: target', '/audit?target=zebra'],
  ['webhooks', '/webhooks'],
  ['feedback', '/feedback'],
  ['providers', '/providers'],
  ['tokens', '/tokens'],
  ['settings', '/config'],
  ['health', '/doctor'],
  ['start of an export', '/messages/export?since=60d'],
];

/** Returns a WITH clause that defines a table `number (n)` with the numbers from 1 to `count`. */
const formatNumberTable = (count: number) =>
  `WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < ${count})`;
const INSERT_SUPPRESSIONS = `INSERT INTO suppression (recipient, account_id, reason, source, at)
  ${formatNumberTable(SUPPRESSION_COUNT)} SELECT 'person' || n || '@d' || (n % 300) || '.example', 1 + n % 2, 'bounce', NULL, n FROM number`;
const INSERT_AUDIT = `INSERT INTO audit (at, who, action, subject, before, after)
  ${formatNumberTable(AUDIT_ENTRY_COUNT)} SELECT n, 'session ' || (n % 50), 'suppression.add', 'a1 person' || n || '@example.com', NULL, '{}' FROM number`;

export async function benchDashboard(record: RecordFigure): Promise<void> {
  const count = Number(process.env.BENCH_MESSAGES ?? DEFAULT_MESSAGE_COUNT);
  const now = Date.now() - 60_000;
  const folder = createBenchFolder();
  try {
    const path = join(folder, 'postrider.db');
    await (await openStore({ kind: 'sqlite', path }, { exclusive: true })).close();
    seedSqlite(path, count, now);
    const database = openDatabase(path);
    database.exec(`PRAGMA synchronous = OFF; ${INSERT_SUPPRESSIONS}; ${INSERT_AUDIT}; PRAGMA wal_checkpoint(TRUNCATE)`);
    database.close();
    await indexAllMessages(await openStore({ kind: 'sqlite', path }, { exclusive: true }), now);
    await measureRequests('SQLite', `sqlite:${path}`, folder, record);
  } finally {
    removeFolder(folder);
  }
  if (count !== DEFAULT_MESSAGE_COUNT) return;
  const server = await startServer({ settings: { shared_buffers: '256MB', max_wal_size: '4GB' } });
  const serviceFolder = createBenchFolder();
  try {
    const url = await server.createDatabase();
    const parsedUrl = parseDatabaseUrl(url);
    if (!parsedUrl.ok) throw new Error(parsedUrl.fault);
    await (await openStore(parsedUrl.value, { exclusive: true })).close();
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await seedPostgres(client, count, now);
    await client.query(INSERT_SUPPRESSIONS);
    await client.query(INSERT_AUDIT);
    await client.query('VACUUM ANALYZE');
    await client.end();
    await indexAllMessages(await openStore(parsedUrl.value, { exclusive: true }), now);
    await measureRequests('PostgreSQL', url, serviceFolder, record);
  } finally {
    removeFolder(serviceFolder);
    await server.stop();
  }
}

/** Indexes all messages and closes the store. */
async function indexAllMessages(store: Store, now: number): Promise<void> {
  const step = { horizon: getMinIdAt(now + 1_000), minMessages: 2_048, unindexedCount: null, now };
  while ((await store.indexMessages(step)).hasChanged);
  await store.close();
}

/** Starts a service that delivers no message, and measures each request. */
async function measureRequests(name: string, database: string, folder: string, record: RecordFigure): Promise<void> {
  const settings = { POSTRIDER_DATABASE: database, POSTRIDER_ROLES: 'operator', POSTRIDER_OPERATOR_PASSWORD: PASSWORD };
  const service = await startPostrider(settings, folder);
  try {
    const origin = `http://127.0.0.1:${service.operatorPort}`;
    const headers = await signIn(origin, { password: PASSWORD });
    const bouncedList = await fetchText(`${origin}/api/v1/messages?state=bounced&limit=1`, headers);
    const id = (JSON.parse(bouncedList) as { messages: readonly { id: string }[] }).messages[0]?.id ?? '';
    let longestMedianMs = 0;
    for (const [interaction, path] of REQUESTS) {
      const url = `${origin}/api/v1${path.replace('ID', id)}`;
      const isExport = path.startsWith('/messages/export');
      const durations: number[] = [];
      for (let round = 0; round < ROUND_COUNT; round += 1) {
        const startedAt = performance.now();
        await (isExport ? fetchFirstBytes(url, headers) : fetchText(url, headers));
        durations.push(performance.now() - startedAt);
      }
      const firstMs = durations[0] ?? 0;
      durations.sort((a, b) => a - b);
      const medianMs = durations[ROUND_COUNT >> 1] ?? 0;
      longestMedianMs = Math.max(longestMedianMs, medianMs);
      record(`${name}: ${interaction}: first call`, firstMs, 'ms');
      record(`${name}: ${interaction}: median`, medianMs, 'ms', 'under 100');
      record(`${name}: ${interaction}: maximum of ${ROUND_COUNT} rounds`, durations.at(-1) ?? 0, 'ms');
    }
    record(`${name}: longest median of all requests of the dashboard`, longestMedianMs, 'ms', 'under 100');
  } finally {
    await service.stop();
  }
}

async function fetchText(url: string, headers: SessionHeaders): Promise<string> {
  const response = await fetch(url, { headers });
  const text = await response.text();
  if (!response.ok) throw new Error(`${url}: ${response.status} ${text}`);
  return text;
}

/** Reads the first bytes of a response, and then aborts the request. */
async function fetchFirstBytes(url: string, headers: SessionHeaders): Promise<void> {
  const abortController = new AbortController();
  const response = await fetch(url, { headers, signal: abortController.signal });
  if (!response.ok || response.body === null) throw new Error(`${url}: ${response.status}`);
  await response.body.getReader().read();
  abortController.abort();
}

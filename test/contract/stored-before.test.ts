/**
 * Tests that a database of an older version can be opened, and that every read returns the same result as in that
 * version. test/corpus/stores contains the tables that commit c1fc4ea wrote and the results that it read from them:
 * accounts, keys, domains, messages in every state, reports, suppressions, tokens and statistics. A recorded call of
 * `findToken` is replayed as a call of `findTokens`. `ADDED_MEMBERS` has the members that later versions have added.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import type { State } from '../../src/model/message.ts';
import type { Store } from '../../src/store/contract.ts';
import { openStore } from '../../src/store/open.ts';
import type { MessageSearch } from '../../src/store/search/query.ts';
import { createTemporaryFolder } from '../rig/folder.ts';
import { createTemporaryDatabase } from '../rig/postgres.ts';
import { parsePostgresUrl, STORES } from '../rig/stores.ts';

type Column = string | number | boolean | null;

interface RecordedStore {
  readonly tables: Readonly<Record<string, readonly Readonly<Record<string, Column>>[]>>;
  /** The last value of each sequence, only in PostgreSQL. */
  readonly sequences?: Readonly<Record<string, number>>;
  /** The method, the arguments and the recorded result. `reviveValue` restores maps and bytes. */
  readonly reads: readonly (readonly [method: string, args: readonly unknown[], answer: unknown])[];
}

/** The number of migrations that the recorded version had. */
const MIGRATION_COUNTS = { sqlite: 11, postgres: 10 } as const;

function readRecordedStore(kind: 'sqlite' | 'postgres'): RecordedStore {
  return JSON.parse(readFileSync(new URL(`../corpus/stores/${kind}.json`, import.meta.url), 'utf8')) as RecordedStore;
}

function listMigrations(kind: 'sqlite' | 'postgres'): readonly string[] {
  const folder = new URL(`../../src/store/${kind}/migrations/`, import.meta.url);
  const names = readdirSync(folder).sort().slice(0, MIGRATION_COUNTS[kind]);
  return names.map((name) => readFileSync(new URL(name, folder), 'utf8'));
}

/**
 * The current names of methods, by their recorded names. These methods are not in `CURRENT_NAMES`, because members with
 * the same recorded names were not renamed.
 */
const CURRENT_METHOD_NAMES: Readonly<Record<string, string>> = {
  lastFeedbackAt: 'findLastFeedbackAt',
  newestId: 'findNewestId',
  changeFeedPosition: 'readChangeFeedPosition',
};

/** The current names of methods and members, by their recorded names. */
const CURRENT_NAMES: Readonly<Record<string, string>> = {
  listMail: 'listMessages',
  showMail: 'findMessage',
  searchMail: 'searchMessages',
  showFeedback: 'findFeedback',
  traffic: 'readTraffic',
  screen: 'checkSuppression',
  reputationOf: 'readReputation',
  reputations: 'readAllReputations',
  queueFigures: 'readQueueStatistics',
  overviewFacts: 'readOverviewData',
  domainChecks: 'findDomainChecks',
  mails: 'messages',
  mailId: 'messageId',
  troubled: 'problems',
  lacking: 'failedRecords',
  wants: 'criteria',
  who: 'actor',
  audit: 'newestAuditId',
  counted: 'recentCounts',
  refused: 'suppressingCounts',
  conversation: 'transcript',
  notUnderstood: 'notUnderstoodCount',
};

/**
 * Members that later versions have added, with their values in older rows. The first name of an entry is a member by
 * which the objects with the added member are recognized.
 */
const ADDED_MEMBERS = [
  ['verb', 'failure', null],
  ['thresholds', 'sesConfigurationSet', null],
  ['published', 'returnPath', null],
  ['latencies', 'confirmed', 0],
  ['latencies', 'confirmations', new Map()],
  ['latencies', 'bounces', new Map()],
  ['everAccepted', 'disabledWebhooks', []],
] as const;

/** Restores maps (`$map`) and bytes (`$bytes`) in a parsed JSON value, and renames members to their current names. */
function reviveValue(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(reviveValue);
  if ('$map' in value) return new Map(reviveValue(value.$map) as [unknown, unknown][]);
  if ('$bytes' in value) return Buffer.from(String(value.$bytes));
  // Only an audit log entry has the member `who`. The member `subject` of a message keeps its name.
  const currentNames: Readonly<Record<string, string>> =
    'who' in value ? { ...CURRENT_NAMES, subject: 'target' } : CURRENT_NAMES;
  const members = Object.entries(value).map(([name, member]) => [currentNames[name] ?? name, reviveValue(member)]);
  const addedMembers = ADDED_MEMBERS.flatMap(([kind, name, addedValue]) => (kind in value ? [[name, addedValue]] : []));
  return Object.fromEntries([...members, ...addedMembers]);
}

const WRITERS = {
  async sqlite({ tables }: RecordedStore) {
    const path = join(createTemporaryFolder(), 'postrider.db');
    const database = new DatabaseSync(path);
    for (const text of listMigrations('sqlite')) database.exec(text);
    database.exec(
      `PRAGMA user_version = ${MIGRATION_COUNTS.sqlite}; PRAGMA application_id = ${0x50524452}; DELETE FROM meta`,
    );
    for (const [table, rows] of Object.entries(tables)) {
      for (const row of rows) {
        const columns = Object.keys(row).map((name) => `"${name}"`);
        const placeholders = columns.map(() => '?').join(', ');
        const insert = database.prepare(`INSERT INTO ${table} (${columns.join(', ')}) VALUES (${placeholders})`);
        insert.run(...Object.values(row).map((value) => (typeof value === 'boolean' ? Number(value) : value)));
      }
    }
    database.close();
    return { kind: 'sqlite', path } as const;
  },
  async postgres({ tables, sequences = {} }: RecordedStore) {
    const url = await createTemporaryDatabase();
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    for (const text of listMigrations('postgres')) await client.query(text);
    await client.query('DELETE FROM postrider');
    for (const [table, rows] of Object.entries(tables)) {
      const columns = Object.keys(rows[0] ?? {}).map((name) => `"${name}"`);
      await client.query(
        `INSERT INTO ${table} (${columns.join(', ')}) OVERRIDING SYSTEM VALUE
         SELECT ${columns.join(', ')} FROM jsonb_populate_recordset(null::${table}, $1)`,
        [JSON.stringify(rows)],
      );
    }
    for (const [name, last] of Object.entries(sequences)) await client.query('SELECT setval($1, $2)', [name, last]);
    await client.end();
    return parsePostgresUrl(url);
  },
} as const;

test.each(STORES)(
  'the $name store reads an older database with the same results as the version that wrote it',
  async ({ name }) => {
    const recordedStore = readRecordedStore(name);
    const store = await openStore(await WRITERS[name](recordedStore), { exclusive: true });
    onTestFinished(() => store.close());
    const methods = store as unknown as Readonly<Record<string, (...args: readonly unknown[]) => Promise<unknown>>>;
    for (const [method, args, answer] of recordedStore.reads) {
      const values = args.map(reviveValue);
      const foundResult =
        method === 'searchMail'
          ? await runRecordedSearch(store, values)
          : await methods[CURRENT_METHOD_NAMES[method] ?? CURRENT_NAMES[method] ?? method]?.(...values);
      expect(toPlainValue(foundResult), `${method}(${JSON.stringify(args)})`).toEqual(
        toPlainValue(reviveValue(answer)),
      );
    }
  },
);

/**
 * Performs a recorded search, which had at most one account and one state. Returns the members that messages had in the
 * recorded version.
 */
async function runRecordedSearch(store: Store, [recordedSearch, budgetMs]: readonly unknown[]): Promise<unknown> {
  const { accountId, state, ...search } = recordedSearch as Pick<
    MessageSearch,
    'criteria' | 'since' | 'until' | 'before' | 'limit'
  > & {
    readonly accountId: number | null;
    readonly state: State | null;
  };
  const { messages, searchedTo } = await store.searchMessages(
    {
      ...search,
      accountIds: accountId === null ? [] : [accountId],
      states: state === null ? [] : [state],
      failureClasses: [],
      failureCategories: [],
      reply: null,
    },
    Number(budgetMs),
  );
  return {
    messages: messages.map(({ attempts: _, updatedAt: __, deferred: ___, lastOutcome: ____, ...summary }) => summary),
    searchedTo,
  };
}

/** Bytes are converted to text, because stores return different types of byte arrays. */
function toPlainValue(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('utf8');
  if (value instanceof Map) return [...value].map(toPlainValue);
  if (Array.isArray(value)) return value.map(toPlainValue);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, toPlainValue(member)]));
}

test.each(STORES)('the $name store delivers messages that an older version has queued', async ({ name }) => {
  const store = await openStore(await WRITERS[name](readRecordedStore(name)), { exclusive: true });
  onTestFinished(() => store.close());
  const queuedMessages = await store.listMessages({ accountId: 1, state: 'queued', to: null, since: null, limit: 50 });
  const [message] = queuedMessages;
  if (message === undefined) throw new Error('nothing is queued');
  const now = message.acceptedAt + 10 * 24 * 3_600_000;
  const lease = { owner: 'node-new', until: now + 60_000 };
  const claimResult = await store.claim({ maxMessages: 50, maxBytes: 1_000_000 }, lease, now);
  expect(claimResult.messages.map(({ id }) => id).sort()).toEqual(queuedMessages.map(({ id }) => id).sort());
  const event = { at: now, verb: 'delivered', by: lease.owner, detail: '250 ok', failure: null, attempt: null };
  const changes = [{ to: 'delivered', dueAt: null, event, suppress: null }] as const;
  const settlements = claimResult.messages.map(({ id, attempts }) => ({
    id,
    owner: lease.owner,
    attempts,
    changes,
    refundAttempt: false,
  }));
  expect(await store.settle(settlements)).toEqual(settlements.map(() => 'settled'));
  const storedMessage = await store.findMessage(message.id);
  expect(storedMessage?.state).toBe('delivered');
  expect(storedMessage?.events.at(-1)).toEqual(event);
});

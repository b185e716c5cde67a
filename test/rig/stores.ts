import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { parseDatabaseUrl } from '../../src/config/database-url.ts';
import type { DatabaseSetting } from '../../src/config/settings.ts';
import type { AccountLimits } from '../../src/model/account.ts';
import type { Store } from '../../src/store/contract.ts';
import { type OpenOptions, openStore } from '../../src/store/open.ts';
import { createPool, type Pool } from '../../src/store/postgres/database.ts';
import { createTemporaryFolder } from './folder.ts';
import { NO_LIMITS } from './messages.ts';
import { createTemporaryDatabase } from './postgres.ts';
import { getTestedVersion } from './postgres-version.ts';
import { startTransactionPooler } from './transaction-pooler.ts';

export interface TestedStore {
  readonly name: 'sqlite' | 'postgres';
  readonly open: (options?: Pick<OpenOptions, 'environment'>) => Promise<Store>;
  /** Opens a store with the account `default`, whose id is 1, and with further accounts. */
  readonly openWithAccounts: (limits?: Partial<AccountLimits>, ...otherNames: readonly string[]) => Promise<Store>;
}

function createTestedStore(
  name: TestedStore['name'],
  createSetting: () => Promise<DatabaseSetting>,
  runsInCallerThread = false,
): TestedStore {
  const open: TestedStore['open'] = async ({ environment } = {}) => {
    const store = await openStore(await createSetting(), {
      exclusive: true,
      runsInCallerThread: runsInCallerThread || environment?.isSimulated === true,
      ...(environment === undefined ? {} : { environment }),
    });
    onTestFinished(() => store.close().catch(() => undefined));
    return store;
  };
  return {
    name,
    open,
    async openWithAccounts(limits, ...otherNames) {
      const store = await open();
      await store.createAccount('default', { ...NO_LIMITS, ...limits }, Date.now());
      for (const otherName of otherNames) await store.createAccount(otherName, NO_LIMITS, Date.now());
      return store;
    },
  };
}

const EXTENT = process.env.TEST_EXTENT ?? 'default';

/** In the thread of the caller, because a thread starts slower than most tests run; not in the long runs. */
const SQLITE = createTestedStore(
  'sqlite',
  async () => ({ kind: 'sqlite', path: join(createTemporaryFolder(), 'postrider.db') }),
  EXTENT === 'default',
);
const POSTGRES = createTestedStore('postgres', async () =>
  parsePostgresUrl(await createTemporaryDatabase({ content: 'empty-store' })),
);

/** PostgreSQL behind a pooler in transaction mode, without and with prepared statements. */
const POOLED_STORES: readonly TestedStore[] = (['unsupported', 'track'] as const).map((prepared) =>
  createTestedStore('postgres', async () => {
    const url = new URL(await createTemporaryDatabase({ content: 'empty-store' }));
    url.port = String((await startTransactionPooler(Number(url.port), { prepared })).port);
    url.searchParams.set('pooler', 'transaction');
    if (prepared === 'track') url.searchParams.set('prepared', 'yes');
    return parsePostgresUrl(url.href);
  }),
);

/** `postgres-15`: the oldest PostgreSQL; all other projects: SQLite and the newest PostgreSQL. */
export const STORES: readonly TestedStore[] = listTestedStores();

function listTestedStores(): readonly TestedStore[] {
  if (process.env.TEST_POOLER === 'transaction') return POOLED_STORES;
  return getTestedVersion() === 'oldest' ? [POSTGRES] : [SQLITE, POSTGRES];
}

export function expectDone<T>(result: { readonly kind: 'done'; readonly value: T } | { readonly kind: string }): T {
  if (!('value' in result) || result.kind !== 'done') throw new Error(result.kind);
  return result.value;
}

export function parsePostgresUrl(url: string): DatabaseSetting {
  const parseResult = parseDatabaseUrl(url);
  if (!parseResult.ok) throw new Error(parseResult.fault);
  return parseResult.value;
}

export function createTestPool(url: string, options: { readonly statementTimeoutMs?: number } = {}): Pool {
  const setting = parsePostgresUrl(url);
  if (setting.kind !== 'postgres') throw new Error('no PostgreSQL URL');
  const pool = createPool({ setting, application: 'postrider test', random: Math.random, ...options });
  onTestFinished(() => pool.close());
  return pool;
}

/** Resolves to `it opened` or to the error. */
export const tryToOpen = (url: string) =>
  openStore(parsePostgresUrl(url), { exclusive: true }).then(
    (store) => store.close().then(() => 'it opened'),
    (error: unknown) => String(error),
  );

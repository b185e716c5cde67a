/** Defines the stores that every contract suite tests. */
import { join } from 'node:path';
import { parseDatabaseUrl } from '../../src/config/database-url.ts';
import type { DatabaseSetting } from '../../src/config/settings.ts';
import type { Store } from '../../src/store/contract.ts';
import { type OpenOptions, openStore } from '../../src/store/open.ts';
import { createTemporaryFolder } from './folder.ts';
import { createTemporaryDatabase } from './postgres.ts';
import { getTestedVersion } from './postgres-version.ts';
import { startTransactionPooler } from './transaction-pooler.ts';

export interface TestedStore {
  readonly name: 'sqlite' | 'postgres';
  /** Opens an empty store for one test. The caller closes it. */
  readonly open: (options?: Pick<OpenOptions, 'environment'>) => Promise<Store>;
}

const SQLITE: TestedStore = {
  name: 'sqlite',
  open: (options) =>
    openStore({ kind: 'sqlite', path: join(createTemporaryFolder(), 'postrider.db') }, { exclusive: true, ...options }),
};
const POSTGRES: TestedStore = {
  name: 'postgres',
  open: async (options) =>
    openStore(parsePostgresUrl(await createTemporaryDatabase({ content: 'empty-store' })), {
      exclusive: true,
      ...options,
    }),
};

/** PostgreSQL behind a pooler in transaction mode, without and with prepared statements. */
const POOLED_STORES: readonly TestedStore[] = (['unsupported', 'track'] as const).map((prepared) => ({
  name: 'postgres',
  async open(options) {
    const url = new URL(await createTemporaryDatabase({ content: 'empty-store' }));
    url.port = String((await startTransactionPooler(Number(url.port), { prepared })).port);
    url.searchParams.set('pooler', 'transaction');
    if (prepared === 'track') url.searchParams.set('prepared', 'yes');
    return openStore(parsePostgresUrl(url.href), { exclusive: true, ...options });
  },
}));

/**
 * The tested stores of this Vitest project. `postgres-15`: the oldest PostgreSQL. `pooler`: PostgreSQL behind a pooler.
 * All other projects: SQLite and the newest PostgreSQL.
 */
export const STORES: readonly TestedStore[] = listTestedStores();

function listTestedStores(): readonly TestedStore[] {
  if (process.env.TEST_POOLER === 'transaction')
    return process.env.TEST_EXTENT === 'long' ? POOLED_STORES : POOLED_STORES.slice(0, 1);
  return getTestedVersion() === 'oldest' ? [POSTGRES] : [SQLITE, POSTGRES];
}

/** Parses a PostgreSQL URL into a database setting. */
export function parsePostgresUrl(url: string): DatabaseSetting {
  const parseResult = parseDatabaseUrl(url);
  if (!parseResult.ok) throw new Error(parseResult.fault);
  return parseResult.value;
}

/** The stores that every contract suite tests. */
import { join } from 'node:path';
import { parseDatabaseUrl } from '../../src/config/database-url.ts';
import type { DatabaseSetting } from '../../src/config/settings.ts';
import type { Store } from '../../src/store/contract.ts';
import { type OpenOptions, openStore } from '../../src/store/open.ts';
import { temporaryFolder } from './folder.ts';
import { temporaryDatabase } from './postgres.ts';
import { testedVersion } from './postgres-version.ts';

export interface TestedStore {
  readonly name: 'sqlite' | 'postgres';
  /** Opens an empty store for one test. The caller closes it. */
  readonly open: (options?: Pick<OpenOptions, 'environment'>) => Promise<Store>;
}

const SQLITE: TestedStore = {
  name: 'sqlite',
  open: (options) =>
    openStore({ kind: 'sqlite', path: join(temporaryFolder(), 'postrider.db') }, { exclusive: true, ...options }),
};
const POSTGRES: TestedStore = {
  name: 'postgres',
  open: async (options) => openStore(parsePostgresUrl(await temporaryDatabase()), { exclusive: true, ...options }),
};

/** SQLite and the newest PostgreSQL; in the project `postgres-15` only the oldest PostgreSQL. */
export const STORES: readonly TestedStore[] = testedVersion() === 'oldest' ? [POSTGRES] : [SQLITE, POSTGRES];

/** Parses a PostgreSQL URL to a database setting. */
export function parsePostgresUrl(url: string): DatabaseSetting {
  const parsed = parseDatabaseUrl(url);
  if (!parsed.ok) throw new Error(parsed.fault);
  return parsed.value;
}

/** The stores that every contract suite runs over. */
import { join } from 'node:path';
import { parseDatabaseUrl } from '../../src/config/database-url.ts';
import type { DatabaseSetting } from '../../src/config/settings.ts';
import { openStore } from '../../src/store/open.ts';
import type { Store } from '../../src/store/store.ts';
import { temporaryFolder } from './folder.ts';
import { freshDatabase } from './postgres.ts';

export interface TestedStore {
  readonly name: 'sqlite' | 'postgres';
  /** An empty store, gone with the test; the caller closes it. */
  readonly open: () => Promise<Store>;
}

export const STORES: readonly TestedStore[] = [
  {
    name: 'sqlite',
    open: () => openStore({ kind: 'sqlite', path: join(temporaryFolder(), 'postrider.db') }, { exclusive: true }),
  },
  { name: 'postgres', open: async () => openStore(settingOf(await freshDatabase()), { exclusive: true }) },
];

/** A URL as the setting that it is. */
export function settingOf(url: string): DatabaseSetting {
  const parsed = parseDatabaseUrl(url);
  if (!parsed.ok) throw new Error(parsed.fault);
  return parsed.value;
}

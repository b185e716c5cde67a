/** Chooses the store that the settings name. */
import type { DatabaseSetting } from '../config/settings.ts';
import { openSqliteStore } from './sqlite/store.ts';
import type { Store } from './store.ts';

/** Opens the store; `exclusive` for a service, which may be the only one on an embedded file. Rejects with a StoreError. */
export function openStore(database: DatabaseSetting, options: { readonly exclusive: boolean }): Promise<Store> {
  switch (database.kind) {
    case 'sqlite':
      return openSqliteStore({ path: database.path, exclusive: options.exclusive });
  }
}

/** Chooses the store that the settings name. */
import type { DatabaseSetting } from '../config/settings.ts';
import type { Store } from './contract.ts';
import { type StoreEnvironment, SYSTEM_ENVIRONMENT } from './environment.ts';
import type { FilesFault } from './sqlite/thread.ts';

export interface OpenOptions {
  /** True for a service, which may be the only one on an embedded file. */
  readonly exclusive: boolean;
  /** True for a caller that asks little and ends: an embedded store starts no thread, and each call is done when it returns. */
  readonly inCaller?: boolean;
  /** The node's name, shown by the database server. */
  readonly node?: string;
  /** Told, in one line each, what endangers mail on this database. */
  readonly warn?: (line: string) => void;
  /** Told in one line what the opening waits for, where that takes more than a few seconds. */
  readonly onWait?: (line: string) => void;
  /** Clock and random source of a simulation. Default: those of the machine. */
  readonly environment?: StoreEnvironment;
  /** Called within one second after files of an embedded database were removed or replaced; with null when they are back. */
  readonly onFilesFault?: (fault: FilesFault | null) => void;
}

/** Opens the store; rejects with a StoreError. Only the files of that database are loaded. */
export async function openStore(database: DatabaseSetting, options: OpenOptions): Promise<Store> {
  const {
    exclusive,
    node = 'command',
    warn = () => undefined,
    onWait: waiting = () => undefined,
    environment: surroundings = SYSTEM_ENVIRONMENT,
    onFilesFault,
  } = options;
  const { inCaller = surroundings.simulated } = options;
  switch (database.kind) {
    case 'sqlite': {
      const { openSqliteStore } = await import('./sqlite/store.ts');
      return openSqliteStore({
        path: database.path,
        exclusive,
        inCaller,
        environment: surroundings,
        ...(onFilesFault === undefined ? {} : { onFilesFault }),
      });
    }
    case 'postgres': {
      const { openPostgresStore } = await import('./postgres/store.ts');
      return openPostgresStore({
        setting: database,
        service: exclusive,
        application: `postrider ${node}`,
        environment: surroundings,
        warn,
        onWait: waiting,
      });
    }
  }
}

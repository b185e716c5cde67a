import type { DatabaseSetting } from '../config/settings.ts';
import type { Standby } from '../model/node.ts';
import type { Store } from './contract.ts';
import { type StoreEnvironment, SYSTEM_ENVIRONMENT } from './environment.ts';
import type { FilesFault } from './sqlite/thread.ts';

export interface OpenOptions {
  readonly exclusive: boolean;
  /** True for a short command: an embedded store starts no thread and completes each call synchronously. */
  readonly runsInCallerThread?: boolean;
  /** If true, no message is accepted while the server does not require a synchronous standby. Default: false. */
  readonly requireSyncStandby?: boolean;
  readonly onStandby?: (standby: Standby) => void;
  readonly node?: string;
  /** Called with one line for each setting of the database server because of which accepted messages may be lost. */
  readonly warn?: (line: string) => void;
  /** Called once if the store waits for a lock or a standby for more than a few seconds. */
  readonly onWait?: (line: string) => void;
  readonly environment?: StoreEnvironment;
  /** Called within one second after files are removed or replaced, and with null when they are back. */
  readonly onFilesFault?: (fault: FilesFault | null) => void;
}

/** Opens the store. Rejects with a StoreError. Loads only the modules of the configured database. */
export async function openStore(database: DatabaseSetting, options: OpenOptions): Promise<Store> {
  const {
    exclusive,
    node = 'command',
    warn = () => undefined,
    onWait = () => undefined,
    environment = SYSTEM_ENVIRONMENT,
    requireSyncStandby = false,
    onStandby = () => undefined,
    onFilesFault,
  } = options;
  const { runsInCallerThread = environment.isSimulated } = options;
  switch (database.kind) {
    case 'sqlite': {
      const { openSqliteStore } = await import('./sqlite/store.ts');
      return openSqliteStore({
        path: database.path,
        exclusive,
        runsInCallerThread,
        environment,
        ...(onFilesFault === undefined ? {} : { onFilesFault }),
      });
    }
    case 'postgres': {
      const { openPostgresStore } = await import('./postgres/store.ts');
      return openPostgresStore({
        setting: database,
        isService: exclusive,
        application: `postrider ${node}`,
        environment,
        requireSyncStandby,
        onStandby,
        warn,
        onWait,
      });
    }
  }
}

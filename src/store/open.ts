/** Opens the store that the setting `POSTRIDER_DATABASE` selects. */
import type { DatabaseSetting } from '../config/settings.ts';
import type { Standby } from '../model/node.ts';
import type { Store } from './contract.ts';
import { type StoreEnvironment, SYSTEM_ENVIRONMENT } from './environment.ts';
import type { FilesFault } from './sqlite/thread.ts';

export interface OpenOptions {
  /** True for a service. Only one service at a time may use an embedded database. */
  readonly exclusive: boolean;
  /** True for a short command: an embedded store starts no thread and completes each call synchronously. */
  readonly runsInCallerThread?: boolean;
  /** If true, no message is accepted while the server does not require a synchronous standby. Default: false. */
  readonly requireSyncStandby?: boolean;
  /** Called with the status of the standby of a database server. */
  readonly onStandby?: (standby: Standby) => void;
  /** The name of the node. The database server shows it in its list of connections. */
  readonly node?: string;
  /** Called with one line for each setting of the database server because of which accepted messages may be lost. */
  readonly warn?: (line: string) => void;
  /**
   * Called with one line if opening the store takes more than a few seconds because the store waits for a lock or a
   * standby.
   */
  readonly onWait?: (line: string) => void;
  /** The clock and the random source, which a simulation replaces. Default: those of the operating system. */
  readonly environment?: StoreEnvironment;
  /**
   * Called with a fault within one second after files of an embedded database are removed or replaced, and with null
   * when the files are present again.
   */
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

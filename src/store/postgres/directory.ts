/** Reports changes of the directory to this node, after a notification and at the latest after the poll interval. */
import { once } from 'node:events';
import { runEvery } from '../../clock.ts';
import type { DirectoryChanges } from '../../model/account.ts';
import { readDirectorySince } from '../directory.ts';
import type { StoreEnvironment } from '../environment.ts';
import { DIRECTORY_CHANNEL } from '../transaction.ts';
import type { Pool, SeparateConnection } from './database.ts';

/** Poll interval. A change must be visible on every node within one second. */
const POLL_INTERVAL_MS = 400;
const LISTEN_RETRY_MS = 1_000;

export function prepareDirectory(pool: Pool, { clock, isSimulated }: StoreEnvironment) {
  let isStopped = false;
  const disposers = new Set<() => void>();

  async function watchDirectory(onChange: (changes: DirectoryChanges) => void): Promise<void> {
    let revision = -1;
    let isPolling = false;
    let isPollRequested = false;
    const pollChanges = async () => {
      if (isPolling) {
        isPollRequested = true;
        return;
      }
      isPolling = true;
      try {
        do {
          isPollRequested = false;
          const changes = await readDirectorySince(pool, revision);
          if (changes === null) continue;
          revision = changes.revision;
          onChange(changes);
        } while (isPollRequested);
      } finally {
        isPolling = false;
      }
    };
    await pollChanges();
    const triggerPoll = () => void pollChanges().catch(() => undefined);
    disposers.add(runEvery(clock, POLL_INTERVAL_MS, triggerPoll));
    // A simulation does not listen for notifications, because it cannot control when they arrive.
    // A pooler in transaction mode delivers no notifications.
    if (!isSimulated && (pool.setting.pooler === null || pool.setting.direct !== null)) listenForChanges(triggerPoll);
  }

  /** Calls `onNotification` on each notification. Uses a separate connection, which is reopened if it is lost. */
  function listenForChanges(onNotification: () => void): void {
    let connection: SeparateConnection | null = null;
    let cancelRetry: () => void = () => undefined;
    const openListener = async () => {
      try {
        connection = await pool.connect();
        if (isStopped) return void connection.close();
        connection.client.on('notification', onNotification);
        await connection.run(`LISTEN ${DIRECTORY_CHANNEL}`);
        onNotification();
        await once(connection.client, 'end');
      } catch {
        // Polling continues while there is no connection.
      }
      void connection?.close();
      connection = null;
      if (isStopped) return;
      cancelRetry = clock.after(LISTEN_RETRY_MS, () => void openListener());
    };
    void openListener();
    disposers.add(() => {
      void connection?.close();
      cancelRetry();
    });
  }

  return {
    watchDirectory,
    stopWatching(): void {
      isStopped = true;
      for (const dispose of disposers) dispose();
    },
  };
}

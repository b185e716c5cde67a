/** The database, the relay and the provider that `doctor` checks. Each is loaded and opened only for its check. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { OpenResult } from '../checks/database.ts';
import type { Installation } from '../checks/probes.ts';
import type { MonotonicClock } from '../clock.ts';
import type { Settings } from '../config/settings.ts';
import { getDataFolder } from '../domains/setup.ts';
import type { Standby } from '../model/node.ts';
import type { RouteTestContext } from '../operations/operation.ts';
import { describeError } from '../printing/escape.ts';

const CLOSE_MS = 1_000;

export function createInstallation(
  { database, routes }: Pick<Settings, 'database' | 'routes'>,
  clock: MonotonicClock,
  withStore: Installation['withStore'],
): Installation {
  return {
    withStore,
    async findMissingDatabase() {
      return database.kind === 'sqlite' && !existsSync(database.path) ? explainMissingDatabase(database.path) : null;
    },
    async readDatabaseWarnings() {
      const lines: string[] = [];
      let standby: Standby | null = null;
      if (database.kind === 'sqlite') return { lines, standby };
      try {
        const { openStore } = await import('../store/open.ts');
        const onStandby = (found: Standby) => {
          standby = found;
        };
        const warn = (line: string) => void lines.push(line);
        await (await openStore(database, { exclusive: true, warn, onStandby })).close();
      } catch {
        // Another check reports why the database cannot be opened.
      }
      return { lines, standby };
    },
    probeRelay(setting, timeoutMs) {
      if (setting.kind !== 'smtp') return null;
      return import('../transports/smtp/probe.ts').then(({ probeRelay }) => probeRelay(setting, clock, timeoutMs));
    },
    async readSesAccount(setting, timeoutMs) {
      if (setting.kind !== 'ses') throw new Error('the transport is not Amazon SES');
      const { createSesClient } = await import('../transports/ses/client.ts');
      const client = await createSesClient(setting, 1, clock);
      try {
        return await client.getAccount(AbortSignal.timeout(timeoutMs));
      } finally {
        client.close();
      }
    },
    async openSesSuppressionList() {
      const { listSesApiSettings, openSesSuppressionList } = await import('../domains/ses-suppression-list.ts');
      const [setting] = listSesApiSettings(routes);
      return setting === undefined ? null : openSesSuppressionList(setting);
    },
    wait: async (ms) => void (await wait(ms)),
  };
}

/** A connection of its own, so that a test neither waits for nor changes what the queue does. */
export function createAttemptOverRoute(
  { database }: Pick<Settings, 'database'>,
  clock: MonotonicClock,
): RouteTestContext['attemptOverRoute'] {
  return async (setting, message) => {
    const { openTransport } = await import('../transports/open.ts');
    const inboxPath = join(getDataFolder(database), 'inbox');
    const parts = { clock, inboxPath, consumeInboxRule: async () => null, onError: () => undefined };
    const { transport } = openTransport(setting, parts);
    try {
      return await transport.attempt(message, null);
    } finally {
      await transport.close(CLOSE_MS);
    }
  };
}

/** Was it never created, or removed? */
async function explainMissingDatabase(path: string): Promise<OpenResult> {
  const { isServeLockHeld, requireUsableFiles, resolveDatabasePath } = await import('../store/sqlite/files.ts');
  try {
    if (isServeLockHeld(path)) {
      const reason = `the database ${path} was removed or moved, and a service still uses it`;
      return { kind: 'failed', reason };
    }
    requireUsableFiles(resolveDatabasePath(path));
    return { kind: 'absent' };
  } catch (error) {
    return { kind: 'failed', reason: describeError(error) };
  }
}

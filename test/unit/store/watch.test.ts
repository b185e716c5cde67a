import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openSqliteStore } from '../../../src/store/sqlite/store.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';
import { NO_LIMITS } from '../../rig/messages.ts';

test('if any process locks an account, the service detects the lock even if the first poll after it fails', async () => {
  const path = join(createTemporaryFolder(), 'postrider.db');
  const worker = new URL('./failing-poll-worker.ts', import.meta.url);
  const service = await openSqliteStore({ path, exclusive: true, worker });
  const command = await openSqliteStore({ path, exclusive: false });
  onTestFinished(async () => {
    await Promise.all([service.close(), command.close()]);
  });
  await command.createAccount('shop', NO_LIMITS, 1);
  const lockReasons = new Map<string, string | null>();
  await service.watchDirectory(({ accounts }) => {
    for (const { name, locked } of accounts) lockReasons.set(name, locked?.reason ?? null);
  });
  for (const [locker, reason] of [[command, 'by a command'] as const, [service, 'by itself'] as const]) {
    writeFileSync(`${path}-fail`, '');
    await locker.lockAccount('shop', reason, 2);
    await expect.poll(() => existsSync(`${path}-fail`)).toBe(false);
    await expect.poll(() => lockReasons.get('shop')).toBe(reason);
  }
});

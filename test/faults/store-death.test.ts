import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startService } from '../../src/main.ts';
import { openSqliteStore } from '../../src/store/sqlite/store.ts';
import { createTemporaryFolder } from '../rig/folder.ts';
import { loadServiceSettings, runJsonCommand, startProcess, submitAccepted, submitUnderLoad } from '../rig/service.ts';

const KILLABLE_THREADS = new URL('../rig/killable-threads.ts', import.meta.url).href;

test('if the thread of the store ends, serve exits with a one-line error and code 1, and the restarted service has the accepted message', async () => {
  const folder = createTemporaryFolder();
  const firstService = await startProcess(folder, { NODE_OPTIONS: `--import ${KILLABLE_THREADS}` });
  const id = await submitAccepted(firstService.publicUrl, firstService.key ?? '');
  writeFileSync(join(folder, 'die'), '');
  expect(await firstService.exitPromise).toBe(1);
  expect(firstService.stderr()).toMatch(/^postrider: the store's thread has ended\. [^\n]+\n$/);
  rmSync(join(folder, 'die'));
  const secondService = await startProcess(folder);
  expect((await submitUnderLoad(secondService.publicUrl, firstService.key ?? '')).status).toBe(201);
  await expect
    .poll(() => runJsonCommand<{ id: string; state: string }[]>(folder, ['message', 'list', '--state', 'delivered']))
    .toContainEqual(expect.objectContaining({ id }));
});

test('after the thread of the store has ended, readiness reports the fault and a submission is answered with 500', async () => {
  const path = join(createTemporaryFolder(), 'postrider.db');
  const worker = new URL('../unit/store/dying-worker.ts', import.meta.url);
  const store = await openSqliteStore({ path, exclusive: true, worker });
  const service = await startService(loadServiceSettings(path), { openStore: async () => store, drainMs: 500 });
  writeFileSync(`${path}-die`, '');
  await expect(store.listAccounts()).rejects.toThrow();
  expect((await service.failed).message).toContain("the store's thread has ended");
  const readiness = await fetch(`${service.publicUrl}/readyz`);
  expect([readiness.status, await readiness.json()]).toMatchObject([
    503,
    { message: expect.stringContaining('the store') },
  ]);
  expect((await submitUnderLoad(service.publicUrl ?? '', service.firstKey ?? '')).status).toBe(500);
  await service.stop();
});

test('a failed start reports its reason and releases the store, even if closing the store reports an error', async () => {
  const path = join(createTemporaryFolder(), 'postrider.db');
  const openStore = async () => {
    const store = await openSqliteStore({ path, exclusive: true });
    return {
      ...store,
      findNewestId: () => Promise.reject(new Error('the reason')),
      close: async () => {
        await store.close();
        throw new Error('cannot close');
      },
    };
  };
  await expect(startService(loadServiceSettings(path), { openStore })).rejects.toThrow('the reason');
  const reopenedStore = await openSqliteStore({ path, exclusive: true });
  expect(await reopenedStore.listAccounts()).toEqual([]);
  await reopenedStore.close();
});

test('a shutdown in which a step fails performs all remaining steps and reports the error', async () => {
  const path = join(createTemporaryFolder(), 'postrider.db');
  const store = await openSqliteStore({ path, exclusive: true });
  const service = await startService(loadServiceSettings(path), {
    openStore: async () => ({
      ...store,
      // `updateKeysLastUsed` and `release` are the last writes before the store is closed.
      updateKeysLastUsed: () => Promise.reject(new Error('no keys')),
      release: () => Promise.reject(new Error('no release')),
      close: async () => {
        await store.close();
        throw new Error('cannot close');
      },
    }),
    drainMs: 500,
  });
  await expect(service.stop()).rejects.toThrow('cannot close');
  await expect(fetch(`${service.publicUrl}/healthz`)).rejects.toThrow();
  await (await openSqliteStore({ path, exclusive: true })).close();
});

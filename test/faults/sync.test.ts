import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startService } from '../../src/main.ts';
import { openSqliteStore } from '../../src/store/sqlite/store.ts';
import { createTemporaryFolder } from '../rig/folder.ts';
import { loadServiceSettings, submitUnderLoad } from '../rig/service.ts';

async function startServiceWithControlledCommit(extraSettings: Record<string, string> = {}) {
  const path = join(createTemporaryFolder(), 'postrider.db');
  const setCommitMode = (mode: 'normal' | 'slow' | 'fail') => writeFileSync(`${path}-commit-mode`, mode);
  setCommitMode('normal');
  const settings = loadServiceSettings(path, extraSettings);
  const worker = new URL('../rig/delayed-commit-worker.ts', import.meta.url);
  const service = await startService(settings, {
    openStore: () => openSqliteStore({ path, exclusive: true, worker }),
    drainMs: 500,
  });
  onTestFinished(async () => {
    setCommitMode('normal');
    await service.stop();
  });
  const url = service.publicUrl ?? '';
  return {
    path,
    setCommitMode,
    url,
    send: () => submitUnderLoad(url, service.firstKey ?? '', { to: 'success@simulator.postrider.test' }),
  };
}

test('the client receives the 201 only after the commit is synced to disk', async () => {
  // The service has no role `deliver`, so that only requests cause commits.
  const { path, setCommitMode, send, url } = await startServiceWithControlledCommit({ POSTRIDER_ROLES: 'api' });
  expect((await send()).status).toBe(201);
  setCommitMode('slow');
  rmSync(`${path}-synced`, { force: true });
  let isAnswered = false;
  const answer = send().then((response) => {
    isAnswered = true;
    return { status: response.status, synced: existsSync(`${path}-synced`) };
  });
  const findWaitingCommit = () =>
    existsSync(`${path}-waiting-commit`) ? readFileSync(`${path}-waiting-commit`, 'utf8') : null;
  await expect.poll(findWaitingCommit).toBe('2');
  // The rows are written and only their sync is pending. A premature response would arrive before the next check.
  for (let n = 0; n < 5; n += 1) expect((await fetch(`${url}/healthz`)).status).toBe(200);
  expect(isAnswered).toBe(false);
  setCommitMode('normal');
  expect(await answer).toEqual({ status: 201, synced: true });
});

test('a request whose sync fails is answered with 500, and readiness reports the fault until commits succeed again', async () => {
  const { setCommitMode, send, url } = await startServiceWithControlledCommit();
  setCommitMode('fail');
  const response = await send();
  expect(response.status).toBe(500);
  expect(await response.json()).toEqual({ result: 'error', message: 'Internal server error' });
  expect(Number(response.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
  const readiness = await fetch(`${url}/readyz`);
  expect([readiness.status, await readiness.json()]).toEqual([
    503,
    { result: 'error', message: expect.stringContaining('the store cannot commit') },
  ]);
  setCommitMode('normal');
  await expect.poll(async () => (await fetch(`${url}/readyz`)).status).toBe(200);
  expect((await send()).status).toBe(201);
});

test('readiness reports a store that cannot commit, even if there are no requests', async () => {
  const { setCommitMode, url } = await startServiceWithControlledCommit();
  setCommitMode('fail');
  await expect.poll(async () => (await fetch(`${url}/readyz`)).status).toBe(503);
});

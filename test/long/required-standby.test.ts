import { expect, onTestFinished, test, vi } from 'vitest';
import { STANDBY_TEXTS, type Standby } from '../../src/model/node.ts';
import { openStore } from '../../src/store/open.ts';
import { createTemporaryFolder } from '../rig/folder.ts';
import { createMessage, NO_LIMITS } from '../rig/messages.ts';
import { startPostgres, startStandby } from '../rig/postgres.ts';
import { runCommand, startProcess } from '../rig/service.ts';
import { parsePostgresUrl } from '../rig/stores.ts';

const WAIT_OPTIONS = { timeout: 120_000 };
const STANDBY_ERROR_PATTERN = /the server does not require a synchronous standby\. Set synchronous_standby_names/;

async function readReports(url: string): Promise<{ readonly doctor: unknown; readonly start: unknown }> {
  const folder = createTemporaryFolder();
  const settings = { POSTRIDER_DATABASE: url, POSTRIDER_SECRET: 'ab'.repeat(32) };
  const { stdout } = await runCommand(folder, ['doctor', '--json'], settings);
  const node = await startProcess(folder, { ...settings, POSTRIDER_LOG: 'info' });
  const logLines = () =>
    node
      .stdout()
      .split('\n')
      .filter((line) => line.includes('"store.standby"'));
  await expect.poll(logLines).toHaveLength(1);
  node.kill('SIGTERM');
  await node.exitPromise;
  const findings = JSON.parse(stdout) as readonly { readonly check: string }[];
  return {
    doctor: findings.find(({ check }) => check === 'standby'),
    start: JSON.parse(logLines()[0] ?? ''),
  };
}

async function readStandby(url: string): Promise<Standby | null> {
  const reportedStandbys: Standby[] = [];
  const onStandby = (standby: Standby) => void reportedStandbys.push(standby);
  await (await openStore(parsePostgresUrl(url), { exclusive: true, onStandby })).close();
  return reportedStandbys[0] ?? null;
}

function createExpectedReports(standby: Standby) {
  const detail = STANDBY_TEXTS[standby];
  const remedy = standby === 'asynchronous' ? 'set synchronous_standby_names on the server' : null;
  return {
    doctor: { check: 'standby', result: standby === 'asynchronous' ? 'warning' : 'ok', detail, remedy },
    start: expect.objectContaining({ level: 'info', event: 'store.standby', reason: standby, detail }),
  };
}

test('doctor and the start report whether the server has a standby, whether commits wait for it, and whether the role can see it', async () => {
  const server = await startPostgres();
  const url = await server.createDatabase();
  expect(await readReports(url)).toEqual(createExpectedReports('none'));
  await server.run("CREATE ROLE plain LOGIN PASSWORD 'plain'");
  await server.run('CREATE DATABASE plain OWNER plain');
  const plainRoleUrl = new URL(server.url('plain'));
  plainRoleUrl.username = 'plain';
  plainRoleUrl.password = 'plain';
  expect(await readReports(plainRoleUrl.href)).toEqual(createExpectedReports('hidden'));

  await startStandby(server);
  expect(await readReports(url)).toEqual(createExpectedReports('synchronous'));
  expect(await readStandby(plainRoleUrl.href)).toBe('synchronous');

  await server.run("ALTER SYSTEM SET synchronous_standby_names = ''");
  await server.run('SELECT pg_reload_conf()');
  expect(await readReports(url)).toEqual(createExpectedReports('asynchronous'));
  await server.run('GRANT pg_read_all_stats TO plain');
  expect(await readStandby(plainRoleUrl.href)).toBe('asynchronous');
}, 240_000);

test('messages are accepted only while the server requires a synchronous standby', async () => {
  const server = await startPostgres();
  const url = await server.createDatabase();
  const store = await openStore(parsePostgresUrl(url), { exclusive: true, requireSyncStandby: true });
  onTestFinished(() => store.close());
  await store.createAccount('default', NO_LIMITS, 1);
  await startStandby(server);
  await vi.waitFor(
    async () => expect(await store.accept([createMessage()])).toMatchObject([{ kind: 'accepted' }]),
    WAIT_OPTIONS,
  );
  await server.run("ALTER SYSTEM SET synchronous_standby_names = ''");
  await server.run('SELECT pg_reload_conf()');
  await vi.waitFor(() => expect(store.accept([createMessage()])).rejects.toThrow(STANDBY_ERROR_PATTERN), WAIT_OPTIONS);
  await vi.waitFor(() => expect(store.probe()).rejects.toThrow(STANDBY_ERROR_PATTERN), WAIT_OPTIONS);
});

/** POSTRIDER_REQUIRE_SYNC_STANDBY, and what is known of the standby of the server. */
import { expect, onTestFinished, test, vi } from 'vitest';
import type { Standby } from '../../src/model/node.ts';
import { openStore } from '../../src/store/open.ts';
import { temporaryFolder } from '../rig/folder.ts';
import { NO_LIMITS, newMessage } from '../rig/messages.ts';
import { startPostgres, startStandby } from '../rig/postgres.ts';
import { startProcess, submit } from '../rig/service.ts';
import { parsePostgresUrl } from '../rig/stores.ts';

const PATIENCE = { timeout: 60_000 };
const REFUSED = /the server demands no synchronous standby\. Set synchronous_standby_names/;

test('messages are accepted only while the server demands a synchronous standby, and the kind of the standby is known', async () => {
  const server = await startPostgres();
  const url = await server.createDatabase();
  const standbyOf = async (of: string): Promise<Standby | null> => {
    let standby: Standby | null = null;
    const onStandby = (found: Standby) => {
      standby = found;
    };
    await (await openStore(parsePostgresUrl(of), { exclusive: true, onStandby })).close();
    return standby;
  };
  expect(await standbyOf(url)).toBe('none');
  const store = await openStore(parsePostgresUrl(url), { exclusive: true, requireSyncStandby: true });
  onTestFinished(() => store.close());
  await store.createAccount('default', NO_LIMITS, 1);
  await expect(store.accept([newMessage()])).rejects.toThrow(REFUSED);
  await expect(store.probe()).rejects.toThrow(REFUSED);

  const settings = {
    POSTRIDER_DATABASE: url,
    POSTRIDER_SECRET: 'ab'.repeat(32),
    POSTRIDER_SENDERS: 'any',
    POSTRIDER_REQUIRE_SYNC_STANDBY: 'yes',
  };
  await server.run('CREATE DATABASE service');
  const node = await startProcess(temporaryFolder(), { ...settings, POSTRIDER_DATABASE: server.url('service') });
  const answer = async () => (await submit(node.publicUrl, node.key ?? '')).status;
  const readiness = async () => (await fetch(`${node.publicUrl}/readyz`)).status;
  expect(await answer()).toBe(500);
  await expect.poll(readiness).toBe(503);

  await startStandby(server);
  await vi.waitFor(
    async () => expect(await store.accept([newMessage()])).toMatchObject([{ kind: 'accepted' }]),
    PATIENCE,
  );
  await expect.poll(readiness).toBe(200);
  await expect.poll(answer).toBe(201);
  expect(await standbyOf(url)).toBe('synchronous');

  await server.run("ALTER SYSTEM SET synchronous_standby_names = ''");
  await server.run('SELECT pg_reload_conf()');
  await vi.waitFor(() => expect(store.accept([newMessage()])).rejects.toThrow(REFUSED), PATIENCE);
  await expect.poll(readiness).toBe(503);
  expect(await standbyOf(url)).toBe('asynchronous');
  await server.run("CREATE ROLE plain LOGIN PASSWORD 'plain'");
  await server.run('CREATE DATABASE plain OWNER plain');
  const plain = new URL(server.url('plain'));
  plain.username = 'plain';
  plain.password = 'plain';
  expect(await standbyOf(plain.href)).toBe('hidden');
});

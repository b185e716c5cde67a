import { expect, onTestFinished, test, vi } from 'vitest';
import { openStore } from '../../src/store/open.ts';
import { prepareAccept } from '../../src/store/postgres/accept.ts';
import { expectOneLineErrors, findMissingIds, openStoreAt, SENDER_COUNT, startAccepting } from '../rig/accept-load.ts';
import { NO_LIMITS } from '../rig/messages.ts';
import { createTemporaryDatabase, startPostgres, startStandby } from '../rig/postgres.ts';
import { createTestPool, parsePostgresUrl } from '../rig/stores.ts';
import { startTcpProxy } from '../rig/tcp-proxy.ts';

/** Time limit of one statement in tests that wait until the limit has passed. */
const LIMIT_MS = 2_000;
const WAIT_OPTIONS = { timeout: 120_000 };

test('after a restart of the server, the store continues to report changes of the directory', async () => {
  const server = await startPostgres();
  const url = await server.createDatabase();
  const store = await openStoreAt(url);
  const lockedNames: string[] = [];
  await store.watchDirectory(({ accounts }) => {
    lockedNames.push(...accounts.filter((account) => account.locked !== null).map(({ name }) => name));
  });
  await server.restart();
  await vi.waitFor(() => store.lockAccount('default', 'test', 1), WAIT_OPTIONS);
  await expect.poll(() => lockedNames).toEqual(['default']);
}, 300_000);

test('a network path that drops packets blocks no call for longer than its time limit, and the store continues after the path is restored', async () => {
  const url = new URL(await createTemporaryDatabase());
  await openStoreAt(url.href);
  const proxy = await startTcpProxy(Number(url.port));
  url.port = String(proxy.port);
  const pool = createPoolFor(url.href);
  const acceptLoad = startAccepting(prepareAccept(pool));
  await acceptLoad.waitForAcknowledgements(40);
  proxy.pause();
  await expect.poll(() => acceptLoad.errors.length).toBeGreaterThanOrEqual(SENDER_COUNT);
  proxy.resume();
  await acceptLoad.waitForAcknowledgements(40);
  await acceptLoad.end();
  expectOneLineErrors(acceptLoad.errors);
  expect(await findMissingIds(acceptLoad, url.href)).toEqual([]);
}, 300_000);

test('after a failover the same store continues on the promoted standby with every acknowledged message', async () => {
  const primary = await startPostgres();
  const url = await primary.createDatabase();
  const { pathname } = new URL(url);
  const initialStore = await openStore(parsePostgresUrl(url), { exclusive: true });
  await initialStore.createAccount('default', NO_LIMITS, 1);
  await initialStore.close();
  const standby = await startStandby(primary);
  const bothHostsUrl = `postgres://postrider:postrider@127.0.0.1:${primary.port},127.0.0.1:${standby.port}${pathname}?sslmode=disable`;
  const store = await openStore(parsePostgresUrl(bothHostsUrl), { exclusive: true });
  onTestFinished(() => store.close());
  const acceptLoad = startAccepting(store.accept);
  await acceptLoad.waitForAcknowledgements(100);
  await primary.crash();
  const countBefore = acceptLoad.acknowledgedIds.length;
  await standby.run('SELECT pg_promote()');
  await acceptLoad.waitForAcknowledgements(100);
  await acceptLoad.end();
  expect(countBefore).toBeGreaterThanOrEqual(100);
  expectOneLineErrors(acceptLoad.errors);
  expect(await findMissingIds(acceptLoad, standby.url(pathname.slice(1)))).toEqual([]);
}, 300_000);

const createPoolFor = (url: string) => createTestPool(url, { statementTimeoutMs: LIMIT_MS });

import { expect, onTestFinished, test, vi } from 'vitest';
import type { ImportStep } from '../../src/model/audit.ts';
import type { Lease } from '../../src/model/message.ts';
import type { Store } from '../../src/store/contract.ts';
import { openStore } from '../../src/store/open.ts';
import { forceDurableCommit } from '../../src/store/postgres/session.ts';
import { createVirtualClock } from '../rig/clock.ts';
import { startCommitProxy } from '../rig/commit-proxy.ts';
import { createMessage, createSettlement, NO_LIMITS } from '../rig/messages.ts';
import { connectClient, type PostgresServer, startPostgres, startStandby } from '../rig/postgres.ts';
import { createReport, HARD_BOUNCE } from '../rig/reports.ts';
import { createTestPool, parsePostgresUrl } from '../rig/stores.ts';

const WAIT_OPTIONS = { timeout: 120_000 };
const DAY_MS = 86_400_000;
interface ServerPair {
  readonly primary: PostgresServer;
  readonly standby: PostgresServer;
  readonly database: string;
  readonly store: Store;
  cancelWaits(backendFunction?: 'pg_cancel_backend' | 'pg_terminate_backend'): Promise<number>;
}

async function startPair(): Promise<ServerPair> {
  const primary = await startPostgres();
  const primaryUrl = await primary.createDatabase();
  const name = new URL(primaryUrl).pathname.slice(1);
  const firstStore = await openStore(parsePostgresUrl(primaryUrl), { exclusive: true });
  await firstStore.createAccount('default', NO_LIMITS, 1);
  await firstStore.close();
  const standby = await startStandby(primary);
  const url = `postgres://postrider:postrider@127.0.0.1:${primary.port},127.0.0.1:${standby.port}/${name}?sslmode=disable`;
  const store = await openStore(parsePostgresUrl(url), { exclusive: true });
  onTestFinished(() => store.close());
  const adminClient = await connectClient(primaryUrl);
  adminClient.on('error', () => undefined);
  return {
    primary,
    standby,
    database: name,
    store,
    async cancelWaits(backendFunction = 'pg_cancel_backend') {
      const cancelledWaits = await adminClient.query(
        `SELECT ${backendFunction}(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`,
      );
      return cancelledWaits.rows.length;
    },
  };
}

async function readResultDuringCancels(
  call: Promise<unknown>,
  { cancelWaits }: ServerPair,
  backendFunction?: 'pg_cancel_backend' | 'pg_terminate_backend',
): Promise<{ readonly acknowledged: unknown } | { readonly refused: string }> {
  let hasCallEnded = false;
  const resultPromise = call.then(
    (acknowledged) => ({ acknowledged }),
    (error: unknown) => ({ refused: String(error) }),
  );
  void resultPromise.then(() => {
    hasCallEnded = true;
  });
  while (!hasCallEnded) await cancelWaits(backendFunction);
  return resultPromise;
}

interface Operation {
  readonly name: string;
  readonly run: (store: Store) => Promise<unknown>;
  readonly repeatedResult: unknown;
}

async function prepareOperations(store: Store): Promise<readonly Operation[]> {
  const now = Date.now();
  const lease: Lease = { owner: 'node', until: now + DAY_MS };
  const [plainMessage, keyedMessage, cancelledMessage] = [createMessage(), createMessage(), createMessage()];
  const [leasedMessage, reportedMessage] = [createMessage(), createMessage()];
  const leasedMessages = [leasedMessage, reportedMessage].map((message) => ({ ...message, lease, attempts: 1 }));
  await store.accept([...leasedMessages, cancelledMessage]);
  await store.settle(
    leasedMessages.filter(({ id }) => id === reportedMessage.id).map((message) => createSettlement(message)),
  );
  const createSuppression = (address: string) => ({ address, reason: 'manual', source: null, at: now }) as const;
  await store.addSuppressions('default', [createSuppression('gone@example.com')]);
  const report = createReport({ id: reportedMessage.id }, HARD_BOUNCE, { at: now, isFinal: true });
  return [
    { name: 'a message', run: (target) => target.accept([plainMessage]), repeatedResult: [{ kind: 'accepted' }] },
    {
      name: 'a message with an Idempotency-Key',
      run: (target) =>
        target.accept([
          createMessage({ ...keyedMessage, id: createMessage().id, idempotency: { key: 'k', fingerprint: 'f' } }),
        ]),
      repeatedResult: [{ kind: 'replayed' }],
    },
    {
      name: 'an Idempotency-Key that is used for another message',
      run: (target) => target.accept([createMessage({ idempotency: { key: 'k', fingerprint: 'other' } })]),
      repeatedResult: [{ kind: 'idempotency-conflict' }],
    },
    {
      name: 'a suppression',
      run: (target) => target.addSuppressions('default', [createSuppression('new@example.com')]),
      repeatedResult: { kind: 'done', value: 0 },
    },
    {
      name: 'a removed suppression',
      run: (target) => target.removeSuppression('default', 'gone@example.com'),
      repeatedResult: { kind: 'done', value: false },
    },
    {
      name: 'an account',
      run: (target) => target.createAccount('shop', NO_LIMITS, now),
      repeatedResult: { kind: 'exists' },
    },
    { name: 'a lock', run: (target) => target.lockAccount('shop', 'test', now), repeatedResult: { kind: 'done' } },
    {
      name: 'a batch of an import',
      run: (target) => target.importSuppressions('default', [createSuppression('new@example.net')], IMPORT_STEP),
      repeatedResult: { kind: 'done', value: { added: 0, entry: null } },
    },
    {
      name: 'an entry of the audit log',
      run: (target) => target.importSuppressions('default', [], IMPORT_STEP, { name: 'me', at: now }),
      repeatedResult: { kind: 'done', value: { added: 0 } },
    },
    { name: 'a report', run: (target) => target.recordFeedback([report]), repeatedResult: [{ kind: 'repeated' }] },
    {
      name: 'a settlement',
      run: (target) =>
        target.settle(
          leasedMessages.filter(({ id }) => id === leasedMessage.id).map((message) => createSettlement(message)),
        ),
      repeatedResult: ['lost'],
    },
    {
      name: 'a cancelled message',
      run: (target) => target.cancelMessage(cancelledMessage.id, now),
      repeatedResult: { kind: 'wrong-state', state: 'cancelled' },
    },
    { name: 'the health check', run: (target) => target.probe(), repeatedResult: undefined },
  ];
}

function createMatcher(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(createMatcher);
  if (value === null || typeof value !== 'object') return value;
  return expect.objectContaining(
    Object.fromEntries(Object.entries(value).map(([name, member]) => [name, createMatcher(member)])),
  );
}

const IMPORT_STEP: ImportStep = { entry: null, fileBytes: 16, rowCount: 1, skippedCount: 0, end: 'complete' };

test('a change is neither acknowledged nor reported as existing if its wait for the standby was cancelled', async () => {
  const serverPair = await startPair();
  const { store, standby } = serverPair;
  const cases = await prepareOperations(store);
  await standby.crash();
  for (const { name, run } of cases) {
    for (const ordinal of ['first', 'second', 'third']) {
      expect([name, ordinal, await readResultDuringCancels(run(store), serverPair)]).toEqual([
        name,
        ordinal,
        { refused: expect.stringContaining('the wait for the synchronous standby was cancelled') },
      ]);
    }
  }
  await standby.start();
  for (const { name, run, repeatedResult } of cases) {
    const answer = await vi.waitFor(() => run(store), WAIT_OPTIONS);
    expect([name, answer]).toEqual([name, createMatcher(repeatedResult)]);
  }
}, 240_000);

test('a commit that waits for the standby when its connection is terminated is not acknowledged, even if the primary reports it as committed', async () => {
  const serverPair = await startPair();
  const { store, standby, primary, database } = serverPair;
  const proxy = await startCommitProxy(primary.port);
  const proxyUrl = new URL(primary.url(database));
  proxyUrl.port = String(proxy.port);
  const storeBehindProxy = await openStore(parsePostgresUrl(proxyUrl.href), { exclusive: true });
  onTestFinished(() => storeBehindProxy.close());
  await standby.crash();
  proxy.dropCommitResponse();
  const calls = [store.accept([createMessage()]), storeBehindProxy.accept([createMessage()])];
  for (const result of await Promise.all(
    calls.map((call) => readResultDuringCancels(call, serverPair, 'pg_terminate_backend')),
  )) {
    expect(result).toEqual({ refused: expect.stringMatching(/^StoreError: /) });
  }
  expect(proxy.getFaultCount()).toBe(1);
}, 300_000);

test.each(['accept', 'settle', 'create a key'] as const)(
  'the commit of a call to %s, cut off while the standby is frozen, is acknowledged only after the standby has it',
  async (name) => {
    const { store, standby, primary, database } = await startPair();
    const proxy = await startCommitProxy(primary.port);
    const proxyUrl = new URL(primary.url(database));
    proxyUrl.port = String(proxy.port);
    const storeBehindProxy = await openStore(parsePostgresUrl(proxyUrl.href), { exclusive: true });
    onTestFinished(() => storeBehindProxy.close());
    const lease: Lease = { owner: 'node', until: Date.now() + DAY_MS };
    const messages = Array.from({ length: 2 }, () => createMessage(name === 'settle' ? { lease } : {}));
    if (name === 'settle') await store.accept(messages);
    const [refused, acknowledged] = messages.map((message) => ({
      id: message.id,
      run: (): Promise<unknown> => {
        if (name === 'accept') return storeBehindProxy.accept([message]);
        if (name === 'settle') return storeBehindProxy.settle([createSettlement(message)]);
        const key = { name: message.id, prefix: 'pr_1', hash: message.id, expiresAt: null };
        return storeBehindProxy.createKey('default', key, Date.now());
      },
    }));
    if (refused === undefined || acknowledged === undefined) throw new Error('no calls');
    const isStoredOn = async (server: PostgresServer, id: string) => {
      const { rows } = await server.run(
        `SELECT 1 FROM api_key WHERE name = '${id}' UNION ALL
         SELECT 1 FROM mail_request WHERE id = '${id}' AND (state = 'delivered' OR '${name}' = 'accept')`,
        database,
      );
      return rows.length === 1;
    };
    const walReceiver = await standby.run('SELECT pid FROM pg_stat_wal_receiver');
    const signalStandby = (signal: 'SIGSTOP' | 'SIGCONT') =>
      process.kill((walReceiver.rows[0] as { pid: number }).pid, signal);

    signalStandby('SIGSTOP');
    proxy.cutAfterCommit();
    await expect(refused.run()).rejects.toThrow(/^PostgreSQL .*: the connection was lost|^PostgreSQL .*: Connection/);
    // The server process of the call has been ended, so the primary shows a change that the standby does not have.
    expect([await isStoredOn(primary, refused.id), await isStoredOn(standby, refused.id)]).toEqual([true, false]);

    proxy.cutAfterCommit();
    const call = acknowledged.run();
    await expect.poll(() => isStoredOn(primary, acknowledged.id)).toBe(true);
    expect(await isStoredOn(standby, acknowledged.id)).toBe(false);
    signalStandby('SIGCONT');
    await expect(call).resolves.toBeDefined();
    expect(proxy.getFaultCount()).toBe(2);
    await primary.crash();
    await standby.run('SELECT pg_promote()');
    expect(await isStoredOn(standby, acknowledged.id)).toBe(true);
  },
  300_000,
);

test('while the standby is down, abandoned calls hold no server connection', async () => {
  const server = await startPostgres();
  const url = await server.createDatabase();
  const pool = createTestPool(url, { statementTimeoutMs: 2_000 });
  await pool.sync();
  await server.run("ALTER SYSTEM SET synchronous_standby_names = 'away'");
  await server.run('SELECT pg_reload_conf()');
  const countWaits = async () => {
    const { rows } = await server.run("SELECT count(*)::int AS n FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
    return (rows[0] as { n: number }).n;
  };
  const readResults = async () => {
    const calls = [pool.sync(), pool.transaction((transaction) => forceDurableCommit(transaction))];
    return (await Promise.allSettled(calls)).map(({ status }) => status);
  };
  await expect.poll(readResults, WAIT_OPTIONS).toEqual(['rejected', 'rejected']);
  await expect.poll(countWaits, WAIT_OPTIONS).toBe(0);
}, 300_000);

test('a start that waits for a missing standby reports the wait once, with the remedy, and continues when the standby is no longer required', async () => {
  const server = await startPostgres();
  const url = await server.createDatabase();
  await server.run("ALTER SYSTEM SET synchronous_standby_names = 'away'");
  await server.run('SELECT pg_reload_conf()');
  const countWaits = async () => {
    const { rows } = await server.run("SELECT count(*)::int AS n FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
    return (rows[0] as { n: number }).n;
  };
  const clock = createVirtualClock(Date.now());
  const warnings: string[] = [];
  const environment = { clock, random: Math.random, isSimulated: false };
  const storePromise = openStore(parsePostgresUrl(url), {
    exclusive: true,
    environment,
    onWait: (line) => warnings.push(line),
  });
  await expect.poll(countWaits, WAIT_OPTIONS).toBe(1);
  expect(warnings).toEqual([]);
  await vi.waitFor(async () => {
    await clock.advance(5_000);
    expect(warnings).toHaveLength(1);
  }, WAIT_OPTIONS);
  expect(warnings[0]).toContain('synchronous_standby_names = away');
  await clock.advance(60_000);
  await server.run('ALTER SYSTEM RESET synchronous_standby_names');
  await server.run('SELECT pg_reload_conf()');
  await (await storePromise).close();
  expect(warnings).toHaveLength(1);
}, 300_000);

/**
 * Tests several nodes on one PostgreSQL database: limits are exact across all nodes, changes apply on every node, and
 * each node performs only its roles.
 */
import { randomBytes } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { loadSettings } from '../../src/config/load.ts';
import { startService } from '../../src/main.ts';
import { generateApiKey } from '../../src/model/credentials.ts';
import { openStore } from '../../src/store/open.ts';
import { startCountingSink } from '../rig/counting-sink.ts';
import { createTemporaryFolder } from '../rig/folder.ts';
import { createTemporaryDatabase } from '../rig/postgres.ts';
import {
  runCommand,
  runJsonCommand,
  type ServiceProcess,
  startProcess,
  submit,
  submitAccepted,
} from '../rig/service.ts';
import { parsePostgresUrl } from '../rig/stores.ts';
import { startTransactionPooler } from '../rig/transaction-pooler.ts';

const SECRET = 'cd'.repeat(32);

/** Starts nodes on a new database. */
async function startNodes(count: number, settings: Record<string, string> = {}) {
  const sharedSettings = { POSTRIDER_DATABASE: await createTemporaryDatabase(), POSTRIDER_SECRET: SECRET, ...settings };
  const folder = createTemporaryFolder();
  const nodes: ServiceProcess[] = [];
  while (nodes.length < count) nodes.push(await startProcess(createTemporaryFolder(), sharedSettings));
  return {
    sharedSettings,
    nodes,
    key: nodes[0]?.key ?? '',
    runJson: <T>(...args: string[]) => runJsonCommand<T>(folder, args, sharedSettings),
  };
}

/**
 * Creates a database behind a pooler in transaction mode. Returns its setting, without POSTRIDER_DATABASE_DIRECT.
 */
async function createPooledDatabase(): Promise<{ readonly POSTRIDER_DATABASE: string }> {
  const url = new URL(await createTemporaryDatabase());
  url.port = String((await startTransactionPooler(Number(url.port))).port);
  url.searchParams.set('pooler', 'transaction');
  return { POSTRIDER_DATABASE: url.href };
}

/**
 * Locks and unlocks the account `default` and revokes a key. Returns the longest time in ms from the end of a command
 * until the answers of every node show the change.
 */
async function measureChangeDelayMs(
  nodes: readonly ServiceProcess[],
  runJson: <T>(...args: string[]) => Promise<T>,
): Promise<number> {
  const repeatForNodes = (status: number) => nodes.map(() => status);
  const fetchAnswers = (key: string) =>
    Promise.all(nodes.map(async ({ publicUrl }) => (await submit(publicUrl, key)).status));
  const measureDelayMs = async (key: string, status: number, ...args: string[]) => {
    await runJson(...args);
    const startedAt = performance.now();
    await expect.poll(() => fetchAnswers(key), { interval: 20 }).toEqual(repeatForNodes(status));
    return performance.now() - startedAt;
  };
  const { id, key } = await runJson<{ id: string; key: string }>('key', 'create', 'default');
  expect(await fetchAnswers(key)).toEqual(repeatForNodes(201));
  return Math.max(
    await measureDelayMs(key, 401, 'account', 'lock', 'default', '--reason', 'abuse'),
    await measureDelayMs(key, 201, 'account', 'unlock', 'default'),
    await measureDelayMs(key, 401, 'key', 'revoke', id),
  );
}

/** Sends `count` concurrent requests to the nodes in turn, and counts the responses by status. */
async function submitRepeatedly(
  nodes: readonly ServiceProcess[],
  key: string,
  count: number,
): Promise<Record<number, number>> {
  const answers = await Promise.all(
    Array.from({ length: count }, (_, n) => submit(nodes[n % nodes.length]?.publicUrl ?? '', key)),
  );
  const counts: Record<number, number> = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

test('three nodes together accept exactly the number of messages that a volume or a rate allows', async () => {
  const { nodes, runJson } = await startNodes(3);
  await runJson('account', 'create', 'volume', '--volume', '37');
  await runJson('account', 'create', 'rate', '--rate', '23/1h');
  for (const [account, maxAccepted] of [
    ['volume', 37],
    ['rate', 23],
  ] as const) {
    const { key } = await runJson<{ key: string }>('key', 'create', account);
    expect(await submitRepeatedly(nodes, key, 120)).toEqual({ 201: maxAccepted, 403: 120 - maxAccepted });
  }
});

test('three nodes together accept no more messages than the burst of a throttle and the added tokens allow', async () => {
  const { nodes, runJson } = await startNodes(3);
  await runJson('account', 'create', 'slow', '--throttle', '1/s:12');
  const { key } = await runJson<{ key: string }>('key', 'create', 'slow');
  expect((await submit(nodes[2]?.publicUrl ?? '', 'pr_none')).status).toBe(401);
  expect((await submit(nodes[2]?.publicUrl ?? '', key)).status).toBe(201);
  const startedAt = performance.now();
  const { 201: acceptedCount = 0, 429: refusedCount = 0 } = await submitRepeatedly(nodes, key, 60);
  const seconds = (performance.now() - startedAt) / 1000;
  expect(acceptedCount + refusedCount).toBe(60);
  // An earlier request used one token. One token per second is added.
  expect(acceptedCount).toBeGreaterThanOrEqual(10);
  expect(acceptedCount).toBeLessThanOrEqual(12 + Math.ceil(seconds) + 1);
});

test('a new key is valid on every node as soon as it is created, in each of fifty repetitions', async () => {
  const { nodes, sharedSettings } = await startNodes(2);
  const store = await openStore(parsePostgresUrl(sharedSettings.POSTRIDER_DATABASE), { exclusive: false });
  onTestFinished(() => store.close());
  const statuses: number[] = [];
  for (let n = 0; n < 50; n += 1) {
    const { key, prefix, hash } = generateApiKey(randomBytes);
    await store.createKey('default', { name: `new-${n}`, prefix, hash, expiresAt: null }, Date.now());
    for (const { status } of await Promise.all(nodes.map(({ publicUrl }) => submit(publicUrl, key)))) {
      statuses.push(status);
    }
  }
  expect(statuses).toEqual(statuses.map(() => 201));
  expect(statuses).toHaveLength(100);
});

test('an imported key is valid on every node as soon as the command has returned', async () => {
  const { nodes, sharedSettings } = await startNodes(2);
  const { key } = generateApiKey(randomBytes);
  const importOutput = await runCommand(
    createTemporaryFolder(),
    ['key', 'import', 'default'],
    sharedSettings,
    `${key}\n`,
  );
  expect(importOutput).toMatchObject({ code: 0, stderr: '' });
  expect(importOutput.stdout).not.toContain(key);
  const answers = await Promise.all(nodes.map(({ publicUrl }) => submit(publicUrl, key)));
  expect(answers.map(({ status }) => status)).toEqual([201, 201]);
});

test('a lock, an unlock and a revocation apply on every node within one second', async () => {
  const { nodes, runJson } = await startNodes(3);
  // The measurement is repeated, because the machine may be slow for a short time. The test fails if every measurement
  // is too slow.
  await expect.poll(() => measureChangeDelayMs(nodes, runJson)).toBeLessThan(1_000);
});

test('behind a pooler without a direct connection, a lock, an unlock and a revocation apply on every node within two seconds', async () => {
  const { nodes, runJson } = await startNodes(2, await createPooledDatabase());
  await expect.poll(() => measureChangeDelayMs(nodes, runJson)).toBeLessThan(2_000);
});

test('behind a pooler without a direct connection, a message that one node accepts is sent by the other node within two seconds', async () => {
  const sink = await startCountingSink();
  const relaySettings = { POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${sink.port}`, POSTRIDER_SENDERS: 'any' };
  const { nodes, key, sharedSettings } = await startNodes(1, {
    ...(await createPooledDatabase()),
    ...relaySettings,
    POSTRIDER_ROLES: 'api',
  });
  await startProcess(createTemporaryFolder(), { ...sharedSettings, POSTRIDER_ROLES: 'deliver,operator' });
  /** Returns the milliseconds from a 201 response of the first node until the second node has sent the message. */
  const measureDeliveryMs = async () => {
    const id = await submitAccepted(nodes[0]?.publicUrl ?? '', key);
    const startedAt = performance.now();
    await expect.poll(() => sink.acceptCounts.get(id), { interval: 10 }).toBe(1);
    return performance.now() - startedAt;
  };
  await expect.poll(measureDeliveryMs).toBeLessThan(2_000);
});

test('concurrent requests with one idempotency key on three nodes create one message', async () => {
  const { nodes, key, runJson } = await startNodes(3);
  const answers = await Promise.all(
    Array.from({ length: 30 }, (_, n) =>
      submit(nodes[n % 3]?.publicUrl ?? '', key, {}, { 'Idempotency-Key': 'order-1' }),
    ),
  );
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 201));
  const ids = await Promise.all(
    answers.map(async (answer) => ((await answer.json()) as { result: { id: string } }).result.id),
  );
  expect(new Set(ids).size).toBe(1);
  expect(await runJson<unknown[]>('message', 'list')).toHaveLength(1);
});

test('a node with the role deliver sends the messages that a node without this role has accepted', async () => {
  const sink = await startCountingSink();
  const relaySettings = { POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${sink.port}`, POSTRIDER_SENDERS: 'any' };
  const { nodes, key, sharedSettings } = await startNodes(1, { ...relaySettings, POSTRIDER_ROLES: 'api' });
  const ids = await Promise.all(Array.from({ length: 20 }, () => submitAccepted(nodes[0]?.publicUrl ?? '', key)));
  expect(sink.acceptCounts.size).toBe(0);
  await startProcess(createTemporaryFolder(), { ...sharedSettings, POSTRIDER_ROLES: 'deliver,operator' });
  await expect.poll(() => ids.filter((id) => sink.acceptCounts.get(id) !== 1)).toEqual([]);
});

test('a node whose clock changes by days accepts and sends messages, and the messages contain the time of the database', async () => {
  const sink = await startCountingSink();
  const url = await createTemporaryDatabase();
  const folder = createTemporaryFolder();
  const environment = {
    POSTRIDER_DATABASE: url,
    POSTRIDER_SECRET: SECRET,
    POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${sink.port}`,
    POSTRIDER_SENDERS: 'any',
    POSTRIDER_LISTEN: '127.0.0.1:0',
    POSTRIDER_OPERATOR_LISTEN: '127.0.0.1:0',
    POSTRIDER_LOG: 'silent',
  };
  let clockOffsetMs = 5 * 86_400_000;
  const clock = { ...systemClock, now: () => Date.now() + clockOffsetMs };
  const service = await startService(loadSettings(environment, null), { clock, drainMs: 1_000 });
  onTestFinished(() => service.stop());
  const startedAt = Date.now();
  const ids: string[] = [];
  for (const days of [5, -5, 0]) {
    clockOffsetMs = days * 86_400_000;
    ids.push(await submitAccepted(service.publicUrl ?? '', service.firstKey ?? ''));
  }
  await expect.poll(() => ids.filter((id) => sink.acceptCounts.get(id) !== 1)).toEqual([]);
  const listedMessages = await runJsonCommand<{ id: string; at: string }[]>(folder, ['message', 'list'], {
    POSTRIDER_DATABASE: url,
    POSTRIDER_SECRET: SECRET,
  });
  expect(listedMessages).toHaveLength(3);
  for (const { at } of listedMessages) expect(Math.abs(new Date(at).getTime() - startedAt)).toBeLessThan(60_000);
});

import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { generateApiKey } from '../../src/model/credentials.ts';
import { startCountingSink } from '../rig/counting-sink.ts';
import { createSharedDatabase, createTemporaryDatabase } from '../rig/postgres.ts';
import { runCommand, runJsonCommand, submit, submitAccepted } from '../rig/service.ts';
import { startTransactionPooler } from '../rig/transaction-pooler.ts';
import { countValues, createScenario, type RunningService } from './running-service.ts';

const SECRET = 'cd'.repeat(32);
const NODE_COUNT = 2;
const rig = createScenario();
const folder = rig.createFolder();
const settings = { POSTRIDER_DATABASE: await createSharedDatabase(), POSTRIDER_SECRET: SECRET };
const nodes: RunningService[] = [];
while (nodes.length < NODE_COUNT) nodes.push(await rig.serve(rig.createFolder(), settings));

const runJson = <T>(...args: string[]) => runJsonCommand<T>(folder, args, settings);

const submitRepeatedly = (key: string, count: number, headers = {}) =>
  Promise.all(
    Array.from({ length: count }, (_, n) => submit(nodes[n % NODE_COUNT]?.publicUrl ?? '', key, {}, headers)),
  );

test.each([
  ['volume', '37'],
  ['rate', '23/1h'],
])('the nodes together accept exactly the number of messages that a %s of %s allows', async (limit, value) => {
  await runJson('account', 'create', limit, `--${limit}`, value);
  const { key } = await runJson<{ key: string }>('key', 'create', limit);
  const answers = await submitRepeatedly(key, 80);
  const accepted = Number.parseInt(value, 10);
  expect(countValues(answers.map(({ status }) => status))).toEqual({ 201: accepted, 403: 80 - accepted });
});

test('a new key is valid on every node as soon as the command has returned', async () => {
  for (let n = 0; n < 8; n += 1) {
    const { key } = generateApiKey(randomBytes);
    const importOutput = await runCommand(folder, ['key', 'import', 'default'], settings, `${key}\n`);
    expect(importOutput).toMatchObject({ code: 0, stderr: '' });
    const answers = await submitRepeatedly(key, NODE_COUNT);
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 201));
  }
});

test('a lock, an unlock and a revocation apply on every node within one second', async () => {
  const measureDelayMs = async (key: string, status: number, ...args: string[]) => {
    await runJson(...args);
    const startedAt = performance.now();
    await expect
      .poll(async () => (await submitRepeatedly(key, NODE_COUNT)).map((answer) => answer.status), { interval: 20 })
      .toEqual(nodes.map(() => status));
    return performance.now() - startedAt;
  };
  const measureMaxDelayMs = async () => {
    const { id, key } = await runJson<{ id: string; key: string }>('key', 'create', 'default');
    return Math.max(
      await measureDelayMs(key, 401, 'account', 'lock', 'default', '--reason', 'abuse'),
      await measureDelayMs(key, 201, 'account', 'unlock', 'default'),
      await measureDelayMs(key, 401, 'key', 'revoke', id),
    );
  };
  // The measurement is repeated, because the machine may be slow for a short time. The test fails if every measurement
  // is too slow.
  await expect.poll(measureMaxDelayMs).toBeLessThan(1_000);
});

test('behind a pooler, a node with the role deliver sends the messages that a node without this role accepts', async () => {
  const sink = await startCountingSink();
  const url = new URL(await createTemporaryDatabase());
  url.port = String((await startTransactionPooler(Number(url.port))).port);
  url.searchParams.set('pooler', 'transaction');
  const relaySettings = {
    ...{ POSTRIDER_DATABASE: url.href, POSTRIDER_SECRET: SECRET },
    ...{ POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${sink.port}`, POSTRIDER_SENDERS: 'any' },
  };
  const accepting = await rig.serve(rig.createFolder(), { ...relaySettings, POSTRIDER_ROLES: 'api' });
  const submitMessage = () => submitAccepted(accepting.publicUrl, accepting.key);
  const ids = await Promise.all(Array.from({ length: 20 }, submitMessage));
  expect(sink.acceptCounts.size).toBe(0);
  const sending = await rig.serve(rig.createFolder(), { ...relaySettings, POSTRIDER_ROLES: 'deliver,operator' });
  await expect.poll(() => ids.filter((id) => sink.acceptCounts.get(id) !== 1)).toEqual([]);
  /** Returns the milliseconds from a 201 response of the first node until the second node has sent the message. */
  const measureDeliveryMs = async () => {
    const id = await submitMessage();
    const startedAt = performance.now();
    await expect.poll(() => sink.acceptCounts.get(id), { interval: 10 }).toBe(1);
    return performance.now() - startedAt;
  };
  await expect.poll(measureDeliveryMs).toBeLessThan(2_000);
  await Promise.all([accepting.stop(), sending.stop()]);
});

import { join } from 'node:path';
import { expect, test } from 'vitest';
import { MAX_UNRECORDED_LEASE_ENDS } from '../../src/queue/dispatcher.ts';
import { startCountingSink } from '../rig/counting-sink.ts';
import { createTemporaryFolder } from '../rig/folder.ts';
import { comparePostgresEvents, compareSqliteEvents, createDisabledWebhook } from '../rig/outbox.ts';
import { selectCaseCount } from '../rig/sample.ts';
import { getStoreSettings, runJsonCommand, startProcess, submit, submitAccepted } from '../rig/service.ts';
import { parsePostgresUrl } from '../rig/stores.ts';

const ROUND_COUNT = selectCaseCount(2, 5);
const SENDER_COUNT = 16;
const CONNECTION_COUNT = 8;

test('every message answered with 201 before a SIGKILL is delivered, and only messages without a stored outcome can be delivered twice', async () => {
  const folder = createTemporaryFolder();
  const sink = await startCountingSink();
  const settings = {
    POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${sink.port}?connections=${CONNECTION_COUNT}`,
    POSTRIDER_SENDERS: 'any',
  };
  const database = join(folder, 'data/postrider.db');
  await runJsonCommand(folder, ['account', 'create', 'other'], settings);
  const { POSTRIDER_DATABASE: url } = await getStoreSettings(folder);
  await createDisabledWebhook(url === undefined ? { kind: 'sqlite', path: database } : parsePostgresUrl(url));
  const acknowledgedIds = new Set<string>();
  let key = (await runJsonCommand<{ key: string }>(folder, ['key', 'create', 'other'], settings)).key;
  let repeatableCount = 0;
  for (let round = 0; round < ROUND_COUNT; round += 1) {
    const service = await startProcess(folder, settings);
    key = service.key ?? key;
    const targetCount = acknowledgedIds.size + 100 + round * 37;
    let isKilled = false;
    const sendRepeatedly = async () => {
      while (!isKilled) {
        const answer = await submit(service.publicUrl, key).catch(() => null);
        if (answer?.status === 201) {
          const body = (await answer.json().catch(() => null)) as { result: { id: string } } | null;
          if (body !== null) acknowledgedIds.add(body.result.id);
        }
      }
    };
    const senders = Array.from({ length: SENDER_COUNT }, sendRepeatedly);
    await expect.poll(() => acknowledgedIds.size, { interval: 5 }).toBeGreaterThan(targetCount);
    service.kill('SIGKILL');
    isKilled = true;
    await Promise.all([...senders, service.exitPromise]);
    const leasedMessages = await runJsonCommand<{ id: string }[]>(folder, [
      ...['message', 'list', '--state', 'sending'],
      ...['--limit', '100000'],
    ]);
    const unrecordedCount = leasedMessages.filter(({ id }) => sink.acceptCounts.has(id)).length;
    // Only the message in transmission on each connection, and messages whose outcomes are being stored, can be
    // delivered twice.
    expect(unrecordedCount).toBeLessThanOrEqual(CONNECTION_COUNT + MAX_UNRECORDED_LEASE_ENDS);
    repeatableCount += unrecordedCount;
  }
  const lastService = await startProcess(folder, settings);
  const listMissingIds = () => [...acknowledgedIds].filter((id) => !sink.acceptCounts.has(id));
  await expect.poll(listMissingIds, { interval: 50 }).toEqual([]);
  await expect
    .poll(async () => (await runJsonCommand<unknown[]>(folder, ['message', 'list', '--state', 'sending'])).length)
    .toBe(0);
  const storedMessages = await runJsonCommand<{ id: string; state: string }[]>(folder, [
    'message',
    'list',
    '--limit',
    '100000',
  ]);
  expect(storedMessages.filter(({ state }) => state !== 'delivered')).toEqual([]);
  const ids = new Set(storedMessages.map(({ id }) => id));
  expect([...acknowledgedIds].filter((id) => !ids.has(id))).toEqual([]);
  const duplicateCount = [...sink.acceptCounts.values()].reduce((sum, times) => sum + times - 1, 0);
  expect(duplicateCount).toBeLessThanOrEqual(repeatableCount);
  lastService.kill('SIGTERM');
  expect(await lastService.exitPromise).toBe(0);
  const { entryCount, differences } =
    url === undefined ? compareSqliteEvents(database) : await comparePostgresEvents(url);
  expect(differences).toEqual([]);
  expect(entryCount).toBeGreaterThanOrEqual(2 * acknowledgedIds.size);
});

// The result of this test does not depend on the store.
if (process.env.TEST_STORE !== 'postgres') {
  test('with POSTRIDER_ON_UNCERTAIN=hold, messages that a killed node was transmitting become uncertain, and no message is delivered twice without a retry by an operator', async () => {
    const folder = createTemporaryFolder();
    const sink = await startCountingSink({ answerContent: false });
    const settings = {
      POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${sink.port}?connections=3`,
      POSTRIDER_SENDERS: 'any',
      POSTRIDER_ON_UNCERTAIN: 'hold',
    };
    const firstService = await startProcess(folder, settings);
    const ids = await Promise.all(
      Array.from({ length: 6 }, () => submitAccepted(firstService.publicUrl, firstService.key ?? '')),
    );
    await expect.poll(() => sink.acceptCounts.size).toBe(3);
    firstService.kill('SIGKILL');
    await firstService.exitPromise;
    sink.startAnswering();
    await startProcess(folder, settings);
    const readStates = async () =>
      (await runJsonCommand<{ id: string; state: string }[]>(folder, ['message', 'list']))
        .map(({ state }) => state)
        .sort();
    await expect
      .poll(readStates)
      .toEqual(['delivered', 'delivered', 'delivered', 'uncertain', 'uncertain', 'uncertain']);
    expect([...sink.acceptCounts.values()]).toEqual([1, 1, 1, 1, 1, 1]);
    const uncertainId = ids.find((id) => (sink.acceptOrder.indexOf(id) + 1 || 9) <= 3) ?? '';
    await runJsonCommand(folder, ['message', 'retry', uncertainId]);
    await expect.poll(() => sink.acceptCounts.get(uncertainId)).toBe(2);
  });
}

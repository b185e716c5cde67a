import { expect, test } from 'vitest';
import { runJsonCommand, submit } from '../rig/service.ts';
import { countValues, createScenario } from './running-service.ts';

const rig = createScenario();
const REQUEST_COUNT = 100;

// test/scenarios/nodes.test.ts checks volumes, rates, locks and revocations.
test('a throttle accepts as many requests as its burst and the added tokens allow, refused requests receive Retry-After, and a change applies to the running service', async () => {
  const folder = rig.createFolder();
  const service = await rig.serve(folder);
  await runJsonCommand(folder, ['account', 'create', 'throttle', '--throttle', '1/s:30']);
  const { key } = await runJsonCommand<{ key: string }>(folder, ['key', 'create', 'throttle']);
  const post = async () => {
    const response = await submit(service.publicUrl, key, { to: 'success@simulator.postrider.test' });
    return { status: response.status, text: await response.text(), headers: response.headers };
  };
  const startedAt = Date.now();
  const answers = await Promise.all(Array.from({ length: REQUEST_COUNT }, post));
  const acceptedCount = answers.filter(({ status }) => status === 201).length;
  // The minimum is one less than the burst.
  expect(acceptedCount).toBeGreaterThanOrEqual(29);
  expect(acceptedCount).toBeLessThanOrEqual(30 + Math.ceil((Date.now() - startedAt) / 1000));
  const refusedAnswers = answers.filter(({ status }) => status !== 201);
  expect(countValues(refusedAnswers.map(({ status, text }) => `${status} ${text}`))).toEqual({
    '429 {"result":"error","message":"Too many requests"}': REQUEST_COUNT - acceptedCount,
  });
  expect(countValues(refusedAnswers.map(({ headers }) => headers.get('retry-after') ?? ''))).toEqual({
    1: refusedAnswers.length,
  });
  expect(refusedAnswers[0]?.headers.get('ratelimit-policy')).toBe('"throttle";q=30;w=30');
  expect(await runJsonCommand(folder, ['account', 'show', 'throttle'])).toMatchObject({ volumeUsed: acceptedCount });
  await runJsonCommand(folder, ['account', 'set', 'throttle', '--throttle', 'none']);
  await expect.poll(async () => (await post()).headers.get('ratelimit-policy'), { interval: 20 }).toBeNull();
});

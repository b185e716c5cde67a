import { expect, test } from 'vitest';
import { runJsonCommand, submit } from '../rig/service.ts';
import { type Answer, countValues, createScenario } from './running-service.ts';

const rig = createScenario();
const CONCURRENT_REQUEST_COUNT = 100;

interface NewKey {
  readonly id: string;
  readonly key: string;
}

const folder = rig.createFolder();
const service = await rig.serve(folder);

const runJson = <T>(...args: string[]) => runJsonCommand<T>(folder, args);

async function createAccount(name: string, ...limits: string[]): Promise<NewKey> {
  await runJson('account', 'create', name, ...limits);
  return runJson<NewKey>('key', 'create', name);
}

async function postMessage(key: string, headers: Record<string, string> = {}, overrides = {}): Promise<Answer> {
  const response = await submit(
    service.publicUrl,
    key,
    { to: 'success@simulator.postrider.test', ...overrides },
    headers,
  );
  return { status: response.status, text: await response.text(), headers: response.headers };
}

const postConcurrently = (key: string) =>
  Promise.all(Array.from({ length: CONCURRENT_REQUEST_COUNT }, () => postMessage(key)));

/** Resolves to the ms from the end of the command until requests receive the expected response. */
async function waitForChange(
  key: string,
  expected: readonly [number, string | null],
  ...args: string[]
): Promise<number> {
  await runJson(...args);
  const startedAt = performance.now();
  const readAnswer = async () => {
    const { status, text, headers } = await postMessage(key);
    return [status, status === 201 ? null : (headers.get('postrider-reason') ?? JSON.parse(text).message)];
  };
  await expect.poll(readAnswer, { interval: 20 }).toEqual(expected);
  return performance.now() - startedAt;
}

const ACCEPTED_ANSWER = [201, null] as const;
const UNKNOWN_KEY_ANSWER = [401, 'Invalid API key'] as const;

test('a volume of 37 accepts exactly 37 of 100 concurrent requests, and refused requests do not reduce the volume', async () => {
  const { key } = await createAccount('volume', '--volume', '37');
  const invalidAnswers = await Promise.all(
    [{ to: 'unknown' }, { subject: '' }, { message: 'a\0' }].map((overrides) => postMessage(key, {}, overrides)),
  );
  expect(invalidAnswers.map(({ status }) => status)).toEqual([400, 400, 400]);
  const answers = await postConcurrently(key);
  expect(countValues(answers.map(({ status, headers }) => `${status} ${headers.get('postrider-reason')}`))).toEqual({
    '201 null': 37,
    '403 volume-exhausted': CONCURRENT_REQUEST_COUNT - 37,
  });
  const refusedAnswer = answers.find(({ status }) => status === 403);
  expect(refusedAnswer?.text).toBe('{"result":"error","message":"Invalid tokens or rate limit exceeded"}');
  expect(await runJson('account', 'show', 'volume')).toMatchObject({ volume: 37, volumeUsed: 37, volumeLeft: 0 });
  expect((await runJson<unknown[]>('message', 'list', '--account', 'volume', '--limit', '500')).length).toBe(37);
  await waitForChange(key, ACCEPTED_ANSWER, 'account', 'set', 'volume', '--volume', '5');
  await waitForChange(key, [403, 'volume-expired'], 'account', 'set', 'volume', '--volume-expires', '2020-01-01');
  await waitForChange(key, ACCEPTED_ANSWER, 'account', 'set', 'volume', '--volume', 'unlimited');
});

test('a rate of 41 per hour accepts exactly 41 of 100 concurrent requests, and each accepted request receives a different remaining number', async () => {
  const { key } = await createAccount('rate', '--rate', '41/1h');
  const answers = await postConcurrently(key);
  expect(countValues(answers.map(({ status, headers }) => `${status} ${headers.get('postrider-reason')}`))).toEqual({
    '201 null': 41,
    '403 rate-limit-exceeded': CONCURRENT_REQUEST_COUNT - 41,
  });
  const remainingCounts = answers
    .filter(({ status }) => status === 201)
    .map((answer) => Number(/;r=(\d+);/.exec(answer.headers.get('ratelimit') ?? '')?.[1]));
  expect(remainingCounts.sort((a, b) => a - b)).toEqual(Array.from({ length: 41 }, (_, n) => n));
  const refusedAnswer = answers.find(({ status }) => status === 403);
  expect(refusedAnswer?.headers.get('ratelimit-policy')).toBe('"rate";q=41;w=3600');
  expect(Number(refusedAnswer?.headers.get('retry-after'))).toBeGreaterThan(3_590);
  expect(Number(refusedAnswer?.headers.get('retry-after'))).toBeLessThanOrEqual(3_600);
  await waitForChange(key, ACCEPTED_ANSWER, 'account', 'set', 'rate', '--rate', 'none');
});

test('a throttle accepts as many requests as its burst and the added tokens allow, and refused requests receive Retry-After', async () => {
  const { key } = await createAccount('throttle', '--throttle', '1/s:30');
  const startedAt = Date.now();
  const answers = await postConcurrently(key);
  const acceptedCount = answers.filter(({ status }) => status === 201).length;
  // The minimum is one less than the burst.
  expect(acceptedCount).toBeGreaterThanOrEqual(29);
  expect(acceptedCount).toBeLessThanOrEqual(30 + Math.ceil((Date.now() - startedAt) / 1000));
  const refusedAnswers = answers.filter(({ status }) => status !== 201);
  expect(countValues(refusedAnswers.map(({ status, text }) => `${status} ${text}`))).toEqual({
    '429 {"result":"error","message":"Too many requests"}': CONCURRENT_REQUEST_COUNT - acceptedCount,
  });
  expect(countValues(refusedAnswers.map(({ headers }) => headers.get('retry-after') ?? ''))).toEqual({
    1: refusedAnswers.length,
  });
  expect(refusedAnswers[0]?.headers.get('ratelimit-policy')).toBe('"throttle";q=30;w=30');
  expect(await runJson('account', 'show', 'throttle')).toMatchObject({ volumeUsed: acceptedCount });
  await waitForChange(key, ACCEPTED_ANSWER, 'account', 'set', 'throttle', '--throttle', 'none');
});

test('a lock and an unlock apply within a second, and a rotated, revoked or expired key is refused', async () => {
  const createdKey = await createAccount('keys');
  const measureMaxDelayMs = async () => {
    const lockDelayMs = await waitForChange(
      createdKey.key,
      [401, 'Account locked'],
      'account',
      'lock',
      'keys',
      '--reason',
      'unpaid',
    );
    return Math.max(lockDelayMs, await waitForChange(createdKey.key, ACCEPTED_ANSWER, 'account', 'unlock', 'keys'));
  };
  // The measurement is repeated, because the machine may be slow for a short time. The test fails if every measurement
  // is too slow.
  await expect.poll(measureMaxDelayMs).toBeLessThan(1_000);
  const refusedFrom = Date.now() + 1_000;
  const rotatedKey = await runJson<NewKey>('key', 'rotate', createdKey.id, '--grace', '1s');
  const shortLivedKey = await runJson<NewKey>('key', 'create', 'keys', '--expires', '1s');
  expect((await postMessage(rotatedKey.key)).status).toBe(201);
  for (const { key } of [createdKey, shortLivedKey]) {
    const { status } = await postMessage(key);
    if (Date.now() < refusedFrom) expect(status).toBe(201);
    await expect.poll(async () => (await postMessage(key)).status, { interval: 20 }).toBe(401);
  }
  expect((await postMessage(rotatedKey.key)).status).toBe(201);
  await waitForChange(rotatedKey.key, UNKNOWN_KEY_ANSWER, 'key', 'revoke', rotatedKey.id);
  const states = (await runJson<{ id: string; state: string }[]>('key', 'list', 'keys')).map(({ state }) => state);
  expect(states).toEqual(['expired', 'revoked', 'expired']);
});

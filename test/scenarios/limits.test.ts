/** Limits, keys and locks are exact under concurrency, and changes by a command apply soon to the running service. */
import { randomBytes } from 'node:crypto';
import { beforeAll, expect, test } from 'vitest';
import { newApiKey } from '../../src/model/credentials.ts';
import { runCommand, runJsonCommand, submit } from '../rig/service.ts';
import { type Answer, type RunningService, scenario, tally } from './running-service.ts';

const rig = scenario();
const AT_ONCE = 200;

interface NewKey {
  readonly id: string;
  readonly key: string;
}

let folder = '';
let service: RunningService;
beforeAll(async () => {
  folder = rig.folder();
  service = await rig.serve(folder);
});

const command = <T>(...args: string[]) => runJsonCommand<T>(folder, args);

/** An account with these limits, and a valid key of it. */
async function account(name: string, ...limits: string[]): Promise<NewKey> {
  await command('account', 'create', name, ...limits);
  return command<NewKey>('key', 'create', name);
}

async function post(key: string, headers: Record<string, string> = {}, mail = {}): Promise<Answer> {
  const response = await submit(service.publicUrl, key, { to: 'success@simulator.postrider.test', ...mail }, headers);
  return { status: response.status, text: await response.text(), headers: response.headers };
}

const crowd = (key: string) => Promise.all(Array.from({ length: AT_ONCE }, () => post(key)));

/** Runs a command and waits for the answer that it causes. Resolves to the time since its end, in milliseconds. */
async function soon(key: string, wanted: readonly [number, string | null], ...args: string[]): Promise<number> {
  await command(...args);
  const began = performance.now();
  const seen = async () => {
    const { status, text, headers } = await post(key);
    return [status, status === 201 ? null : (headers.get('postrider-reason') ?? JSON.parse(text).message)];
  };
  await expect.poll(seen, { interval: 20 }).toEqual(wanted);
  return performance.now() - began;
}

const OK = [201, null] as const;
const UNKNOWN = [401, 'Invalid API key'] as const;

test('a volume of 37 accepts exactly 37 of 200 concurrent requests, and refused ones do not count', async () => {
  const { key } = await account('volume', '--volume', '37');
  const bad = await Promise.all(
    [{ to: 'nobody' }, { subject: '' }, { message: 'a\0' }].map((mail) => post(key, {}, mail)),
  );
  expect(bad.map(({ status }) => status)).toEqual([400, 400, 400]);
  const answers = await crowd(key);
  expect(tally(answers.map(({ status, headers }) => `${status} ${headers.get('postrider-reason')}`))).toEqual({
    '201 null': 37,
    '403 volume-exhausted': AT_ONCE - 37,
  });
  const refused = answers.find(({ status }) => status === 403);
  expect(refused?.text).toBe('{"result":"error","message":"Invalid tokens or rate limit exceeded"}');
  expect(await command('account', 'show', 'volume')).toMatchObject({ volume: 37, volumeUsed: 37, volumeLeft: 0 });
  expect((await command<unknown[]>('message', 'list', '--account', 'volume', '--limit', '500')).length).toBe(37);
  await soon(key, OK, 'account', 'set', 'volume', '--volume', '5');
  await soon(key, [403, 'volume-expired'], 'account', 'set', 'volume', '--volume-expires', '2020-01-01');
  await soon(key, OK, 'account', 'set', 'volume', '--volume', 'unlimited');
});

test('a rate of 41 per hour accepts exactly 41 of 200 concurrent requests, and the headers count down', async () => {
  const { key } = await account('rate', '--rate', '41/1h');
  const answers = await crowd(key);
  expect(tally(answers.map(({ status, headers }) => `${status} ${headers.get('postrider-reason')}`))).toEqual({
    '201 null': 41,
    '403 rate-limit-exceeded': AT_ONCE - 41,
  });
  const left = answers
    .filter(({ status }) => status === 201)
    .map((a) => Number(/;r=(\d+);/.exec(a.headers.get('ratelimit') ?? '')?.[1]));
  expect(left.sort((a, b) => a - b)).toEqual(Array.from({ length: 41 }, (_, n) => n));
  const refused = answers.find(({ status }) => status === 403);
  expect(refused?.headers.get('ratelimit-policy')).toBe('"rate";q=41;w=3600');
  expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThan(3_590);
  expect(Number(refused?.headers.get('retry-after'))).toBeLessThanOrEqual(3_600);
  await soon(key, OK, 'account', 'set', 'rate', '--rate', 'none');
});

test('a throttle accepts its burst, then as many as its tokens refill, and answers when to retry', async () => {
  const { key } = await account('throttle', '--throttle', '1/s:30');
  const began = Date.now();
  const answers = await crowd(key);
  const passed = answers.filter(({ status }) => status === 201).length;
  // The first request of the account used a token too.
  expect(passed).toBeGreaterThanOrEqual(29);
  expect(passed).toBeLessThanOrEqual(30 + Math.ceil((Date.now() - began) / 1000));
  const refused = answers.filter(({ status }) => status !== 201);
  expect(tally(refused.map(({ status, text }) => `${status} ${text}`))).toEqual({
    '429 {"result":"error","message":"Too many requests"}': AT_ONCE - passed,
  });
  expect(tally(refused.map(({ headers }) => headers.get('retry-after') ?? ''))).toEqual({ 1: refused.length });
  expect(refused[0]?.headers.get('ratelimit-policy')).toBe('"throttle";q=30;w=30');
  expect(await command('account', 'show', 'throttle')).toMatchObject({ volumeUsed: passed });
  await soon(key, OK, 'account', 'set', 'throttle', '--throttle', 'none');
});

test('a new key of a new account works once the command has returned, fifty times of fifty', async () => {
  const first = await account('new');
  expect((await post(first.key)).status).toBe(201);
  const rotated = await command<NewKey>('key', 'rotate', first.id, '--grace', '1m');
  expect((await post(rotated.key)).status).toBe(201);
  // The commands run in this process.
  const store = await rig.openStore(folder);
  const statuses: number[] = [];
  for (let n = 0; n < 50; n += 1) {
    const { key, prefix, hash } = newApiKey(randomBytes);
    const name = `new-${n}`;
    const now = Date.now();
    const unlimited = { volume: null, volumeExpiresAt: null, rate: null, throttle: null };
    await store.createAccount(name, unlimited, now);
    // Concurrent requests with unknown keys delay no valid key.
    const guesses = Array.from({ length: 20 }, () => post(newApiKey(randomBytes).key));
    await store.createKey(name, { name, prefix, hash, expiresAt: null }, now);
    statuses.push((await post(key)).status);
    expect((await Promise.all(guesses)).map(({ status }) => status)).toEqual(guesses.map(() => 401));
  }
  expect(tally(statuses)).toEqual({ 201: 50 });
});

test('a key made after its account was unlocked works at once', async () => {
  await account('unlocked');
  const store = await rig.openStore(folder);
  for (let n = 0; n < 10; n += 1) {
    const locked = newApiKey(randomBytes);
    const unlocked = newApiKey(randomBytes);
    const now = Date.now();
    await store.lockAccount('unlocked', 'test', now);
    await store.createKey('unlocked', { name: 'l', ...locked, expiresAt: null }, now);
    expect(JSON.parse((await post(locked.key)).text)).toMatchObject({ message: 'Account locked' });
    await store.unlockAccount('unlocked', now);
    await store.createKey('unlocked', { name: 'u', ...unlocked, expiresAt: null }, now);
    expect((await post(unlocked.key)).status).toBe(201);
  }
});

test('a lock, a revocation, a rotation and an expiry apply within a second', async () => {
  const first = await account('keys');
  const slower = async () => {
    const locked = await soon(first.key, [401, 'Account locked'], 'account', 'lock', 'keys', '--reason', 'unpaid');
    return Math.max(locked, await soon(first.key, OK, 'account', 'unlock', 'keys'));
  };
  // Measured again after a slow moment of the machine. A service that is too slow never passes.
  await expect.poll(slower).toBeLessThan(1_000);
  const graceOver = Date.now() + 2_000;
  const second = await command<NewKey>('key', 'rotate', first.id, '--grace', '2s');
  expect((await post(second.key)).status).toBe(201);
  const old = await post(first.key);
  if (Date.now() < graceOver) expect(old.status).toBe(201);
  await expect.poll(async () => (await post(first.key)).status, { interval: 20 }).toBe(401);
  expect((await post(second.key)).status).toBe(201);
  await soon(second.key, UNKNOWN, 'key', 'revoke', second.id);
  const briefOver = Date.now() + 2_000;
  const brief = await command<NewKey>('key', 'create', 'keys', '--expires', '2s');
  const fresh = await post(brief.key);
  if (Date.now() < briefOver) expect(fresh.status).toBe(201);
  await expect.poll(async () => (await post(brief.key)).status, { interval: 20 }).toBe(401);
  const states = (await command<{ id: string; state: string }[]>('key', 'list', 'keys')).map(({ state }) => state);
  expect(states).toEqual(['expired', 'revoked', 'expired']);
});

test('queued messages of a locked account wait until it is unlocked', async () => {
  const { key } = await account('held');
  const sent = await post(key, {}, { to: 'defer@simulator.postrider.test' });
  const id = (JSON.parse(sent.text) as { result: { id: string } }).result.id;
  const store = await rig.openStore(folder);
  const tries = async () => (await store.findMessage(id))?.attempts;
  await expect.poll(tries).toBe(1);
  await soon(key, [401, 'Account locked'], 'account', 'lock', 'held', '--reason', 'abuse');
  await command('message', 'retry', id);
  const { explanation } = await command<{ explanation: string[] }>('message', 'explain', id);
  expect(explanation.join(' ')).toContain('abuse');
  expect(await tries()).toBe(1);
  await command('account', 'unlock', 'held');
  await expect.poll(tries).toBe(2);
});

test('each of these commands works with a stopped service, and applies from its next start', async () => {
  expect(await service.stop()).toBe(0);
  await command('account', 'create', 'offline', '--volume', '1');
  const [made, gone] = [
    await command<NewKey>('key', 'create', 'offline'),
    await command<NewKey>('key', 'create', 'offline'),
  ];
  await command('key', 'revoke', gone.id);
  await command('account', 'lock', 'keys', '--reason', 'x');
  const clash = await runCommand(folder, ['account', 'create', 'offline']);
  expect([clash.code, clash.stdout, clash.stderr.split('\n').length]).toEqual([1, '', 2]);
  service = await rig.serve(folder);
  expect((await post(made.key)).status).toBe(201);
  expect((await post(made.key)).status).toBe(403);
  expect((await post(gone.key)).status).toBe(401);
});

/** Tests `npm run demo` as a process: its terminal output, its pages, and its shutdown. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { STATES } from '../../src/model/message.ts';
import { createTemporaryFolder } from '../rig/folder.ts';
import { buildEnvironment } from '../rig/service.ts';
import { signInByLink } from '../rig/session.ts';

const SCRIPT = fileURLToPath(new URL('../../demo/run.ts', import.meta.url));

interface RunningDemo {
  readonly child: ChildProcess;
  readonly folder: string;
  readonly exitPromise: Promise<number | string>;
  /** Resolves to the match when the demo has printed text that matches the pattern. */
  waitForOutput(pattern: RegExp): Promise<RegExpExecArray>;
}

/** Starts the demo in a new folder, with settings of an installation that the demo must ignore. */
function startDemo(): RunningDemo {
  const folder = createTemporaryFolder();
  const ignoredSettings = { POSTRIDER_DATABASE: 'sqlite:./data/real.db', POSTRIDER_TRANSPORT: 'smtp://127.0.0.1:9' };
  const child = spawn(process.execPath, [SCRIPT], {
    cwd: folder,
    env: buildEnvironment({ ...ignoredSettings, TMPDIR: folder }),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  const firstOutput = Promise.withResolvers<void>();
  let nextOutput = firstOutput;
  const recordOutput = (chunk: Buffer | null) => {
    text += chunk?.toString() ?? '';
    nextOutput.resolve();
    nextOutput = Promise.withResolvers<void>();
  };
  child.stdout.on('data', recordOutput);
  child.stderr.on('data', recordOutput);
  const exitPromise = new Promise<number | string>((resolve) =>
    child.once('exit', (code, signal) => resolve(code ?? signal ?? 'unknown')),
  );
  let hasEnded = false;
  void exitPromise.then(() => {
    hasEnded = true;
    recordOutput(null);
  });
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await exitPromise;
  });
  return {
    child,
    folder,
    exitPromise,
    async waitForOutput(pattern) {
      for (;;) {
        const match = pattern.exec(text);
        if (match !== null) return match;
        if (hasEnded) throw new Error(`the demo has ended with the output: ${text}`);
        await nextOutput.promise;
      }
    },
  };
}

/** Signs in with the printed link. Resolves to a function that calls the API. */
async function signIn(link: string): Promise<(path: string) => Promise<unknown>> {
  const session = await signInByLink(link);
  return async (path) => {
    const response = await fetch(new URL(`/api/v1${path}`, link), { headers: { ...session } });
    const body: unknown = await response.json();
    if (!response.ok) throw new Error(`${path}: ${response.status} ${JSON.stringify(body)}`);
    return body;
  };
}

/** Returns the number of elements of a response that is a list or contains a list. */
function countElements(answer: unknown): number {
  if (Array.isArray(answer)) return answer.length;
  const list = Object.values(answer as Record<string, unknown>).find(Array.isArray);
  return list === undefined ? Object.keys(answer as object).length : list.length;
}

test('the demo has messages in every state and content for every page, and leaves no files after its shutdown', async () => {
  const demo = startDemo();
  const [, link = ''] = await demo.waitForOutput(/Dashboard\s+(http:\S+)/);
  const [, demoFolder = ''] = await demo.waitForOutput(/Folder\s+(\S+)/);
  const callApi = await signIn(link);
  const [, publicUrl = ''] = await demo.waitForOutput(/Public interface\s+(http:\S+)/);
  await demo.waitForOutput(/messages of thirty days were written/);
  const [, key = ''] = await demo.waitForOutput(/An API key of the account shop: (\S+)\n/);
  const response = await fetch(publicUrl, {
    method: 'POST',
    headers: { Authorization: key, 'Content-Type': 'application/json' },
    body: JSON.stringify({ to: 'ada@example.com', from: 'hello@example.org', subject: 'Hello', message: 'Hello' }),
  });
  expect(response.status).toBe(201);

  for (const state of STATES) {
    await expect.poll(async () => countElements(await callApi(`/messages?state=${state}`))).toBeGreaterThan(0);
  }
  const pages = [
    '/accounts',
    '/accounts/sign-in/keys',
    '/domains',
    '/accounts/shop/suppressions',
    '/accounts/*/suppressions',
  ];
  for (const path of [...pages, '/feedback', '/audit', '/tokens']) {
    expect(countElements(await callApi(path)), path).toBeGreaterThan(0);
  }
  const accounts = (await callApi('/accounts')) as readonly {
    name: string;
    state: string;
    reason: string | null;
    warning: string | null;
  }[];
  const findAccount = (name: string) => accounts.find((candidate) => candidate.name === name);
  expect(findAccount('marketplace')).toMatchObject({
    state: 'locked',
    reason: expect.stringMatching(/hard bounces of/),
  });
  expect(findAccount('community')).toMatchObject({
    state: 'active',
    warning: expect.stringMatching(/hard bounces of/),
  });
  const domains = (await callApi('/domains')) as readonly { status: string }[];
  expect(new Set(domains.map(({ status }) => status))).toEqual(new Set(['authenticated', 'pending', 'failing']));

  const { providers } = (await callApi('/providers')) as {
    readonly providers: readonly { name: string; events: { lastEventAt: string | null; result: string } | null }[];
  };
  expect(providers.find(({ name }) => name === 'postmark')?.events).toMatchObject({
    lastEventAt: expect.any(String),
    result: 'ok',
  });
  const webhooks = (await callApi('/webhooks')) as readonly { id: string; status: string }[];
  expect(webhooks.map(({ status }) => status)).toEqual(['enabled', 'enabled']);
  for (const status of ['delivered', 'failed', 'pending']) {
    const countDeliveries = async () => {
      const pages = webhooks.map(({ id }) => callApi(`/webhooks/${id}/deliveries?status=${status}`));
      return (await Promise.all(pages)).reduce<number>((sum, page) => sum + countElements(page), 0);
    };
    await expect.poll(countDeliveries, { message: status }).toBeGreaterThan(0);
  }

  demo.child.kill('SIGINT');
  expect(await demo.exitPromise).toBe(0);
  expect(existsSync(demoFolder)).toBe(false);
  expect(readdirSync(demo.folder)).toEqual([]);
  await expect(fetch(link)).rejects.toThrow();
});

test('a demo that is stopped while it writes its sample messages leaves no files', async () => {
  const demo = startDemo();
  await demo.waitForOutput(/Folder\s+(\S+)/);
  demo.child.kill('SIGTERM');
  expect(await demo.exitPromise).toBe(0);
  expect(readdirSync(demo.folder)).toEqual([]);
});

import { existsSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { STATES } from '../../src/model/message.ts';
import { IS_LONG_RUN } from '../rig/sample.ts';
import { buildEnvironment, spawnProgram } from '../rig/service.ts';
import { signInByLink } from '../rig/session.ts';
import { createScenario } from './running-service.ts';

const SCRIPT = fileURLToPath(new URL('../../demo/run.ts', import.meta.url));
const rig = createScenario();

test('the demo shows its sample messages, and leaves no files after its shutdown', async () => {
  const folder = rig.createFolder();
  // The demo must ignore the settings of an installation.
  const ignoredSettings = { POSTRIDER_DATABASE: 'sqlite:./data/real.db', POSTRIDER_TRANSPORT: 'smtp://127.0.0.1:9' };
  const { child, stdout, stderr, exitPromise } = spawnProgram(process.execPath, [SCRIPT], {
    cwd: folder,
    env: buildEnvironment({ ...ignoredSettings, TMPDIR: folder }),
  });
  try {
    const readText = () => stdout() + stderr();
    const readOutput = async (pattern: RegExp) => {
      await expect.poll(readText).toMatch(pattern);
      return pattern.exec(readText())?.[1] ?? '';
    };
    const link = await readOutput(/Dashboard\s+(http:\S+)/);
    const demoFolder = await readOutput(/Folder\s+(\S+)/);
    expect(existsSync(demoFolder)).toBe(true);
    const session = await signInByLink(link);
    const callApi = async (path: string): Promise<unknown> =>
      (await fetch(new URL(`/api/v1${path}`, link), { headers: { ...session } })).json();
    await expect.poll(() => callApi('/messages?limit=1')).toMatchObject({ messages: [expect.anything()] });
    if (IS_LONG_RUN) await checkCompleteDemo(readOutput, callApi);
    child.kill('SIGINT');
    expect(await exitPromise).toBe(0);
    expect(existsSync(demoFolder)).toBe(false);
    expect(readdirSync(folder)).toEqual([]);
  } finally {
    child.kill('SIGKILL');
    await exitPromise;
  }
});

async function checkCompleteDemo(
  readOutput: (pattern: RegExp) => Promise<string>,
  callApi: (path: string) => Promise<unknown>,
): Promise<void> {
  await readOutput(/(messages of thirty days were written)/);
  const response = await fetch(await readOutput(/Public interface\s+(http:\S+)/), {
    method: 'POST',
    headers: {
      Authorization: await readOutput(/An API key of the account shop: (\S+)\n/),
      'Content-Type': 'application/json',
    },
    body: JSON.stringify({ to: 'ada@example.com', from: 'hello@example.org', subject: 'Hello', message: 'Hello' }),
  });
  expect(response.status).toBe(201);

  const webhooks = (await callApi('/webhooks')) as readonly { id: string; status: string }[];
  expect(webhooks.map(({ status }) => status)).toEqual(['enabled', 'enabled']);
  const pages = [
    ...STATES.map((state) => `/messages?state=${state}`),
    ...['/accounts', '/accounts/sign-in/keys', '/domains', '/accounts/shop/suppressions', '/accounts/*/suppressions'],
    ...['/feedback', '/audit', '/tokens'],
    ...['delivered', 'failed', 'pending'].map((status) => `/webhooks/${webhooks[0]?.id}/deliveries?status=${status}`),
  ];
  for (const path of pages) {
    const findFirst = async () => {
      const answer = (await callApi(path)) as object;
      return (Array.isArray(answer) ? answer : Object.values(answer).find(Array.isArray))?.[0];
    };
    await expect.poll(findFirst, { message: path }).toBeDefined();
  }
  const expectedRate = expect.stringMatching(/hard bounces of/);
  expect(await callApi('/accounts')).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ name: 'marketplace', state: 'locked', reason: expectedRate }),
      expect.objectContaining({ name: 'community', state: 'active', warning: expectedRate }),
    ]),
  );
  const domains = (await callApi('/domains')) as readonly { status: string }[];
  expect(new Set(domains.map(({ status }) => status))).toEqual(new Set(['authenticated', 'pending', 'failing']));
  const { providers } = (await callApi('/providers')) as {
    readonly providers: readonly { name: string; events: { lastEventAt: string | null; result: string } | null }[];
  };
  expect(providers.find(({ name }) => name === 'postmark')?.events).toMatchObject({
    ...{ lastEventAt: expect.any(String), result: 'ok' },
  });
}

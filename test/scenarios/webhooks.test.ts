import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { afterEach, describe, expect, test } from 'vitest';
import { ROOT } from '../house/source.ts';
import { findFreePort } from '../rig/free-port.ts';
import { runJsonCommand, spawnProgram, submitAccepted } from '../rig/service.ts';
import { type ReceivedWebhook, startWebhookReceiver, type WebhookReceiver } from '../rig/webhook-receiver.ts';
import { createScenario } from './running-service.ts';

interface Payload {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}
interface Delivery {
  readonly id: string;
  readonly type: string;
  readonly status: string;
  readonly attempts: readonly { readonly status: number | null; readonly body: string | null }[];
  readonly nextAttemptAt: string | null;
}

const SETTINGS = { POSTRIDER_WEBHOOK_TARGETS: 'any' };
const rig = createScenario();
const folder = rig.createFolder();
const service = await rig.serve(folder, SETTINGS);
const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const runJson = <T>(...args: readonly string[]) => runJsonCommand<T>(folder, args, SETTINGS);

async function startReceiver(): Promise<WebhookReceiver> {
  const receiver = await startWebhookReceiver();
  cleanups.push(() => receiver.close());
  return receiver;
}

async function createEndpoint(url: string, ...flags: readonly string[]) {
  const endpoint = await runJson<{ id: string; secret: string }>('webhook', 'create', url, ...flags);
  cleanups.push(() => runJson('webhook', 'delete', endpoint.id));
  return endpoint;
}

const verifyWebhook = (secret: string, { body, headers }: ReceivedWebhook) =>
  new Webhook(secret).verify(body, { ...headers }) as Payload;

describe('webhooks', () => {
  test('that failed are replayed with the id and body of the first attempt, and are signed with both secrets during a rotation', async () => {
    const receiver = await startReceiver();
    receiver.chooseBehavior = () => ({ status: 500, body: 'out of order' });
    const { id, secret } = await createEndpoint(receiver.url, '--events', 'message.delivered');
    await submitAccepted(service.publicUrl, service.key, { to: 'success@simulator.postrider.test' });
    const listDeliveries = () => runJson<Delivery[]>('webhook', 'deliveries', id);
    await expect.poll(async () => (await listDeliveries())[0]?.attempts.length).toBeGreaterThanOrEqual(1);
    const [delivery] = await listDeliveries();
    expect(delivery).toMatchObject({ type: 'message.delivered', status: 'pending' });
    expect(delivery?.attempts[0]).toMatchObject({ status: 500, body: 'out of order' });
    const { secret: nextSecret } = await runJson<{ secret: string }>('webhook', 'rotate', id);
    // Every attempt before the rotation fails, so the attempt that succeeds has both signatures.
    receiver.chooseBehavior = () => ({ status: 200 });
    await runJson('webhook', 'replay', id, '--since', '1h');
    await expect.poll(async () => (await listDeliveries())[0]?.status).toBe('delivered');
    const [first, last] = [receiver.receivedWebhooks[0], receiver.receivedWebhooks.at(-1)];
    if (first === undefined || last === undefined) throw new Error('no webhook was received');
    expect([last.headers['webhook-id'], last.body]).toEqual([first.headers['webhook-id'], first.body]);
    for (const signingSecret of [secret, nextSecret]) expect(verifyWebhook(signingSecret, last)).toBeTruthy();
  });

  test('that test an endpoint are sent exactly once, even if the endpoint does not subscribe to their type', async () => {
    const receiver = await startReceiver();
    receiver.chooseBehavior = () => ({ status: 404 });
    const { id, secret } = await createEndpoint(receiver.url, '--events', 'domain.failing');
    await runJson('webhook', 'test', id);
    await expect.poll(async () => (await runJson<Delivery[]>('webhook', 'deliveries', id, '--failed')).length).toBe(1);
    expect(receiver.receivedWebhooks.map((webhook) => verifyWebhook(secret, webhook).type)).toEqual(['webhook.test']);
  });
});

test('webhooks that cannot be signed because POSTRIDER_SECRET is lost fail with an error that names the remedy, and can be replayed after a rotation of the signing secret and an update of the URL', async () => {
  const receiver = await startReceiver();
  const lostSecretFolder = rig.createFolder();
  const settings = { ...SETTINGS, POSTRIDER_SECRET: 'cd'.repeat(32) };
  const runWithLostSecret = <T>(...args: readonly string[]) => runJsonCommand<T>(lostSecretFolder, args, settings);
  await runJsonCommand(lostSecretFolder, ['account', 'create', 'default'], settings);
  const { id } = await runJsonCommand<{ id: string }>(lostSecretFolder, ['webhook', 'create', receiver.url], {
    ...settings,
    POSTRIDER_SECRET: 'ab'.repeat(32),
  });
  const serviceWithLostSecret = await rig.serve(lostSecretFolder, settings);
  await runWithLostSecret('webhook', 'test', id);
  const listDeliveries = () =>
    runWithLostSecret<(Delivery & { readonly attempts: readonly { error: string }[] })[]>('webhook', 'deliveries', id);
  await expect.poll(async () => (await listDeliveries())[0]?.status).toBe('failed');
  expect((await listDeliveries())[0]?.attempts[0]?.error).toMatch(
    /restore POSTRIDER_SECRET, or rotate .* give its URL again/,
  );
  expect(receiver.receivedWebhooks).toEqual([]);
  const { secret } = await runWithLostSecret<{ secret: string }>('webhook', 'rotate', id);
  await runWithLostSecret('webhook', 'update', id, '--url', receiver.url);
  await runWithLostSecret('webhook', 'replay', id);
  await expect.poll(() => receiver.receivedWebhooks.length).toBe(1);
  const [received] = receiver.receivedWebhooks;
  expect(received === undefined ? null : verifyWebhook(secret, received).type).toBe('webhook.test');
  await serviceWithLostSecret.stop();
});

describe.each([
  ['receive.mjs', process.execPath],
  ['receive.py', 'python3'],
])('%s', (file, program) => {
  test('verifies and prints events', async ({ skip }) => {
    if (spawnSync(program, ['--version'], { stdio: 'ignore' }).status !== 0) return skip(`${program} is not installed`);
    const port = await findFreePort();
    const { secret } = await createEndpoint(`http://127.0.0.1:${port}/webhooks`, '--events', 'message.bounced');
    const receiver = spawnProgram(program, [join(ROOT, 'docs/examples', file), String(port)], {
      env: { ...process.env, WEBHOOK_SECRET: secret },
    });
    cleanups.push(async () => {
      receiver.child.kill('SIGKILL');
      await receiver.exitPromise;
    });
    await expect.poll(() => isListening(port)).toBe(true);
    const id = await submitAccepted(service.publicUrl, service.key, { to: `bounce+${file}@simulator.postrider.test` });
    await expect.poll(receiver.stdout).toBe(`message.bounced ${id} bounced 1\n`);
    const forgedResponse = await fetch(`http://127.0.0.1:${port}/`, {
      method: 'POST',
      headers: {
        'webhook-id': 'a',
        'webhook-timestamp': String(Math.floor(Date.now() / 1000)),
        'webhook-signature': 'v1,AAAA',
      },
      body: '{}',
    });
    expect(forgedResponse.status).toBe(401);
  });
});

async function isListening(port: number): Promise<boolean> {
  try {
    await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: '{}' });
    return true;
  } catch {
    return false;
  }
}

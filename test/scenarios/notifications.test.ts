/**
 * Tests notifications to operators with a running service, a real SMTP server and a receiver that verifies signatures
 * with the package `standardwebhooks`.
 */
import { Webhook } from 'standardwebhooks';
import { afterEach, expect, test } from 'vitest';
import type { NotificationPayload } from '../../src/model/notification-payload.ts';
import { createNotifierRig } from '../rig/notifier.ts';
import { runCommand, runJsonCommand } from '../rig/service.ts';
import { startSmtpServer } from '../rig/smtp-server.ts';
import { startWebhookReceiver, type WebhookReceiver } from '../rig/webhook-receiver.ts';
import { createScenario } from './running-service.ts';

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const OPERATOR_ADDRESS = 'ops@example.net';
/** The service checks every 10 s whether a notification is necessary. */
const TIMEOUT_MS = 30_000;
const rig = createScenario();
const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function startReceiver(): Promise<WebhookReceiver> {
  const receiver = await startWebhookReceiver();
  cleanups.push(() => receiver.close());
  return receiver;
}

async function startServer(...args: Parameters<typeof startSmtpServer>) {
  const server = await startSmtpServer(...args);
  cleanups.push(() => server.close());
  return server;
}

/** Verifies the signatures of the requests that the receiver has received, and returns the bodies. */
const listBodies = ({ receivedWebhooks }: WebhookReceiver) =>
  receivedWebhooks.map(({ body, headers }) => new Webhook(SECRET).verify(body, { ...headers }) as NotificationPayload);
const listBegunItems = (receiver: WebhookReceiver) =>
  listBodies(receiver).flatMap(({ data }) => data.began.map(({ code, subject }) => `${code} ${subject}`));

async function startNotifyingService(smtpPort: number, receiver: WebhookReceiver) {
  const folder = rig.createFolder();
  const settings = {
    POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${smtpPort}?tls=never`,
    POSTRIDER_SENDERS: 'any',
    POSTRIDER_WEBHOOK_TARGETS: 'any',
    POSTRIDER_NOTIFY: `mailto:${OPERATOR_ADDRESS},${receiver.url}/ops?token=abc`,
    POSTRIDER_NOTIFY_FROM: 'postrider@mail.example.org',
    POSTRIDER_NOTIFY_SECRET: SECRET,
    POSTRIDER_OPERATOR_URL: 'https://mail.example.com',
  };
  const run = (...args: readonly string[]) => runCommand(folder, args, settings);
  const runJson = <T>(...args: readonly string[]) => runJsonCommand<T>(folder, args, settings);
  // The account that sends the notifications has no volume left, and its rate limit allows one message per hour.
  await run('account', 'create', 'ops', '--volume', '0', '--rate', '1/1h');
  await run('domain', 'add', 'ops', 'example.org', '--subdomains');
  await run('account', 'create', 'shop');
  await run('account', 'lock', 'shop', '--reason', 'too many bounces');
  const service = await rig.serveProcess(folder, settings);
  cleanups.push(() => service.stop());
  return { folder, service, run, runJson };
}

test('the lock of an account is reported by a signed request and by mail, even if the sending account has no volume left', async () => {
  const [receiver, server] = [await startReceiver(), await startServer()];
  const { run, runJson } = await startNotifyingService(server.port, receiver);
  const isLockNotified = () => listBegunItems(receiver).includes('account-locked shop');
  await expect.poll(isLockNotified, { timeout: TIMEOUT_MS, interval: 200 }).toBe(true);
  const readMails = () => server.receivedMessages.map(({ data }) => data.toString().replaceAll('=\r\n', ''));
  await expect
    .poll(() => readMails().some((mail) => mail.includes('Account shop is locked')), { timeout: TIMEOUT_MS })
    .toBe(true);
  const [message] = server.receivedMessages;
  expect(message).toMatchObject({ from: 'postrider@mail.example.org', to: [OPERATOR_ADDRESS] });
  const mail = readMails().find((text) => text.includes('Account shop is locked')) ?? '';
  expect(mail).toMatch(/^Subject: Postrider: /m);
  expect(mail).toContain('Command: postrider account show shop');
  expect(mail).toContain('Page: https://mail.example.com/accounts/shop');
  const storedMessages = await runJson<{ id: string }[]>('message', 'list');
  expect(await runJson('message', 'show', storedMessages[0]?.id ?? '')).toMatchObject({
    key: 'notification',
    account: 'ops',
  });
  expect(await runJson('account', 'show', 'ops')).toMatchObject({ volumeUsed: 0 });
  expect(receiver.receivedWebhooks.every(({ path }) => path === '/ops?token=abc')).toBe(true);
  const doctorOutput = (await run('doctor', '--json')).stdout;
  expect(doctorOutput).toContain(`notifications mailto:${OPERATOR_ADDRESS}`);
  expect(doctorOutput).not.toContain('token=abc');
});

test('while no mail can be delivered, an HTTPS request reports the lock of an account, and nothing is reported twice', async () => {
  const receiver = await startReceiver();
  const server = await startServer({
    // The relay refuses this service, so each attempt to send a notification raises an alarm.
    onMailFrom: (_address, _session, callback) =>
      callback(Object.assign(new Error('5.7.1 blocked'), { responseCode: 550 })),
  });
  await startNotifyingService(server.port, receiver);
  await expect
    .poll(() => listBegunItems(receiver).includes('account-locked shop'), { timeout: TIMEOUT_MS, interval: 200 })
    .toBe(true);
  const begunItems = listBegunItems(receiver);
  expect(new Set(begunItems).size).toBe(begunItems.length);
  expect(server.receivedMessages).toEqual([]);
});

test('a notification whose node is killed with SIGKILL during the attempt is delivered after its lease has expired', async () => {
  const [receiver, server] = [await startReceiver(), await startServer()];
  receiver.chooseBehavior = () => 'stall';
  const { folder, service } = await startNotifyingService(server.port, receiver);
  await expect.poll(() => receiver.receivedWebhooks.length, { timeout: TIMEOUT_MS, interval: 20 }).toBe(1);
  service.child.kill('SIGKILL');
  await service.exitPromise;
  // The clock of the next node is set to a time after the lease expiry.
  const url = `${receiver.url}/ops?token=abc`;
  const notifierRig = createNotifierRig(
    await rig.openStore(folder),
    [{ kind: 'https', text: url, url }],
    Date.now() + 2 * 60_000,
  );
  const node = notifierRig.startNode('next');
  await notifierRig.advance(10_000);
  await node.stop(0);
  const [firstWebhook] = receiver.receivedWebhooks;
  const repeatedAttempts = notifierRig.attempts.filter(({ id }) => id === firstWebhook?.headers['webhook-id']);
  expect(repeatedAttempts.map(({ payload }) => payload)).toEqual([firstWebhook?.body]);
});

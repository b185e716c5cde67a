import { connect, createServer } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import type { NotificationPayload } from '../../src/model/notification.ts';
import { listenOnFreePort } from '../rig/free-port.ts';
import { runCommand, runJsonCommand, submitAccepted } from '../rig/service.ts';
import { startSmtpServer } from '../rig/smtp-server.ts';
import { startWebhookReceiver } from '../rig/webhook-receiver.ts';
import { createScenario } from './running-service.ts';

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const OPERATOR_ADDRESS = 'ops@example.net';
const rig = createScenario();

/** Timers run early, because the service checks every 10 s whether a notification is necessary. */
const clock: typeof systemClock = {
  ...systemClock,
  after: (delayMs, run) => systemClock.after(delayMs / 20, run),
};

test('the lock of an account is reported once by a signed request and by mail, even if the sending account has no volume left', async () => {
  const [receiver, server] = [await startWebhookReceiver(), await startSmtpServer()];
  const folder = rig.createFolder();
  const settings = {
    POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${server.port}?tls=never`,
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
  const service = await rig.serve(folder, settings, { clock });

  const readMails = () => server.receivedMessages.map(({ data }) => data.toString().replaceAll('=\r\n', ''));
  const findMail = () => readMails().find((mail) => mail.includes('Account shop is locked')) ?? '';
  const listBegunItems = () =>
    receiver.receivedWebhooks.flatMap(({ body, headers }) =>
      (new Webhook(SECRET).verify(body, { ...headers }) as NotificationPayload).data.began.map(
        ({ code, subject }) => `${code} ${subject}`,
      ),
    );
  await expect.poll(listBegunItems).toContain('account-locked shop');
  await expect.poll(findMail).toMatch(/^Subject: Postrider: /m);
  expect(server.receivedMessages[0]).toMatchObject({ from: 'postrider@mail.example.org', to: [OPERATOR_ADDRESS] });
  expect(findMail()).toContain('Command: postrider account show shop');
  expect(findMail()).toContain('Page: https://mail.example.com/accounts/shop');
  const [message] = await runJson<{ id: string }[]>('message', 'list');
  expect(await runJson('message', 'show', message?.id ?? '')).toMatchObject({ key: 'notification', account: 'ops' });
  expect(await runJson('account', 'show', 'ops')).toMatchObject({ volumeUsed: 0 });
  expect(receiver.receivedWebhooks.every(({ path }) => path === '/ops?token=abc')).toBe(true);
  expect(new Set(listBegunItems()).size).toBe(listBegunItems().length);
  const doctorOutput = (await run('doctor', '--json')).stdout;
  expect(doctorOutput).toContain(`notifications mailto:${OPERATOR_ADDRESS}`);
  expect(doctorOutput).not.toContain('token=abc');
  await service.stop();
  await Promise.all([receiver.close(), server.close()]);
});

test('a failed route is reported by mail too, which leaves when the relay answers again', async () => {
  let isDown = true;
  const server = await startSmtpServer();
  const proxy = createServer((socket) => {
    socket.on('error', () => undefined);
    if (isDown) return void socket.destroy();
    const relaySocket = connect(server.port, '127.0.0.1');
    relaySocket.on('error', () => socket.destroy());
    socket.on('close', () => relaySocket.destroy());
    socket.pipe(relaySocket).pipe(socket);
  });
  const folder = rig.createFolder();
  const settings = {
    POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${await listenOnFreePort(proxy)}?tls=never`,
    POSTRIDER_SENDERS: 'any',
    POSTRIDER_NOTIFY: `mailto:${OPERATOR_ADDRESS}`,
    POSTRIDER_NOTIFY_FROM: 'postrider@mail.example.org',
  };
  await runCommand(folder, ['account', 'create', 'ops'], settings);
  await runCommand(folder, ['domain', 'add', 'ops', 'example.org', '--subdomains'], settings);
  const { key } = await runJsonCommand<{ key: string }>(folder, ['key', 'create', 'ops'], settings);
  const service = await rig.serve(folder, settings, { clock });
  for (const to of ['a@example.com', 'b@example.com', 'c@example.com'])
    await submitAccepted(service.publicUrl, key, { to });
  const listWaiting = async () =>
    (await runJsonCommand<{ to: string; subject: string; state: string }[]>(folder, ['message', 'list'], settings))
      .filter(({ to, subject }) => to === OPERATOR_ADDRESS && subject.includes('The route default has failed'))
      .map(({ state }) => state);
  await expect.poll(listWaiting, { timeout: 120_000 }).toContain('queued');
  isDown = false;
  const listMails = () => server.receivedMessages.filter(({ to }) => to[0] === OPERATOR_ADDRESS).length;
  await expect.poll(listMails, { timeout: 120_000 }).toBeGreaterThan(0);
  await service.stop();
  await Promise.all([server.close(), new Promise((resolve) => proxy.close(resolve))]);
});

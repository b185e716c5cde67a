import { connect, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createTemporaryFolder } from '../rig/folder.ts';
import { selectCaseCount } from '../rig/sample.ts';
import { runJsonCommand, type ServiceProcess, startProcess, submit, submitAccepted } from '../rig/service.ts';

async function openIdleConnections(port: number, count: number): Promise<readonly Socket[]> {
  const sockets = Array.from({ length: count }, () => connect(port, '127.0.0.1').on('error', () => undefined));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  await Promise.all(
    sockets.map(
      (socket) =>
        new Promise<void>((resolve) => {
          socket.once('connect', () => resolve());
          socket.once('close', () => resolve());
        }),
    ),
  );
  return sockets;
}

const getPort = (url: string): number => Number(new URL(url).port);

async function readDroppedCount(service: ServiceProcess, label: string): Promise<number> {
  const text = await (await fetch(`${service.operatorUrl}/metrics`)).text();
  return text
    .split('\n')
    .filter((line) => line.startsWith('postrider_connections_dropped_total{') && line.includes(label))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
}

test('idle connections to every listener do not exhaust file descriptors: keys and sessions remain valid, and delivery continues', async () => {
  const folder = createTemporaryFolder();
  const limit = selectCaseCount(400, 4_000);
  const service = await startProcess(
    folder,
    { POSTRIDER_SENDERS: 'any' },
    { wrapCommand: (command) => `ulimit -n ${limit}; ${command}` },
  );
  const { token } = await runJsonCommand<{ token: string }>(folder, ['token', 'create', 'ci']);
  const keyedConnection = connect(getPort(service.publicUrl), '127.0.0.1');
  onTestFinished(() => void keyedConnection.destroy());
  let acceptedCount = 0;
  keyedConnection.on('data', (chunk: Buffer) => {
    acceptedCount += chunk.toString('latin1').split('HTTP/1.1 201').length - 1;
  });
  const body = JSON.stringify({ to: 'a@example.com', from: 'b@example.org', subject: 's', message: 'm' });
  const rawRequest = `POST /api/v1/send-mail HTTP/1.1\r\nHost: a\r\nAuthorization: ${service.key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  keyedConnection.write(rawRequest);
  await expect.poll(() => acceptedCount).toBe(1);

  await openIdleConnections(getPort(service.operatorUrl), limit);
  await openIdleConnections(getPort(service.publicUrl), limit);

  const id = await submitAccepted(service.publicUrl, service.key ?? '');
  const authorization = { Authorization: `Bearer ${token}` };
  const fetchState = async () => {
    const answer = await fetch(`${service.operatorUrl}/api/v1/messages/${id}`, { headers: authorization });
    return ((await answer.json()) as { state: string }).state;
  };
  await expect.poll(fetchState, { timeout: 120_000 }).toBe('delivered');
  keyedConnection.write(rawRequest);
  await expect.poll(() => acceptedCount).toBe(2);
  expect(await readDroppedCount(service, 'listener="public",reason="full"')).toBeGreaterThan(0);
  expect(await readDroppedCount(service, 'listener="operator",reason="full"')).toBeGreaterThan(0);
  expect(service.stderr()).not.toMatch(/EMFILE/);
});

test('a stalled reader of the log blocks neither acceptance nor delivery nor shutdown', async () => {
  const service = await startProcess(createTemporaryFolder(), { POSTRIDER_LOG: 'debug' });
  service.child.stdout?.pause();
  // The pipe contains at most 64 KiB, and each message causes two lines of the log.
  const messageCount = 400;
  let submittedCount = 0;
  const submitMessages = async () => {
    while (submittedCount < messageCount) {
      submittedCount += 1;
      const submitOnce = () => submit(service.publicUrl, service.key ?? '', { to: 'ada@example.com' });
      // A slow machine may refuse requests because of its load.
      await expect.poll(async () => (await submitOnce()).status).toBe(201);
    }
  };
  await Promise.all(Array.from({ length: 8 }, submitMessages));
  const readMetrics = async () => (await fetch(`${service.operatorUrl}/metrics`)).text();
  await expect.poll(readMetrics).toContain(`postrider_messages_total{state="delivered"} ${messageCount}`);
  // The process ends although nobody reads its output; its pipe closes when it is read.
  const ended = new Promise((resolve) => service.child.once('exit', resolve));
  service.kill('SIGTERM');
  expect(await ended).toBe(0);
  service.child.stdout?.resume();
  await service.exitPromise;
  const lineCount = service.stdout().match(/"event":"message\.(accepted|delivered)"/g)?.length ?? 0;
  expect(lineCount).toBeGreaterThan(10);
  expect(lineCount).toBeLessThan(2 * messageCount);
});

/** Idle connections, and clients that pipeline and never read, against the real process and each of its HTTP listeners. */
import { connect, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../rig/folder.ts';
import { sampleOrFull } from '../rig/sample.ts';
import { residentBytes, runJsonCommand, type ServiceProcess, startProcess, submitAccepted } from '../rig/service.ts';
import { makeAuthorities, snsRig } from '../rig/sns-receiver.ts';

/** Connections that send nothing, with those that the service refuses. */
async function idle(port: number, count: number): Promise<readonly Socket[]> {
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

const portOf = (url: string): number => Number(new URL(url).port);

/** The value of a metric, summed over all labels but the given one. */
async function dropped(service: ServiceProcess, label: string): Promise<number> {
  const text = await (await fetch(`${service.operatorUrl}/metrics`)).text();
  return text
    .split('\n')
    .filter((line) => line.startsWith('postrider_connections_dropped_total{') && line.includes(label))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
}

test('idle connections to every listener exhaust no descriptors: keys, sessions and delivery continue', async () => {
  const folder = temporaryFolder();
  const limit = sampleOrFull(400, 4_000);
  const service = await startProcess(
    folder,
    { POSTRIDER_SENDERS: 'any' },
    (command) => `ulimit -n ${limit}; ${command}`,
  );
  const { token } = await runJsonCommand<{ token: string }>(folder, ['token', 'create', 'ci']);
  // A connection with a valid key stays open.
  const known = connect(portOf(service.publicUrl), '127.0.0.1');
  onTestFinished(() => void known.destroy());
  let answered = 0;
  known.on('data', (chunk: Buffer) => {
    answered += chunk.toString('latin1').split('HTTP/1.1 201').length - 1;
  });
  const body = JSON.stringify({ to: 'a@example.com', from: 'b@example.org', subject: 's', message: 'm' });
  const mail = `POST /api/v1/send-mail HTTP/1.1\r\nHost: a\r\nAuthorization: ${service.key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  known.write(mail);
  await expect.poll(() => answered).toBe(1);

  await idle(portOf(service.operatorUrl), limit);
  await idle(portOf(service.publicUrl), limit);

  const id = await submitAccepted(service.publicUrl, service.key ?? '');
  const authorization = { Authorization: `Bearer ${token}` };
  const state = async () => {
    const answer = await fetch(`${service.operatorUrl}/api/v1/messages/${id}`, { headers: authorization });
    return ((await answer.json()) as { state: string }).state;
  };
  await expect.poll(state, { timeout: 20_000 }).toBe('delivered');
  known.write(mail);
  await expect.poll(() => answered).toBe(2);
  expect(await dropped(service, 'listener="public",reason="full"')).toBeGreaterThan(0);
  expect(await dropped(service, 'listener="operator",reason="full"')).toBeGreaterThan(0);
  expect(service.stderr()).not.toMatch(/EMFILE/);
});

/** Connections that send requests without end and read nothing. `written` counts the bytes that the kernel and the service accepted. */
async function deaf(port: number, count: number, requests: Buffer) {
  const sockets = await idle(port, count);
  for (const socket of sockets) {
    socket.pause();
    const more = () => {
      while (!socket.destroyed && socket.write(requests));
    };
    socket.on('drain', more);
    more();
  }
  return sockets;
}

const get = (path: string) => Buffer.from(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(2_000));

test('both listeners stop reading from clients that pipeline and never read, use no memory for them, and close them', async () => {
  const service = await startProcess(temporaryFolder(), { POSTRIDER_SENDERS: 'any' });
  const pid = service.child.pid ?? 0;
  await submitAccepted(service.publicUrl, service.key ?? '');
  const before = residentBytes(pid);
  const each = sampleOrFull(4, 60);
  const all = [
    ...(await deaf(portOf(service.publicUrl), each, get('/healthz'))),
    ...(await deaf(portOf(service.operatorUrl), each, get('/openapi.json'))),
  ];
  let most = 0;
  const closed = async () => {
    most = Math.max(most, residentBytes(pid));
    await submitAccepted(service.publicUrl, service.key ?? '');
    return dropped(service, 'reason="unread-answers"');
  };
  await expect.poll(closed, { timeout: 110_000, interval: 200 }).toBe(all.length);
  // Without that limit, requests read ahead of the answers took 9 MB per connection.
  expect(most - before).toBeLessThan(all.length * 2_000_000 + 100_000_000);
}, 120_000);

test('the listener for provider events also reads no further than it answers', async () => {
  const rig = await snsRig(await makeAuthorities());
  const sockets = await deaf(rig.port, 3, get('/ses'));
  const taken = () => sockets.map(({ bytesWritten, writableLength }) => bytesWritten - writableLength);
  let last: readonly number[] = [];
  // The listener accepts no more bytes: two equal values, with answers to other clients between them.
  await expect
    .poll(
      async () => {
        for (let n = 0; n < 20; n += 1) expect((await rig.post('{}')).status).toBe(400);
        const now = taken();
        const still = now.every((bytes, at) => bytes === last[at]);
        last = now;
        return still;
      },
      { timeout: 60_000, interval: 200 },
    )
    .toBe(true);
});
